"""Old entries go, needed ones stay."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError
from checkpoint_action.model import ArchiveRef, Layer, Partial, Record, Status
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.store.bundle import END_FRAME, header_frame
from checkpoint_action.store.codec import record_to_json
from checkpoint_action.store.folder import FolderStore
from checkpoint_action.store.layout import place
from checkpoint_action.store.prune import Pruned, prune

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAY = 86400.0
NOW = time.time()
JOB, OTHER = job_slug("build", 1), job_slug("test", 1)


class Shelf:
    """A store in a folder whose entries are as old as is wanted."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "store"
        self.store = FolderStore(self.root)
        self._spool = folder / "spool"

    def add(
        self, days: float, *needs: str, job: str = JOB, scope: str = "content", run: str = "7", attempt: str = "1"
    ) -> str:
        """An archive of a job ``days`` old whose records point to the archives ``needs``."""
        records = {f"step-{number}": _record(f"step-{number}", key) for number, key in enumerate(needs)}
        return self.put(days, header_frame({"job": job, "records": records}) + END_FRAME, job, scope, run, attempt)

    def put(
        self, days: float, content: bytes, job: str = JOB, scope: str = "content", run: str = "7", attempt: str = "1"
    ) -> str:
        key = KeyScheme(scope, job, run, attempt).new("last", int((NOW - days * DAY) * 1000))
        self._spool.write_bytes(content)
        self.store.save(key, self._spool)
        os.utime(self.root.joinpath(*place(key)), (NOW - days * DAY,) * 2)
        return key

    def keys(self) -> set[str]:
        return {row.key for row in self.store.entries()}

    def prune(self, days: float, keep: int, *, dry_run: bool = False) -> Pruned:
        return prune(self.store, older_than=days * DAY, keep=keep, now=NOW, dry_run=dry_run)


def _record(step: str, key: str) -> object:
    return record_to_json(
        Record(step=step, status=Status.DONE, fingerprint="f", command="c", archive=ArchiveRef(key, "000001-a"))
    )


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_old_entries_go_oldest_first_and_young_ones_stay(shelf: Shelf) -> None:
    old, older, young = shelf.add(8), shelf.add(9), shelf.add(6)
    done = shelf.prune(7, 0)
    assert [row.key for row in done.deleted] == [older, old]
    assert all(row.size for row in done.deleted)
    assert (done.kept, done.failed) == (1, {})
    assert shelf.keys() == {young}


def test_of_each_job_the_newest_stay_however_old_they_are(shelf: Shelf) -> None:
    build = [shelf.add(days) for days in (20, 30, 40)]
    test = [shelf.add(days, job=OTHER) for days in (50, 60, 70)]
    shelf.prune(7, 2)
    assert shelf.keys() == {*build[:2], *test[:2]}


def test_newest_is_what_a_look_up_would_find(shelf: Shelf) -> None:
    again = shelf.add(20, run="7", attempt="2")
    first = shelf.add(30, run="8")
    found = shelf.store.find("cpr1-content-build-")
    shelf.prune(7, 1)
    assert shelf.keys() == {again} != {first}
    assert found is not None
    assert found.key == again


def test_scopes_of_a_job_are_counted_together(shelf: Shelf) -> None:
    keys = [shelf.add(10 + number, scope=f"run{number}", run=str(9 - number)) for number in range(4)]
    shelf.prune(7, 2)
    assert shelf.keys() == set(keys[:2])


def test_what_a_kept_archive_points_to_stays(shelf: Shelf) -> None:
    first = shelf.add(90)
    second = shelf.add(80, first)
    shelf.add(70, first)  # which nothing needs
    newest = shelf.add(60, first, second)
    by_a_young_one = shelf.add(50, job=OTHER)
    young = shelf.add(1, by_a_young_one, job=OTHER)
    shelf.prune(7, 1)
    assert shelf.keys() == {first, second, newest, by_a_young_one, young}


def test_what_only_a_needed_archive_points_to_goes(shelf: Shelf) -> None:
    first = shelf.add(90)
    second = shelf.add(80, first)
    newest = shelf.add(60, second)
    shelf.prune(7, 1)
    assert shelf.keys() == {second, newest}


def test_progress_of_an_unfinished_step_stays(shelf: Shelf) -> None:
    progress = shelf.add(90)
    partial = Partial(workspace=Layer(), folder=Layer(), archive=ArchiveRef(progress, "000001-a"))
    record = Record(step="step", status=Status.FAILED, fingerprint="f", command="c", partial=partial)
    header = header_frame({"job": JOB, "records": {"step": record_to_json(record)}})
    newest = shelf.put(20, header + END_FRAME)
    shelf.prune(7, 1)
    assert shelf.keys() == {progress, newest}


@pytest.mark.parametrize("content", [b"", b"no archive", header_frame({"job": JOB, "records": {}})[:-5]])
def test_an_archive_that_nobody_can_use_counts_for_nothing(shelf: Shelf, content: bytes) -> None:
    good = shelf.add(30)
    shelf.put(20, content)
    damaged_young = shelf.put(2, content)
    shelf.prune(7, 1)
    assert shelf.keys() == {good, damaged_young}


def test_a_long_header_is_read_to_its_end(shelf: Shelf) -> None:
    needed = shelf.add(90)
    many = {f"s{number}": _record(f"s{number}", os.urandom(60).hex()) for number in range(3000)}
    header = header_frame({"job": JOB, "records": many | {"last": _record("last", needed)}})
    assert len(header) > 200_000
    newest = shelf.put(60, header + END_FRAME)
    shelf.prune(7, 1)
    assert shelf.keys() == {needed, newest}


def test_a_dry_run_tells_and_deletes_nothing(shelf: Shelf) -> None:
    old, young = shelf.add(8), shelf.add(6)
    done = shelf.prune(7, 0, dry_run=True)
    assert [row.key for row in done.deleted] == [old]
    assert shelf.keys() == {old, young}


def test_nothing_goes_where_an_archive_cannot_be_read_now(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {shelf.add(90), shelf.add(80)}

    def fail(*_args: object) -> bytes:
        raise StoreError("the network is gone")

    monkeypatch.setattr(shelf.store, "read", fail)
    with pytest.raises(StoreError, match="the network is gone"):
        shelf.prune(7, 0)
    assert shelf.keys() == keys


def test_an_entry_that_cannot_be_deleted_is_told_and_the_others_go(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, gone = shelf.add(90), shelf.add(80)
    delete = shelf.store.delete

    def fail(key: str) -> None:
        if key == stuck:
            raise StoreError("it is being read")
        delete(key)

    monkeypatch.setattr(shelf.store, "delete", fail)
    done = shelf.prune(7, 0)
    assert done.failed == {stuck: "it is being read"}
    assert [row.key for row in done.deleted] == [gone]
    assert done.kept == 1


def _while_reading(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> None:
    read = shelf.store.read

    def reads(*args: object) -> bytes:
        monkeypatch.setattr(shelf.store, "read", read)
        call()
        return read(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(shelf.store, "read", reads)


def test_what_comes_meanwhile_stays_with_what_it_points_to(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = shelf.add(90)
    shelf.add(80)  # which nothing needs
    came: list[str] = []
    _while_reading(shelf, monkeypatch, lambda: came.append(shelf.add(0, needed)))
    shelf.prune(7, 0)
    assert shelf.keys() == {needed, *came}


def test_what_another_deletes_meanwhile_is_no_fault(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [shelf.add(days) for days in (90, 80, 70)]

    def delete_two() -> None:
        for key in keys[:2]:
            shelf.store.delete(key)

    _while_reading(shelf, monkeypatch, delete_two)
    done = shelf.prune(7, 0)
    assert [row.key for row in done.deleted] == keys[2:]
    assert shelf.keys() == set()
