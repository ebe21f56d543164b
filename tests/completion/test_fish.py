"""The fish script, loaded into a real fish."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.completion.options import options_of
from checkpoint_action.grammar import SHELLS, VERBS
from tests.console import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

FISH = shutil.which("fish")
pytestmark = pytest.mark.skipif(FISH is None, reason="fish is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "checkpoint.yml").write_text("steps:\n- {id: first, run: x}\n- {id: second, run: x}\n")
    return tmp_path


def ask(folder: Path, line: str) -> set[str]:
    """What is offered at the end of a line."""
    text = f"checkpoint-run completion fish | source; complete -C {shlex.quote(f'checkpoint-run {line}')}"
    done = subprocess.run(
        [str(FISH), "--no-config", "-c", text],
        cwd=folder,
        env={"PATH": f"{PROGRAM.parent}:/usr/bin:/bin", "HOME": str(folder), "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return {row.partition("\t")[0].removesuffix("=") for row in done.stdout.splitlines()}


def test_verbs_come_first(folder: Path) -> None:
    assert ask(folder, "") == {*VERBS, "help"}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_its_long_options(folder: Path, verb: str) -> None:
    assert ask(folder, f"{verb} --") == {option.flags[-1] for option in options_of(verb)}


@pytest.mark.parametrize("line", ["--only ", "run --from ", "--only first ", "plan --force ", "reset ", "logs "])
def test_step_ids_of_the_job_file(folder: Path, line: str) -> None:
    assert ask(folder, line) == {"first", "second"}


def test_files_folders_choices_and_durations(folder: Path) -> None:
    assert ask(folder, "-f che") == {"checkpoint.yml"}
    assert ask(folder, "--state-dir s") == {"sub/"}
    assert ask(folder, "graph --format ") == {"text", "mermaid", "svg"}
    assert ask(folder, "graph --format=s") == {"--format=svg"}
    assert ask(folder, "completion ") == set(SHELLS)
    assert ask(folder, "report che") == ask(folder, "--report che") == {"checkpoint.yml"}
    assert ask(folder, "store ") == {"ls", "prune"}
    assert ask(folder, "store ls ") == set()
    assert ask(folder, "help pu") == {"pull", "push"}
    assert ask(folder, "run --timeout ") == set()
