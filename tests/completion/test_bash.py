"""The bash script, loaded into a real bash that is asked as readline would ask."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.completion.options import flags
from checkpoint_action.grammar import SHELLS, VERBS
from tests.console import PROGRAM, Console

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")

ASK = """
source <("$CR" completion bash) || exit 9
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_checkpoint_run
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "other.yml").write_text("steps:\n- {id: third, run: x}\n- {id: broken, nonsense: 1}\n")
    (tmp_path / "checkpoint.yml").write_text("steps:\n- {id: first, run: x}\n- {id: second, run: x}\n")
    return tmp_path


def ask(folder: Path, *words: str) -> set[str]:
    """What is offered for the last of the words."""
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", str(PROGRAM), *words],
        cwd=folder,
        env={"CR": str(PROGRAM), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "command not found" not in done.stderr
    return set(done.stdout.split("\n")) - {""}


def test_verbs_come_first(folder: Path) -> None:
    assert ask(folder, "") == {*VERBS, "help"}
    assert ask(folder, "s") == {"save", "schema", "status", "store"}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_its_options(folder: Path, verb: str) -> None:
    assert ask(folder, verb, "-") == set(flags(verb))


def test_without_a_verb_the_options_are_those_of_run(folder: Path) -> None:
    assert ask(folder, "--ret") == {"--retry", "--retry-on"}
    assert ask(folder, "--quiet", "--jit") == {"--jitter"}


@pytest.mark.parametrize(
    "words",
    [("--only", ""), ("run", "--from", ""), ("--only", "first", ""), ("--force", ""), ("reset", ""), ("logs", "")],
)
def test_step_ids_of_the_job_file(folder: Path, words: tuple[str, ...]) -> None:
    assert ask(folder, *words) == {"first", "second"}


@pytest.mark.slow
def test_step_ids_of_the_file_folder_or_steps_that_were_named(folder: Path) -> None:
    assert ask(folder, "accept", "-f", "other.yml", "") == {"third", "broken"}
    assert ask(folder, "-C", "sub dir", "-f", "../other.yml", "--from", "t") == {"third"}
    assert ask(folder, "--step", "a:true", "--step", "b:true", "--from", "") == {"a", "b"}
    assert ask(folder, "-C", "sub dir", "--from", "") == set()


def test_files_folders_and_choices(folder: Path) -> None:
    assert ask(folder, "-f", "ot") == {"other.yml"}
    assert ask(folder, "--state-dir", "") == {"sub dir"}
    assert ask(folder, "init", "ch") == {"checkpoint.yml"}
    assert ask(folder, "graph", "--format", "") == {"text", "mermaid", "svg"}
    assert ask(folder, "graph", "--format", "=", "s") == {"svg"}  # as readline cuts --format=s
    assert ask(folder, "completion", "") == set(SHELLS)
    assert ask(folder, "--report", "ch") == {"checkpoint.yml"}
    assert ask(folder, "report", "ch") == {"checkpoint.yml"}


def test_words_right_behind_a_verb(folder: Path) -> None:
    assert ask(folder, "store", "") == {"ls", "prune"}
    assert ask(folder, "store", "ls", "") == set()
    assert ask(folder, "store", "prune", "--k") == {"--keep"}
    assert ask(folder, "help", "pu") == {"pull", "push"}


def test_nothing_is_offered_for_a_duration(folder: Path) -> None:
    assert ask(folder, "--timeout", "") == set()


def test_a_damaged_job_file_offers_nothing_and_says_nothing(folder: Path) -> None:
    (folder / "checkpoint.yml").write_text("steps: [\n")
    asked = Console(folder).run("__steps", "--only", "")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")
