"""The queue of what goes up to a store."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import BundleError, StoreError, StoreTakenError
from checkpoint_action.model import Record, Status
from checkpoint_action.runner import uploads as module
from checkpoint_action.runner.stop import StoppedError
from tests.runner.desk import KEYS, NO_PROGRESS, PATIENCE, Desk
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from checkpoint_action.runner.parcels import Parcel


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_APART", 0.0)


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    made = MemoryStore()
    yield made
    made.gate.set()


@pytest.fixture
def desk(tmp_path: Path, store: MemoryStore) -> Desk:
    return Desk(tmp_path, store)


def begin(desk: Desk, step: str = "first") -> None:
    """Have an upload under way that does not end before the store's gate is opened."""
    desk.store.gate.clear()
    desk.uploads.put(desk.parcel(step))
    assert desk.store.uploading.wait(PATIENCE)


def test_uploads_keep_their_order_and_number_their_keys(desk: Desk, store: MemoryStore) -> None:
    for step in "abc":
        parcel = desk.parcel(step)
        desk.uploads.put(parcel)
        assert desk.uploads.wait_for(parcel, PATIENCE) == ""
    desk.uploads.finish(PATIENCE)
    origins = [origin for key in store.entries if (origin := KEYS.origin(key))]
    first = origins[0].sequence
    assert [(one.step, one.sequence - first) for one in origins] == [("a", 0), ("b", 1), ("c", 2)]
    assert [sorted(header["records"]) for header in desk.headers()] == [["a"], ["a", "b"], ["a", "b", "c"]]
    assert desk.left() == []


def test_of_one_step_only_the_newest_goes_up(desk: Desk) -> None:
    begin(desk)
    for number in range(3):
        desk.uploads.put(desk.parcel("a", Status.INTERRUPTED, text=str(number)))
    last = desk.parcel("a", text="done")
    desk.uploads.put(last)
    waiting = desk.left()
    desk.store.gate.set()
    desk.uploads.finish(PATIENCE)
    assert [name for name in waiting if name.endswith("-a.layer")] == [f"{last.name}.layer"]
    assert desk.records()["a"]["archive"]["layer"] == last.name
    assert desk.kept == [(("first",), ()), (("a",), ())]
    assert desk.left() == []


def test_what_is_to_be_packed_is_packed_beside_the_caller_when_its_turn_comes(desk: Desk) -> None:
    threads: list[threading.Thread] = []

    def pack(packed: Parcel) -> Parcel:
        threads.append(threading.current_thread())
        return packed

    begin(desk)
    parcel = desk.unpacked("a", pack)
    desk.uploads.put(parcel)
    assert threads == []
    desk.store.gate.set()
    assert desk.uploads.wait_for(parcel, PATIENCE) == ""
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
    assert desk.records()["a"]["partial"]["archive"]["layer"] == parcel.name
    assert desk.kept[-1] == ((), ("a",))


def test_finished_steps_do_not_wait_until_an_unfinished_one_is_packed(desk: Desk) -> None:
    go = threading.Event()

    def pack(packed: Parcel) -> Parcel:
        go.wait(PATIENCE)
        return packed

    begin(desk)
    desk.uploads.put(desk.unpacked("huge", pack))
    done = desk.parcel("done")
    desk.uploads.put(done)
    desk.store.gate.set()
    assert desk.uploads.wait_for(done, PATIENCE) == ""
    assert sorted(desk.records()) == ["done", "first"]
    go.set()
    desk.uploads.finish(PATIENCE)
    assert sorted(desk.records()) == ["done", "first", "huge"]


def test_what_finishes_while_another_is_packed_goes_up_with_it(desk: Desk) -> None:
    go, packing = threading.Event(), threading.Event()

    def pack(packed: Parcel) -> Parcel:
        packing.set()
        go.wait(PATIENCE)
        return packed

    desk.uploads.put(desk.unpacked("a", pack))
    assert packing.wait(PATIENCE)
    desk.uploads.put(desk.parcel("b"))
    go.set()
    desk.uploads.finish(PATIENCE)
    assert desk.kept == [(("b",), ("a",))]


def test_a_step_that_ends_while_its_save_is_packed_is_told_as_it_ended(desk: Desk) -> None:
    go, packing = threading.Event(), threading.Event()

    def pack(packed: Parcel) -> Parcel:
        packing.set()
        go.wait(PATIENCE)
        return packed

    desk.uploads.put(desk.unpacked("a", pack))
    assert packing.wait(PATIENCE)
    last = desk.parcel("a")
    desk.uploads.put(last)
    go.set()
    desk.uploads.finish(PATIENCE)
    assert desk.kept == [(("a",), ())]
    assert desk.records()["a"]["archive"]["layer"] == last.name
    assert desk.left() == []


@pytest.mark.parametrize("error", [BundleError("f changed before it was packed"), OSError(13, "no"), StoppedError()])
def test_where_packing_fails_the_progress_that_was_kept_before_stays(desk: Desk, error: Exception) -> None:
    saved = desk.parcel("a", Status.RUNNING, text="saved")
    desk.uploads.put(saved)
    assert desk.uploads.wait_for(saved, PATIENCE) == ""
    [key] = desk.store.entries

    def pack(_packed: Parcel) -> Parcel:
        raise error

    desk.uploads.put(desk.unpacked("a", pack))
    desk.uploads.finish(PATIENCE)
    assert desk.records()["a"]["status"] == "interrupted"
    assert desk.records()["a"]["partial"]["archive"] == {"key": key, "layer": saved.name}
    [warning] = desk.warnings
    assert warning.startswith("step 'a': what it left unfinished is not kept: ")


def test_who_waits_for_a_parcel_is_told_why_it_could_not_be_packed_and_nothing_goes_up(desk: Desk) -> None:
    def pack(_packed: Parcel) -> Parcel:
        raise BundleError("f changed before it was packed")

    parcel = desk.unpacked("a", pack, awaited=True)
    desk.uploads.put(parcel)
    assert desk.uploads.wait_for(parcel, PATIENCE) == "f changed before it was packed"
    desk.uploads.finish(PATIENCE)
    assert desk.store.entries == {}
    assert desk.warnings == []


def test_a_fault_of_ours_while_packing_switches_the_store_off_and_leaves_nobody_waiting(desk: Desk) -> None:
    def pack(_packed: Parcel) -> Parcel:
        raise RecursionError("deep")

    parcel = desk.unpacked("a", pack, awaited=True)
    desk.uploads.put(parcel)
    assert desk.uploads.wait_for(parcel, PATIENCE) == "unexpected RecursionError: deep"
    desk.uploads.finish(PATIENCE)
    assert len(desk.warnings) == 1


def test_a_stop_ends_the_wait_for_a_parcel(desk: Desk) -> None:
    begin(desk)
    parcel = desk.parcel("a")
    desk.uploads.put(parcel)
    desk.stopping.set()
    assert desk.uploads.wait_for(parcel, PATIENCE) == "the run is being stopped"


def test_the_wait_for_a_parcel_has_a_limit(desk: Desk) -> None:
    begin(desk)
    parcel = desk.parcel("a")
    desk.uploads.put(parcel)
    assert desk.uploads.wait_for(parcel, 0.0) == "the store takes more than 0 s"


def test_a_store_that_fails_meanwhile_ends_the_wait_for_a_parcel(desk: Desk) -> None:
    begin(desk)
    parcel = desk.parcel("a")
    desk.uploads.put(parcel)
    desk.store.refuse["save"] = StoreError("memory: 503")
    desk.store.gate.set()
    assert desk.uploads.wait_for(parcel, PATIENCE) == "memory: 503"
    assert desk.uploads.wait_for(desk.parcel("b"), PATIENCE) == "memory: 503"


def test_nothing_goes_up_where_the_store_is_off_from_the_beginning(tmp_path: Path, store: MemoryStore) -> None:
    desk = Desk(tmp_path, store, off="no store is used")
    parcel = desk.parcel("a")
    desk.uploads.put(parcel)
    assert desk.uploads.wait_for(parcel, PATIENCE) == "no store is used"
    desk.uploads.finish(PATIENCE)
    assert (store.calls, desk.warnings) == ([], [])


def test_the_end_says_what_was_not_stored(desk: Desk) -> None:
    begin(desk, "one")
    desk.uploads.put(desk.parcel("two"))
    desk.uploads.put(desk.parcel("build", Status.INTERRUPTED))
    desk.uploads.finish(0.0)
    assert desk.warnings == [
        "memory: not stored within 0 s, so another machine does it again: one, two, what build has so far"
    ]


def test_nothing_is_said_any_more_once_the_end_is_told(desk: Desk) -> None:
    go, packing, failed = threading.Event(), threading.Event(), threading.Event()

    def pack(_packed: Parcel) -> Parcel:
        packing.set()
        go.wait(PATIENCE)
        failed.set()
        raise BundleError("the folder is gone")

    desk.uploads.put(desk.unpacked("a", pack))
    assert packing.wait(PATIENCE)
    desk.uploads.finish(0.0)
    assert len(desk.warnings) == 1
    go.set()
    desk.uploads._worker.join(PATIENCE)
    assert failed.is_set()
    assert len(desk.warnings) == 1
    assert desk.store.entries == {}


def test_a_forgotten_step_is_not_handed_on(desk: Desk) -> None:
    desk.uploads.known.update(
        {"a": Record("a", Status.DONE, "f", "true"), "b": Record("b", Status.FAILED, "f", "true")}
    )
    desk.uploads.known.forget("a")
    desk.uploads.put(desk.parcel("c"))
    desk.uploads.finish(PATIENCE)
    assert sorted(desk.records()) == ["b", "c"]


def test_a_record_keeps_the_progress_that_is_known_of_its_step(desk: Desk) -> None:
    known = replace(Record("a", Status.FAILED, "f", "true"), partial=NO_PROGRESS)
    desk.uploads.known.update({"a": known})
    new = Record("a", Status.RUNNING, "f", "true")
    assert desk.uploads.known.with_progress(new).partial == NO_PROGRESS
    other = Record("b", Status.RUNNING, "f", "true")
    assert desk.uploads.known.with_progress(other) == other


def test_saves_in_a_row_stay_below_what_the_service_takes(
    desk: Desk, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service takes 200 uploads a minute of a repository; ours begin no sooner than so long after the last one."""
    assert module._APART == 0.0
    monkeypatch.undo()
    assert 60 / module._APART < 200 / 3
    monkeypatch.setattr(module, "_APART", 0.1)
    times: list[float] = []
    real = store.save

    def save(key: str, source: Path) -> None:
        times.append(time.monotonic())
        real(key, source)
        times.append(time.monotonic())

    monkeypatch.setattr(store, "save", save)
    for number in range(5):
        parcel = desk.parcel("a", Status.RUNNING, text=str(number))
        desk.uploads.put(parcel)
        assert desk.uploads.wait_for(parcel, PATIENCE) == ""
    pauses = [begun - ended for ended, begun in zip(times[1:-1:2], times[2::2], strict=True)]
    assert len(pauses) == 4
    assert min(pauses) >= 0.09


def test_fifty_saves_in_a_row_all_arrive_and_leave_nothing_lying_about(desk: Desk, store: MemoryStore) -> None:
    for number in range(50):
        parcel = desk.parcel("a", Status.RUNNING, text=str(number))
        desk.uploads.put(parcel)
        assert desk.uploads.wait_for(parcel, PATIENCE) == ""
    desk.uploads.finish(PATIENCE)
    assert len(store.entries) == 50
    assert desk.left() == []


def test_many_threads_that_put_at_once_lose_nothing(desk: Desk) -> None:
    parcels = [desk.parcel(f"s{number}", text=str(number)) for number in range(40)]
    threads = [threading.Thread(target=desk.uploads.put, args=(parcel,)) for parcel in parcels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    desk.uploads.finish(PATIENCE)
    assert sorted(desk.records()) == sorted(f"s{number}" for number in range(40))
    assert sorted(step for done, _ in desk.kept for step in done) == sorted(desk.records())


def take(store: MemoryStore, monkeypatch: pytest.MonkeyPatch, times: int, *, kept: bool) -> list[str]:
    """Have the first keys turn out to be taken; all that are asked for.

    :param kept: whether it is by the very call whose answer was lost.
    """
    asked: list[str] = []
    real = store.save

    def save(key: str, source: Path) -> None:
        asked.append(key)
        if len(asked) <= times:
            if kept:
                real(key, source)
            raise StoreTakenError(f"memory: {key} is taken")
        real(key, source)

    monkeypatch.setattr(store, "save", save)
    return asked


@pytest.mark.parametrize("kept", [False, True])
def test_where_a_key_is_taken_another_is_tried_and_the_records_point_to_that_one(
    desk: Desk, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    asked = take(store, monkeypatch, 1, kept=kept)
    desk.uploads.put(desk.parcel("a"))
    desk.uploads.put(desk.parcel("b"))
    desk.uploads.finish(PATIENCE)
    assert len(asked) == len(set(asked))
    assert {record["archive"]["key"] for record in desk.records().values()} <= set(store.entries)
    assert desk.records()["a"]["archive"]["key"] == asked[1]
    assert sorted(step for done, _ in desk.kept for step in done) == ["a", "b"]
    assert (desk.warnings, desk.left()) == ([], [])


def test_where_the_second_key_is_taken_too_the_store_is_off(
    desk: Desk, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = take(store, monkeypatch, 2, kept=False)
    parcel = desk.parcel("a")
    desk.uploads.put(parcel)
    assert desk.uploads.wait_for(parcel, PATIENCE) == f"memory: {asked[1]} is taken"
    desk.uploads.put(desk.parcel("b"))
    desk.uploads.finish(PATIENCE)
    assert len(asked) == 2
    assert len(desk.warnings) == 1
    assert (store.entries, desk.kept, desk.left()) == ({}, [], [])


def test_each_archive_may_meet_a_taken_key_once(
    desk: Desk, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, turn = store.save, iter([True, False] * 3)

    def save(key: str, source: Path) -> None:
        if next(turn):
            raise StoreTakenError(f"memory: {key} is taken")
        real(key, source)

    monkeypatch.setattr(store, "save", save)
    for step in "abc":
        parcel = desk.parcel(step)
        desk.uploads.put(parcel)
        assert desk.uploads.wait_for(parcel, PATIENCE) == ""
    assert sorted(desk.records()) == ["a", "b", "c"]


def test_what_is_not_wanted_any_more_leaves_no_file_behind(desk: Desk) -> None:
    begin(desk)
    waiting = desk.parcel("a")
    desk.uploads.put(waiting)
    desk.store.refuse["save"] = StoreError("memory: 503")
    desk.store.gate.set()
    assert desk.uploads.wait_for(waiting, PATIENCE) == "memory: 503"
    desk.uploads.put(desk.parcel("b"))
    desk.uploads.finish(PATIENCE)
    desk.uploads._worker.join(PATIENCE)
    assert desk.left() == []


def test_that_the_store_is_off_is_said_before_anybody_sees_it(
    tmp_path: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the end of the run might come first, and swallow it."""
    desk = Desk(tmp_path, store)
    seen: list[str] = []
    monkeypatch.setattr(desk.uploads, "_warn", lambda _text: seen.append(desk.uploads.off))
    store.refuse["save"] = StoreError("memory: 503")
    desk.uploads.put(desk.parcel("a"))
    desk.uploads.finish(PATIENCE)
    assert seen == [""]
