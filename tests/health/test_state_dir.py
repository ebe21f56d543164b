"""The look at the state dir: it tries what a run does, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.health.finding import Finding, Level
from checkpoint_action.health.state_dir import state_dir

if TYPE_CHECKING:
    from pathlib import Path


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.what: finding for finding in findings}


def test_a_good_folder_is_good_and_as_it_was(tmp_path: Path) -> None:
    found = by_name(state_dir(tmp_path))
    assert list(found) == ["state dir", "free space", "locks", "clock"]
    assert {name: one.level for name, one in found.items() if name != "free space"} == dict.fromkeys(
        ("state dir", "locks", "clock"), Level.OK
    )
    assert found["locks"].found == "work, also between processes"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_to_be_made_is_not_made(tmp_path: Path) -> None:
    found = by_name(state_dir(tmp_path / "a" / "b"))
    assert f"not there yet, it will be made; tried in {tmp_path}" in found["state dir"].found
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (found,) = state_dir(tmp_path / "file")
    assert (found.what, found.level) == ("state dir", Level.PROBLEM)
    assert "--state-dir" in found.remedy


@pytest.mark.parametrize(
    ("free", "level"), [(50 << 20, Level.PROBLEM), (500 << 20, Level.WARNING), (2 << 30, Level.OK)]
)
def test_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: Level) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert by_name(state_dir(tmp_path))["free space"].level is level


@pytest.mark.parametrize(
    ("shift", "level", "said"),
    [
        (0, Level.OK, "agree"),
        (-60, Level.WARNING, r"6\d s ahead of this machine's clock"),
        (60, Level.WARNING, r"[56]\d s behind"),
    ],
)
def test_the_clock_of_the_files_against_ours(tmp_path: Path, shift: int, level: Level, said: str) -> None:
    found = by_name(state_dir(tmp_path, lambda: os.stat(tmp_path).st_mtime + shift))["clock"]
    assert found.level is level
    assert re.search(said, found.found)  # what it took on a slow disk apart


def test_a_clock_from_before_this_program_is_wrong(tmp_path: Path) -> None:
    found = by_name(state_dir(tmp_path, lambda: 0.0))["clock"]
    assert (found.level, found.found) == (Level.PROBLEM, "this machine's clock says 1970-01-01")
    assert time.time() > 0


@pytest.mark.skipif(sys.platform == "win32", reason="locks by flock")
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl  # noqa: PLC0415  # not on Windows

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    found = by_name(state_dir(tmp_path))["locks"]
    assert (found.level, "gives no locks" in found.found) == (Level.PROBLEM, True)


@pytest.mark.skipif(sys.platform == "win32", reason="locks by flock")
def test_locks_that_no_other_process_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network file system mounted with locks of this machine alone: ours seems to be taken."""
    import fcntl  # noqa: PLC0415  # not on Windows

    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    found = by_name(state_dir(tmp_path))["locks"]
    assert (found.level, found.found) == (Level.PROBLEM, "one that is taken is not seen by another process")
    assert list(tmp_path.iterdir()) == []
