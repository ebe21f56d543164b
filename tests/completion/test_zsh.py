"""The zsh script, loaded into a real zsh on a terminal of its own, where TAB is pressed."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.completion.options import options_of
from checkpoint_action.grammar import SHELLS, VERBS
from tests.console import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ZSH = shutil.which("zsh")
pytestmark = pytest.mark.skipif(ZSH is None or sys.platform == "win32", reason="zsh is not installed")

# Instead of showing what is offered, print it between two marks: the matches as the script hands them to compadd.
SET_UP = """
PS1= ; unsetopt zle_bracketed_paste prompt_cr 2>/dev/null
autoload -Uz compinit && compinit -u -D
zstyle ':completion:*' insert-tab false
source <(checkpoint-run completion zsh)
typeset -ga offered
compadd() {
  local -a got
  [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]] && { builtin compadd "$@"; return }
  builtin compadd -O got "$@"
  offered+=("${got[@]}")
  builtin compadd "$@"
}
show() {
  offered=()
  _main_complete
  compstate[insert]= compstate[list]=
  print -rl -- '<<' "${offered[@]}" '>>' >"$ANSWER"
}
zle -C show complete-word show
bindkey '^T' show
print -r "re""ady"
"""


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Callable[[str], set[str]]]:
    """A function that tells what is offered at the end of a line."""
    import pty  # noqa: PLC0415  # not on Windows

    (tmp_path / "sub").mkdir()
    (tmp_path / "checkpoint.yml").write_text("steps:\n- {id: first, run: x}\n- {id: second, run: x}\n")
    answer = tmp_path / ".answer"
    (tmp_path / ".setup").write_text(SET_UP)
    main, other = pty.openpty()
    zsh = subprocess.Popen(
        [str(ZSH), "-f", "-i"],
        cwd=tmp_path,
        env={"PATH": f"{PROGRAM.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb", "ANSWER": str(answer)},
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)

    def wait(done: Callable[[bytes], bool]) -> None:
        seen, end = b"", time.monotonic() + 60
        while not done(seen):
            assert time.monotonic() < end, seen.decode(errors="replace")
            if select.select([main], [], [], 0.05)[0]:
                seen += os.read(main, 65536)

    def offered(line: str) -> set[str]:
        answer.unlink(missing_ok=True)
        os.write(main, f"\x15checkpoint-run {line}\x14".encode())
        wait(lambda _: answer.exists() and answer.read_text().endswith(">>\n"))
        words = answer.read_text().splitlines()[1:-1]
        return {re.sub(r"[:=]$", "", word.strip()) for word in words}

    os.write(main, b" source ./.setup\r")
    wait(lambda seen: b"ready" in seen.replace(b'"', b""))
    try:
        yield offered
    finally:
        zsh.kill()
        zsh.wait()
        os.close(main)


def test_verbs_come_first(ask: Callable[[str], set[str]]) -> None:
    assert ask("") >= {*VERBS, "help"}


def test_each_verb_has_its_options(ask: Callable[[str], set[str]]) -> None:
    for verb in VERBS:
        wanted = {flag for option in options_of(verb) for flag in option.flags if flag.startswith("--")}
        assert {word for word in ask(f"{verb} --") if word.startswith("--")} == wanted, verb


def test_step_ids_files_and_choices(ask: Callable[[str], set[str]]) -> None:
    for line in ("--only ", "run --from ", "run --only first ", "reset ", "logs "):
        assert ask(line) == {"first", "second"}, line
    assert ask("graph --format ") == {"text", "mermaid", "svg"}
    assert ask("completion ") == set(SHELLS)
    for line in ("-f ", "report ", "--report "):
        assert "checkpoint.yml" in ask(line), line
    assert ask("store ") == {"ls", "prune"}
    assert ask("help pu") == {"pull", "push"}
