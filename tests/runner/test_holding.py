"""The job's lock at a glance: the same lock that a run holds, and named like it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import LockHeldError
from checkpoint_action.runner.holding import hold, is_held, name_holder
from checkpoint_action.runner.lock import JobLock

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nobody glances there")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lock"
    path.touch()
    return path


def test_who_holds_it_keeps_a_run_out_and_is_named(path: Path) -> None:
    assert not is_held(str(path))
    held = hold(str(path))
    assert held is not None
    name_holder(held)
    assert is_held(str(path))
    assert hold(str(path)) is None
    with pytest.raises(LockHeldError, match=f"another run holds this job .process {os.getpid()}."):
        JobLock(path).acquire()
    os.close(held)
    assert not is_held(str(path))


def test_a_run_keeps_it_out(path: Path) -> None:
    lock = JobLock(path)
    lock.acquire()
    assert hold(str(path)) is None
    lock.release()
    assert not is_held(str(path))


def test_nothing_is_made_and_no_link_followed(tmp_path: Path, path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    for name in ("none", "link"):
        with pytest.raises(OSError, match=r"."):
            hold(str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["link", "lock"]
