"""Single steps are forgotten for good: neither file of the state ever brings them back."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from checkpoint_action.errors import StateWriteError
from checkpoint_action.model import Record, Status
from checkpoint_action.runner.appending import AppendedFile
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.statefile import JournalReader, Snapshot, forgetting_line, journal_line

if TYPE_CHECKING:
    from pathlib import Path


def record(step: str, status: Status = Status.DONE) -> Record:
    return Record(step, status, "f" * 64, "make", exit_code=0)


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    """Where two steps are recorded as done, by a run that ended well."""
    paths = StatePaths(tmp_path, "demo")
    state = opened(paths)
    for step in ("a", "b"):
        state.start(record(step, Status.RUNNING))
        state.finish(record(step))
    state.close()
    return paths


def opened(paths: StatePaths) -> Journal:
    state = Journal(paths, load(paths))
    state.open()
    return state


def statuses(paths: StatePaths) -> dict[str, str]:
    return {step: one.status.value for step, one in load(paths).records.items()}


LEFT = {"b": "done"}


def test_a_step_is_forgotten_and_the_others_stay(paths: StatePaths) -> None:
    state = opened(paths)
    state.forget(["a"])
    assert state.records == {"b": record("b")}
    state.close()
    found = load(paths)
    assert (found.records, found.warnings, found.settled) == ({"b": record("b")}, (), True)


@pytest.mark.parametrize("lost", ["snapshot", "journal"])
def test_either_file_alone_has_forgotten_it(paths: StatePaths, lost: str) -> None:
    state = opened(paths)
    state.forget(["a"])
    state.close()
    getattr(paths, lost).unlink()
    assert statuses(paths) == LEFT


def test_it_is_on_the_disk_when_it_returns(paths: StatePaths) -> None:
    state = opened(paths)
    with mock.patch.object(os, "fsync", wraps=os.fsync) as fsync:
        state.forget(["a"])
    assert fsync.call_count >= 1
    assert statuses(paths) == LEFT  # and no close was needed for it
    assert not paths.snapshot.exists()


def test_it_stays_forgotten_when_the_process_dies_before_the_close(paths: StatePaths) -> None:
    opened(paths).forget(["a"])
    after = opened(paths)
    after.finish(record("c"))
    after.close()
    assert statuses(paths) == {"b": "done", "c": "done"}


def test_a_later_record_is_a_new_one(paths: StatePaths) -> None:
    state = opened(paths)
    state.forget(["a"])
    state.start(record("a", Status.RUNNING))
    assert statuses(paths) == {"a": "running", "b": "done"}
    state.close()
    assert statuses(paths) == {"a": "running", "b": "done"}


def test_what_cannot_be_written_is_told_and_nothing_is_forgotten(paths: StatePaths) -> None:
    state = opened(paths)
    full = mock.patch.object(AppendedFile, "append", side_effect=OSError(errno.ENOSPC, "No space left on device"))
    with full, pytest.raises(StateWriteError, match="No space left"):
        state.forget(["a"])
    assert statuses(paths) == {"a": "done", "b": "done"}
    opened(paths).close()
    assert statuses(paths) == {"a": "done", "b": "done"}


OLD = Snapshot(0, {"a": record("a"), "b": record("b")})


def replay(data: bytes) -> dict[str, Status]:
    reader = JournalReader(OLD, "journal")
    reader.read(data)
    return {step: one.status for step, one in reader.records.items()}


def spoil(line: bytes) -> bytes:
    return line[:20] + bytes([line[20] ^ 1]) + line[21:]


def test_one_damaged_line_is_made_up_for_by_its_twin() -> None:
    line = forgetting_line(1, ["a"])
    assert replay(line) == replay(line + spoil(line)) == replay(spoil(line) + line) == {"b": Status.DONE}


def test_where_both_are_damaged_no_older_record_is_trusted() -> None:
    line = forgetting_line(1, ["a"])
    assert replay(spoil(line) * 2) == {"a": Status.RUNNING, "b": Status.RUNNING}
    # What the damage made doubtful is forgotten by a whole line all the same.
    assert replay(spoil(line) * 2 + forgetting_line(2, ["a", "b"])) == {}


def test_what_the_snapshot_knows_already_is_not_done_again() -> None:
    reader = JournalReader(Snapshot(5, {"a": record("a")}), "journal")
    reader.read(forgetting_line(5, ["a"]) + journal_line(6, record("b")))
    assert reader.records == {"a": record("a"), "b": record("b")}
