"""The durable state of a job: whatever happens to its files, no half step is ever taken for done."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import StateError, StateWriteError
from checkpoint_action.model import Record, Status
from checkpoint_action.runner import appending, durable, journal
from checkpoint_action.runner.journal import Journal, StatePaths, forget, load
from tests.runner.jobs import ROOT, as_nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


def record(step: str = "a", status: Status = Status.DONE, number: int = 0, **more: Any) -> Record:
    """A record that differs from every other in its number."""
    return Record(step, status, "f" * 64, "make", {"command": "0" * 64}, tries=number, **more)


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    return StatePaths(tmp_path, "demo")


def opened(paths: StatePaths) -> Journal:
    state = Journal(paths, load(paths))
    state.open()
    return state


def ran(paths: StatePaths, *steps: str) -> None:
    """A run that recorded steps and ended well."""
    state = opened(paths)
    for step in steps:
        state.start(record(step, Status.RUNNING))
        state.finish(record(step))
    state.close()


def test_names_of_the_files(paths: StatePaths) -> None:
    ran(paths, "a")
    assert sorted(os.listdir(paths.folder)) == [".checkpoint-run-demo.journal", ".checkpoint-run-demo.json"]
    assert paths.lock.name == ".checkpoint-run-demo.lock"


@pytest.mark.skipif(sys.platform == "win32", reason="modes as POSIX has them")
def test_the_files_are_our_own_business(paths: StatePaths) -> None:
    ran(paths, "a")
    assert {path.stat().st_mode & 0o777 for path in paths.folder.iterdir()} == {0o600}


def test_no_state_is_an_empty_state(paths: StatePaths) -> None:
    found = load(paths)
    assert (found.records, found.sequence, found.warnings) == ({}, 0, ())
    assert os.listdir(paths.folder) == []


def test_what_was_recorded_is_loaded(paths: StatePaths) -> None:
    ran(paths, "a", "b")
    found = load(paths)
    assert found.records == {"a": record("a"), "b": record("b")}
    assert found.settled
    assert found.warnings == ()


def test_a_run_that_died_in_a_step_left_it_running(paths: StatePaths) -> None:
    ran(paths, "a")
    state = opened(paths)
    state.start(record("a", Status.RUNNING))
    assert load(paths).records["a"].status is Status.RUNNING


def written(paths: StatePaths) -> int:
    """Bytes of the journal, without the room that is made ahead."""
    return len(paths.journal.read_bytes().rstrip(b"\0"))


@contextmanager
def syncs_counted() -> Iterator[Callable[[], int]]:
    """Counts how often the journal is synced, in whatever way."""
    with (
        mock.patch.object(os, "fsync", wraps=os.fsync) as whole,
        mock.patch.object(appending, "_sync_data", wraps=appending._sync_data) as data,
    ):
        yield lambda: whole.call_count + data.call_count


def without_syncs() -> AbstractContextManager[object]:
    """No waiting for the disk with what is appended."""
    return mock.patch.object(appending, "_sync_data")


def test_each_transition_is_on_the_disk_when_it_returns(paths: StatePaths) -> None:
    state = opened(paths)
    with syncs_counted() as count:
        state.start(record("a", Status.RUNNING))
        assert count() == 1
        assert load(paths).records["a"].status is Status.RUNNING
        state.finish(record("a"))
        assert count() == 2
    assert load(paths).records["a"].status is Status.DONE


def test_the_cost_of_a_record_does_not_grow_with_their_number(paths: StatePaths) -> None:
    state = opened(paths)
    sizes = [written(paths)]
    for number in range(50):
        state.finish(record(f"step-{number:02}"))
        sizes.append(written(paths))
    first, *_, last = [after - before for before, after in pairwise(sizes)]
    assert last - first < 5
    assert not load(paths).settled


def test_a_settled_state_is_not_written_again(paths: StatePaths) -> None:
    ran(paths, "a")
    inodes = {path.name: path.stat().st_ino for path in paths.folder.iterdir()}
    opened(paths).close()
    assert {path.name: path.stat().st_ino for path in paths.folder.iterdir()} == inodes


def test_merged_records_are_written_with_the_next_fold(paths: StatePaths) -> None:
    state = Journal(paths, load(paths))
    state.merge({"a": record("a")})
    state.open()
    state.close()
    assert load(paths).records == {"a": record("a")}


def test_nothing_is_recorded_before_the_journal_is_open(paths: StatePaths) -> None:
    with pytest.raises(StateWriteError):
        Journal(paths, load(paths)).start(record())


def test_closing_twice_is_closing_once(paths: StatePaths) -> None:
    state = opened(paths)
    state.close()
    state.close()


@pytest.mark.parametrize("content", [b"", b"\0" * 500, b"garbage", b'{"format": 1'])
def test_a_damaged_snapshot_is_moved_aside_once_with_one_line(paths: StatePaths, content: bytes) -> None:
    ran(paths, "a")
    paths.snapshot.write_bytes(content)
    found = load(paths)
    assert found.records == {"a": record("a")}
    assert len(found.warnings) == 1
    assert str(paths.snapshot) in found.warnings[0]
    assert "\n" not in found.warnings[0]
    opened(paths).close()
    assert load(paths).warnings == ()
    aside = paths.folder / ".checkpoint-run-demo.json.damaged-1"
    assert aside.read_bytes() == content
    paths.snapshot.write_bytes(content)
    opened(paths).close()
    assert (paths.folder / ".checkpoint-run-demo.json.damaged-2").exists()
    assert load(paths).records == {"a": record("a")}


def test_both_files_damaged_is_an_empty_state_and_no_failure_for_ever(paths: StatePaths) -> None:
    ran(paths, "a")
    paths.snapshot.write_bytes(b"")
    paths.journal.write_bytes(b"\0" * 100)
    assert load(paths).records == {}
    ran(paths, "a")
    assert load(paths).records == {"a": record("a")}
    assert load(paths).warnings == ()


def test_a_damaged_journal_line_is_said_in_one_line(paths: StatePaths) -> None:
    ran(paths, "a")
    with paths.journal.open("ab") as file:
        file.write(b"garbage\n")
    found = load(paths)
    assert found.records == {"a": record("a")}
    assert len(found.warnings) == 1
    assert str(paths.journal) in found.warnings[0]


def test_a_newer_state_is_refused_untouched(paths: StatePaths) -> None:
    paths.snapshot.write_text('{"format": 99}')
    with pytest.raises(StateError, match=r"format 99.*--state-dir"):
        load(paths)
    assert paths.snapshot.read_text() == '{"format": 99}'


@pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")
def test_a_state_that_may_not_be_read_is_refused_and_named(public: Path) -> None:
    paths = StatePaths(public, "demo")
    ran(paths, "a")
    with as_nobody(paths.folder):
        paths.journal.chmod(0)
        with pytest.raises(StateError, match=r"cannot read .*\.journal"):
            load(paths)


def test_forgetting_removes_both_files(paths: StatePaths) -> None:
    assert forget(paths) is False
    ran(paths, "a")
    assert forget(paths) is True
    assert load(paths).records == {}
    assert os.listdir(paths.folder) == []


@pytest.mark.parametrize("dies_at", ["snapshot", "journal", "after snapshot"])
def test_a_death_while_folding_loses_nothing(paths: StatePaths, dies_at: str) -> None:
    ran(paths, "a")
    state = opened(paths)
    state.start(record("b", Status.RUNNING))
    state.finish(record("b"))
    state.start(record("a", Status.RUNNING))
    real = durable.replace_file

    class Killed(BaseException):
        pass

    def die(path: Path, data: bytes) -> None:
        if dies_at == path.suffix[1:].replace("json", "snapshot"):
            raise Killed
        real(path, data)
        if dies_at == "after snapshot":
            raise Killed

    with mock.patch.object(journal, "replace_file", die), pytest.raises(Killed):
        state.close()
    found = load(paths)
    assert found.records == {"a": record("a", Status.RUNNING), "b": record("b")}
    ran(paths, "a")
    assert load(paths).records["a"] == record("a")


@pytest.mark.parametrize("length", [1, 200, 700])
def test_an_end_and_a_start_that_are_synced_together_cost_nothing_else_whatever_sectors_of_them_are_lost(
    paths: StatePaths, length: int
) -> None:
    """A loss of power in the sync: any of the sectors may be on the disk, none of the others is."""
    ran(paths, "a", "b")
    state = opened(paths)
    end = Record("c", Status.DONE, "f" * 64, "x" * length)
    state.start(replace(end, status=Status.RUNNING))
    before = written(paths)
    state.finish(end, sync=False)
    state.start(Record("d", Status.RUNNING, "e" * 64, "y" * length))
    whole = paths.journal.read_bytes()
    first, last = before // 512, (written(paths) - 1) // 512
    sectors = range(first, last + 1)
    assert len(sectors) < 10
    for kept in product([False, True], repeat=len(sectors)):
        data = bytearray(whole)
        for sector, is_kept in zip(sectors, kept, strict=True):
            if not is_kept:
                data[max(before, sector * 512) : (sector + 1) * 512] = bytes(
                    (sector + 1) * 512 - max(before, sector * 512)
                )
        paths.journal.write_bytes(data)
        found = {step: one.status for step, one in load(paths).records.items()}
        assert (found.pop("a"), found.pop("b")) == (Status.DONE, Status.DONE), kept
        assert found.pop("c") in (Status.RUNNING, Status.DONE), kept
        assert found.pop("d", Status.RUNNING) is Status.RUNNING, kept
        assert not found
    state.close()


# Random histories, random damage.

STEPS = ["a", "b", "c"]
ENDS = [Status.DONE, Status.DONE, Status.FAILED, Status.TIMEOUT, Status.INTERRUPTED]


@contextmanager
def fresh_paths() -> Iterator[StatePaths]:
    """A folder of its own for one example, without waiting for disks."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(os, "fsync"), without_syncs():
        yield StatePaths(Path(folder), "demo")


class History:
    """A random run after a random run, and what was true at each moment of the second.

    :ivar moments: (bytes of the journal that say it, all records then), oldest first.
    """

    def __init__(self, paths: StatePaths, data: st.DataObject) -> None:
        number = 0
        state = opened(paths)
        for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=4)):
            number += 1
            state.finish(record(step, data.draw(st.sampled_from(ENDS)), number))
        state.close()
        state = opened(paths)
        size = written(paths)
        self.moments = [(0, dict(state.records))]
        for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=6)):
            for status in [Status.RUNNING, *data.draw(st.lists(st.sampled_from(ENDS), max_size=1))]:
                number += 1
                one = record(step, status, number)
                copies = 2 if status is Status.RUNNING else 1
                (state.start if copies == 2 else state.finish)(one)
                grown = written(paths)
                self.moments.append((size + (grown - size) // copies, dict(state.records)))
                size = grown
        self.whole = data.draw(st.integers(0, 3)) == 3
        if self.whole:
            state.close()
            self.moments = [(0, dict(state.records))]
        elif state._file is not None:
            state._file.close()  # without the room that is made ahead: cut where something was

    def true_at(self, size: int) -> dict[str, Record]:
        """What is true for a journal of which so many bytes are left."""
        return [records for needed, records in self.moments if needed <= size + 1][-1]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_an_undamaged_state_loses_nothing(data: st.DataObject) -> None:
    with fresh_paths() as paths:
        history = History(paths, data)
        found = load(paths)
        assert found.records == history.moments[-1][1]
        assert found.warnings == ()
        opened(paths).close()
        assert load(paths).records == history.moments[-1][1]
        assert load(paths).settled


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_either_file_alone_is_enough(data: st.DataObject) -> None:
    with fresh_paths() as paths:
        history = History(paths, data)
        truth = history.moments[-1][1]
        if history.whole and data.draw(st.booleans()):
            paths.journal.unlink()
        else:
            paths.snapshot.unlink()
        assert load(paths).records == truth
        opened(paths).close()
        assert load(paths).records == truth


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_journal_cut_anywhere_says_what_was_true_then(data: st.DataObject) -> None:
    with fresh_paths() as paths:
        history = History(paths, data)
        whole = paths.journal.read_bytes()
        length = data.draw(st.integers(0, len(whole)))
        paths.journal.write_bytes(whole[:length] + b"\0" * data.draw(st.sampled_from([0, 1, 100, 5000])))
        found = load(paths)
        assert found.records == history.true_at(length)
        assert found.warnings == ()


def damaged(whole: bytes, data: st.DataObject) -> bytes:
    """Up to four bits flipped, at line ends more often than elsewhere."""
    places = [st.integers(0, len(whole) - 1)]
    if ends := [at for at, byte in enumerate(whole) if byte == 10]:
        places += [st.sampled_from(ends), st.sampled_from(ends[-3:]), st.sampled_from(ends[-3:]).map(lambda at: at - 5)]
    changed = bytearray(whole)
    for at in data.draw(st.lists(st.one_of(places), max_size=4)):
        changed[at] ^= 1 << data.draw(st.integers(0, 7))
    return bytes(changed)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.data())
def test_after_any_damage_only_what_was_done_last_counts_as_done(data: st.DataObject) -> None:
    with fresh_paths() as paths:
        history = History(paths, data)
        whole = paths.journal.read_bytes()
        length = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))
        lines = damaged(whole, data)[:length] + b"\0" * data.draw(st.sampled_from([0, 0, 3, 5000]))
        if lines or data.draw(st.booleans()):
            paths.journal.write_bytes(lines)
        else:
            paths.journal.unlink()
        if data.draw(st.booleans()):
            paths.snapshot.write_bytes(damaged(paths.snapshot.read_bytes(), data))
        found = load(paths)
        truth = history.true_at(length)
        for step, one in found.records.items():
            if one.status is Status.DONE:
                assert truth.get(step) == one
        opened(paths).close()
        again = load(paths)
        assert again.records == found.records
        assert again.warnings == ()


# Full disks.


def full(paths: StatePaths) -> None:
    """Fill the disk, then see that a transition fails and costs nothing."""
    ran(paths, "a")
    state = opened(paths)
    state.start(record("b", Status.RUNNING))
    with (paths.folder / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 512):
                pass
        except OSError:
            pass
        with pytest.raises(StateWriteError, match=r"step 'b': its done could not be recorded in .*\.journal: .*intact"):
            state.finish(record("b", log="x" * 10_000))
        assert load(paths).records == {"a": record("a"), "b": record("b", Status.RUNNING)}
        with pytest.raises(StateWriteError, match=r"cannot write .*\.json"):
            state.close()
        assert load(paths).records == {"a": record("a"), "b": record("b", Status.RUNNING)}
        assert load(paths).warnings == ()
    (paths.folder / "filler").unlink()
    ran(paths, "b")
    assert load(paths).records == {"a": record("a"), "b": record("b")}
    assert [name for name in os.listdir(paths.folder) if "tmp" in name] == []


@pytest.mark.skipif(sys.platform != "linux" or not ROOT, reason="only root mounts; the next test needs no mount")
def test_a_full_disk_costs_the_transition_only(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no mount here ({mounted.stderr.strip()}); the next test needs none")
    try:
        full(StatePaths(disk, "demo"))
    finally:
        subprocess.run(["umount", disk], check=True)


LIMITED = """
import resource, sys
from pathlib import Path
from checkpoint_action.errors import StateWriteError
from checkpoint_action.runner.journal import Journal, StatePaths, load
from tests.runner.test_journal import record, opened, ran, written
from checkpoint_action.model import Status
paths = StatePaths(Path(sys.argv[1]), "demo")
ran(paths, "a")
state = opened(paths)
state.start(record("b", Status.RUNNING))
resource.setrlimit(resource.RLIMIT_FSIZE, (written(paths) + 20, resource.RLIM_INFINITY))
try:
    state.finish(record("b"))
except StateWriteError as error:
    print(error)
state.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits as POSIX has them")
def test_a_write_that_stops_halfway_is_taken_back(paths: StatePaths) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(paths.folder)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("step 'b': its done could not be recorded")
    found = load(paths)
    assert found.records == {"a": record("a"), "b": record("b", Status.RUNNING)}
    assert found.warnings == ()
    ran(paths, "b")
    assert load(paths).records == {"a": record("a"), "b": record("b")}


@pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")
def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(public: Path) -> None:
    paths = StatePaths(public, "demo")
    ran(paths, "a")
    with as_nobody(paths.folder):
        paths.folder.chmod(0o500)
        state = Journal(paths, load(paths))
        state.merge({"b": record("b")})
        with pytest.raises(StateWriteError, match=r"cannot write the state in .*--state-dir"):
            state.open()
        assert load(paths).records == {"a": record("a")}
