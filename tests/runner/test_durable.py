"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.durable import replace_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_what_stands_in_the_way_of_a_new_file_is_not_written_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("somebody's")
    (tmp_path / "state.tmp").symlink_to(other)
    replace_file(tmp_path / "state", b"ours")
    assert other.read_text() == "somebody's"
    assert (tmp_path / "state").read_bytes() == b"ours"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "state"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such modes there")
def test_what_a_kill_has_left_makes_no_file_readable_for_all(tmp_path: Path) -> None:
    left = tmp_path / "state.tmp"
    left.write_bytes(b"half")
    left.chmod(0o666)
    replace_file(tmp_path / "state", b"ours")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["state"]
