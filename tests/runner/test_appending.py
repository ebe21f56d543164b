"""What is appended is on the disk when it should be, and costs as little as it can."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner import appending
from checkpoint_action.runner.appending import AppendedFile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "file"
    found.write_bytes(b"old\n")
    return found


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kinds of the syncs, in order."""
    found: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: found.append("all"))
    monkeypatch.setattr(appending, "_sync_data", lambda _: found.append("data"))
    return found


def test_only_what_needs_new_room_waits_for_more_than_the_data(path: Path, syncs: list[str]) -> None:
    file = AppendedFile(path)
    for number in range(5):
        file.append(b"%d\n" % number)
    assert syncs == ["all", "data", "data", "data", "data"]
    assert path.read_bytes().rstrip(b"\0") == b"old\n0\n1\n2\n3\n4\n"
    file.append(b"x" * (1 << 17))
    file.append(b"y")
    assert syncs[5:] == ["all", "data"]
    file.close()
    assert path.read_bytes() == b"old\n0\n1\n2\n3\n4\n" + b"x" * (1 << 17) + b"y", "the room is gone"


def test_what_is_not_synced_is_with_the_next_that_is(path: Path, syncs: list[str]) -> None:
    file = AppendedFile(path)
    assert file.is_synced
    file.append(b"a", sync=False)
    assert (file.is_synced, syncs) == (False, [])
    file.append(b"b")
    assert (file.is_synced, syncs) == (True, ["all"]), "it has grown with the first"
    file.append(b"c", sync=False)
    file.sync()
    assert (file.is_synced, syncs) == (True, ["all", "data"])
    file.close()


def test_where_there_is_no_room_ahead_it_goes_on_without(
    path: Path, syncs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = appending._write_at

    def small(fd: int, data: memoryview, at: int) -> int:
        if at + len(data) > 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data, at)

    monkeypatch.setattr(appending, "_write_at", small)
    file = AppendedFile(path)
    file.append(b"new\n")
    assert path.read_bytes() == b"old\nnew\n"
    with pytest.raises(OSError, match="No space left"):
        file.append(b"x" * 100)
    assert path.read_bytes() == b"old\nnew\n", "what was written of it is taken back"
    file.append(b"more\n")
    assert syncs == ["all", "all"]
    file.close()
    assert path.read_bytes() == b"old\nnew\nmore\n"


def test_a_file_that_was_replaced_is_not_in_place(path: Path) -> None:
    file = AppendedFile(path)
    assert file.is_in_place()
    path.unlink()
    assert not file.is_in_place()
    path.write_bytes(b"another")
    assert not file.is_in_place()
    file.append(b"x")
    file.close()
    assert path.read_bytes() == b"another"
