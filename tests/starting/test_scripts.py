"""Shell scripts as jobs: run as a script and as steps they do the same."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import UsageError
from checkpoint_action.starting.draft import Draft, draft_text
from checkpoint_action.starting.scripts import draft_of_script
from tests.console import PROGRAM, environment

if TYPE_CHECKING:
    from pathlib import Path


def draft(text: str, path: str = "build.sh") -> Draft:
    return draft_of_script(text, path, "demo")


def runs(text: str) -> list[str]:
    return [step.run for step in draft(text).steps]


SAME = {
    "plain": "echo a >a\necho b >b\n",
    "exported": "set -eu\nexport A=1 B='two words'\nexport C=\"x y\"\nsh -c 'echo $A $B $C' >out\necho done >>out\n",
    "variables": "set -e\nDIR=out\nFILE=$DIR/x\nmkdir -p $DIR\necho hi >$FILE\ncat $FILE >copy\n",
    "variable set again": "X=1\necho $X >a\nX=2\necho $X >b\nX=$X$X\necho $X >c\n",
    "a value of a program": 'set -e\nN=$(printf \'two\\nlines ; $x\')\nM=`echo m`\necho "$N" >a\necho "$N$M" >b\n',
    "a value made once": 'D=$(mktemp -d ./d.XXXXXX)\nmv $D fixed\nls -d $D >gone 2>/dev/null || echo "${D%.*}" >was\n',
    "functions": 'say() { local x=$1; echo "$x" >>log; }\ntwice() {\n  say $1\n  say $1\n}\ntwice a\nsay b\n',
    "a function that sets": "take() { GOT=$1; }\ntake x\necho $GOT >a\ntake y\necho $GOT >b\n",
    "cd": "mkdir -p in/deep\ncd in\necho 1 >a\ncd deep\necho 2 >b\ncd ../..\necho 3 >c\n",
    "cd in a list": "mkdir -p in && cd in && echo 1 >a\necho 2 >b\ncd ..\necho 3 >c\n",
    "cd in a subshell": "mkdir in\n(cd in; echo 1 >a)\necho 2 >b\n",
    "cd in a function": "go() { mkdir -p $1; cd $1; }\ngo x\necho 1 >a\ngo y\necho 2 >b\n",
    "PWD is that of its place": (
        "mkdir in\nOUT=$PWD/out\ncd in\necho x >$OUT\nexport HERE=$PWD\ncd ..\nsh -c 'basename $HERE' >h\n"
    ),
    "source": "echo 'V=1; f() { echo f$V; }' >lib.sh\n. ./lib.sh\nf >a\nmkdir in\ncd in\nf >b\n",
    "blocks": (
        'if [ -n "$HOME" ]; then\n  A=yes\nelse\n  A=no\nfi\n'
        "for i in 1 2; do\n  echo $A $i >>log\ndone\necho $i >last\n"
    ),
    "here-documents": "X=1\ncat >a <<E\n$X it's \"\n  fi\nE\ncat >b <<'E'\n$X\nE\necho end >c\n",
    "continued lines": "echo one \\\n  two >a\ntrue &&\n  echo b >b\n",
    "no set -e inside": "for i in 1 2; do\n  false\n  echo $i >>log\ndone\ntrue\necho x >y\n",
    "pipefail": "set -euo pipefail\nfalse | true || echo failed >a\necho b >b\n",
    "without pipefail": "set -e\nfalse | true\necho b >b\n",
    "the last exit code": "false\nif [ $? -ne 0 ]; then echo bad >a; fi\necho b >b\n",
    "background": "(sleep 0.1; echo 1 >a) &\nwait $!\ncat a >b\n",
    "trap": "echo 1 >a\ntrap 'echo 2 >b' EXIT\necho 3 >c\n",
    "early exit": "echo 1 >a\nif [ -f a ]; then exit 0; fi\necho never >b\n",
    "exit in a function": "stop() { exit 0; }\necho 1 >a\nstop\necho never >b\n",
    "umask and options": "umask 077\nset -f\necho * >a\nshopt -s extglob 2>/dev/null\necho b >b\n",
    "guards": '[ -n "${A:-}" ] || A=dflt\n: ${B:=other}\necho $A >a\necho $B >b\n',
    "a guard on a file": "[ -e mark ] || NEW=1\ntouch mark\necho ${NEW:-no} >a\necho ${NEW:-no} >b\n",
    "read": "read -r A B <<E\n1 2\nE\necho $A >a\necho $B >b\n",
    "arrays": "A=(1 'two words')\nfor x in \"${A[@]}\"; do\n  echo $x >>log\ndone\nA+=(3)\necho ${#A[@]} >n\n",
    "PATH": (
        "mkdir bin\nprintf '#!/bin/sh\\necho tool' >bin/tool\n"
        "chmod +x bin/tool\nPATH=$PWD/bin:$PATH\ntool >a\ncd bin\ntool >b\n"
    ),
    "RANDOM": "R=$RANDOM\necho $R >a\necho $R >b\ncmp a b && rm a b && echo same >c\n",
    "its own name": (
        'cd "$(dirname "$0")"\necho x >beside\nbasename "$0" >name\n'
        'HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\nls $HERE/build.sh | wc -l >list\n'
    ),
    "awk": "printf 'a b\\n' | awk '{print $2, \"$0\"}' >a\necho x >b\n",
    "talk": "echo starting\nmkdir x\necho half\necho y >x/y\necho end\n",
    "counting": "i=0\ni=$((i + 1))\necho $i >a\n((i++)) || true\necho $i >b\nlet i+=2\necho $i >c\n",
}


def tree(folder: Path) -> dict[str, bytes | None]:
    paths = [path for path in folder.rglob("*") if not path.name.startswith((".checkpoint-run", "checkpoint.yml"))]
    found = {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}
    return {name: data for name, data in found.items() if not name.startswith(".checkpoint-run")}


def compare(text: str, folder: Path) -> None:
    """Run a script as it is and as steps; both must say and leave the same."""
    folders = folder / "script" / "here", folder / "steps" / "here"
    for each in folders:
        each.mkdir(parents=True)
        (each / "build.sh").write_text(f"#!/usr/bin/env bash\n{text}")
    whole = subprocess.run(["bash", "build.sh"], cwd=folders[0], env=environment(), capture_output=True, check=False)
    subprocess.run([PROGRAM, "init", "build.sh"], cwd=folders[1], env=environment(), check=True, capture_output=True)
    steps = subprocess.run([PROGRAM], cwd=folders[1], env=environment(), capture_output=True, check=False)
    said = (folders[1] / "checkpoint.yml").read_text() + steps.stderr.decode()
    assert (steps.returncode, steps.stdout) == (whole.returncode, whole.stdout), said
    assert tree(folders[1]) == tree(folders[0]), said
    assert len(tree(folders[0])) > 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("name", SAME)
def test_steps_do_what_the_script_does(name: str, tmp_path: Path) -> None:
    compare(SAME[name], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("seed", range(8))
def test_so_do_scripts_made_of_several(seed: int, tmp_path: Path) -> None:
    """Options, variables and functions of one part reach into the next."""
    parts = sorted(set(SAME) - {"early exit", "exit in a function", "RANDOM", "a value made once", "its own name"})
    chosen = random.Random(seed).sample(parts, 4)
    compare("".join(f"mkdir -p d{n}\ncd d{n}\n{SAME[name]}cd ..\n" for n, name in enumerate(chosen)), tmp_path)


def test_independent_commands_become_steps_of_their_own() -> None:
    assert runs("set -e\nmake a\nmake b\n") == ["make a", "make b"]
    assert len(runs(SAME["functions"])) == 2
    assert len(runs(SAME["cd"])) == 4
    assert len(runs(SAME["here-documents"])) == 3
    assert len(runs("while read -r l; do\n  x $l\ndone <in\nmake r -r\n")) == 2
    assert len(runs(SAME["PWD is that of its place"])) >= 3


def test_what_depends_on_one_shell_stays_in_one_step() -> None:
    assert len(runs("make a\ntrap 'rm x' EXIT\nmake b\nmake c\n")) == 2
    assert len(runs("make a\nserver &\nmake b\nkill $!\n")) == 2
    assert len(runs("if x; then A=1; fi\nmake b\nmake $A\nmake c\n")) == 2


def test_the_shell_is_started_with_the_scripts_own_options() -> None:
    assert draft("#!/bin/bash -e\nset -o pipefail\nmake\n").shell == ""
    assert draft("#!/bin/sh\nset -e\nmake\n").shell == "sh"
    assert draft("#!/bin/sh\nset -eu\nmake\n").shell == "sh -e -u {0}"
    assert draft("set -euxo pipefail\nmake\n").shell == "bash --noprofile --norc -e -u -x -o pipefail {0}"
    assert draft("make\n").shell == "bash --noprofile --norc {0}"


def test_what_a_person_should_know_is_noted() -> None:
    assert "went on after a command that failed" in draft_text(draft("make a\nmake b\n"))
    assert "takes arguments" in draft_text(draft("set -e\nmake $1\n"))
    assert "takes arguments" not in draft_text(draft("set -e\nf() { make $1; }\nf x\nawk '{print $1}' x\n"))
    whole = draft_text(draft("set -e\nmake (\n"))
    assert "Not split into steps" in whole
    assert "went on" not in whole


def test_comments_stand_above_their_step() -> None:
    steps = draft("#!/bin/sh\n# About it all\nset -e\n\n# Build: it's slow\nmake\n# The end\n").steps
    assert steps[0].comments == ("About it all", "Build: it's slow")


def test_literal_exports_before_the_first_step_become_env() -> None:
    made = draft("set -e\nexport MODE='fast and good'\nexport HERE=$PWD\nmake\nexport LATE=1\nmake x\n")
    assert made.env == {"MODE": "fast and good"}
    assert "export LATE=1" in made.steps[-1].run
    assert "LATE" not in made.steps[0].run


@pytest.mark.parametrize(
    ("text", "said"), [("#!/usr/bin/env python3\nx\n", "written for python3"), ("# nothing\n", "no command")]
)
def test_what_is_no_script_for_a_shell_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        draft(text)
