"""Programs are found where the system would find them."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.programs import program_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files are executable by their names there")


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Two folders with a program; before it in the first a file that is none, and in another a folder of its name."""
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
    (tmp_path / "first/tool").touch(mode=0o644)
    (tmp_path / "second/tool").mkdir()
    (tmp_path / "third/tool").touch(mode=0o755)
    return [str(tmp_path / name) for name in ("missing", "first", "second", "third")]


def test_what_cannot_be_executed_is_passed_over(folders: list[str]) -> None:
    found = program_in(folders, "tool")
    assert found == f"{folders[-1]}/tool"
    assert found == shutil.which("tool", path=":".join(folders))
    assert program_in(folders, "other") is None


@pytest.mark.parametrize("relative", ["", ".", "bin"])
def test_what_depends_on_the_folder_of_the_command_is_left_to_the_system(folders: list[str], relative: str) -> None:
    assert program_in([relative, *folders], "tool") is None
    assert program_in([*folders, relative], "tool") is not None
