"""The PowerShell script, loaded into a real PowerShell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.completion.options import flags
from checkpoint_action.completion.scripts import script
from checkpoint_action.grammar import SHELLS, VERBS
from tests.console import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

PWSH = shutil.which("pwsh")
needs_pwsh = pytest.mark.skipif(PWSH is None, reason="PowerShell (pwsh) is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "checkpoint.yml").write_text("steps:\n- {id: first, run: x}\n- {id: second, run: x}\n")
    return tmp_path


def ask(folder: Path, line: str) -> set[str]:
    """What is offered at the end of a line."""
    whole = f"checkpoint-run {line}"
    text = (
        f"checkpoint-run completion powershell | Out-String | Invoke-Expression; "
        f"(TabExpansion2 -inputScript {json.dumps(whole)} -cursorColumn {len(whole)}).CompletionMatches"
        " | ForEach-Object CompletionText"
    )
    done = subprocess.run(
        [str(PWSH), "-NoProfile", "-NonInteractive", "-Command", text],
        cwd=folder,
        env={**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(done.stdout.split())


@needs_pwsh
def test_verbs_options_ids_and_choices(folder: Path) -> None:
    assert ask(folder, "") == {*VERBS, "help"}
    assert ask(folder, "doctor -") == set(flags("doctor"))
    assert ask(folder, "--only ") == {"first", "second"}
    assert ask(folder, "reset f") == {"first"}
    assert ask(folder, "graph --format ") == {"text", "mermaid", "svg"}
    assert ask(folder, "completion ") == set(SHELLS)
    assert ask(folder, "store ") == {"ls", "prune"}


def test_brackets_and_quotes_of_the_script_are_balanced() -> None:
    """A look that needs no PowerShell: outside of quotes, what is opened is closed."""
    opened: list[str] = []
    for line in script("powershell").splitlines():
        outside = line.split("#")[0] if line.lstrip().startswith("#") else line
        parts = outside.replace('"$wordToComplete*"', "").split("'")
        assert len(parts) % 2 == 1, line
        for char in "".join(parts[::2]):
            if char in "({[":
                opened.append(char)
            elif char in ")}]":
                assert opened.pop() == {")": "(", "}": "{", "]": "["}[char], line
    assert opened == []
