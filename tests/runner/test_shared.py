"""Machines that work on one job at a time: whoever looks next knows what all of them have done."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, Reason, Status
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.runner.shared import merged
from checkpoint_action.runner.sources import Source
from checkpoint_action.runner.stored_state import StoredState
from tests.runner.jobs import job, record, step
from tests.runner.machines import KEYS, Machine, keep_each, writing
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

SHARED = replace(KEYS, shared=True)
RESTORED = (Action.RESTORE, Reason.RESTORED)
NAMES = ["a", "a-b", "b", "c"]


class Fleet:
    """Machines with one store.

    :ivar store: of all of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryStore()
        self._count = 0

    def machine(self, keys: KeyScheme = SHARED) -> Machine:
        """A fresh one, which has looked into the store."""
        self._count += 1
        machine = Machine(self.folder / str(self._count), self.store, keys=keys)
        machine.checkpoints.learn(NAMES)
        return machine


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def decided(fleet: Fleet, *names: str) -> tuple[Machine, list[tuple[Action, Reason]]]:
    last = fleet.machine()
    return last, last.resume(*(last.step(name) for name in names))


def test_what_machines_do_beside_each_other_is_known_to_the_next(fleet: Fleet) -> None:
    one, two, three = fleet.machine(), fleet.machine(), fleet.machine()
    keep_each(one, "a")
    keep_each(two, "a-b")
    keep_each(three, "b")
    last, found = decided(fleet, "a", "a-b", "b", "c")
    assert found == [RESTORED, RESTORED, RESTORED, (Action.RUN, Reason.NEVER_RAN)]
    assert [(last.root / name).read_text() for name in ("a", "a-b", "b")] == ["a", "a-b", "b"]
    assert not last.warnings


def test_without_sharing_the_newest_archive_alone_is_asked_for(fleet: Fleet) -> None:
    keep_each(fleet.machine(KEYS), "a", "b")
    fleet.store.calls.clear()
    fleet.machine(KEYS)
    assert fleet.store.calls.count("find") == 1


def test_with_sharing_each_step_is_asked_for_once_and_only_news_are_read(fleet: Fleet) -> None:
    one, two = fleet.machine(), fleet.machine()
    keep_each(one, "a")
    keep_each(two, "b")
    keep_each(fleet.machine(), "c")  # which knows of both
    fleet.store.calls.clear()
    fleet.machine()
    assert fleet.store.calls.count("find") == 1 + len(NAMES)
    assert fleet.store.calls.count("read") == 1


def test_an_empty_store_is_asked_once(fleet: Fleet) -> None:
    fleet.machine()
    assert fleet.store.calls == ["find"]


def test_a_step_that_ran_again_goes_before_what_a_later_archive_hands_on_of_it(fleet: Fleet) -> None:
    keep_each(fleet.machine(), "a")
    again = replace(SHARED, attempt="2")
    one, two = fleet.machine(again), fleet.machine(again)
    one.run(one.step("a"), writing("a", "second"))
    one.checkpoints.finish(30)
    keep_each(two, "b")  # says of a what it was told before
    last, found = decided(fleet, "a", "b")
    assert found == [RESTORED, RESTORED]
    assert (last.root / "a").read_text() == "second"


def test_a_step_that_failed_again_is_not_taken_for_done_as_a_later_archive_says(fleet: Fleet) -> None:
    keep_each(fleet.machine(), "a")
    again = replace(SHARED, attempt="2")
    one, two = fleet.machine(again), fleet.machine(again)
    of = one.step("a")
    failed = record(of, one.root, Status.FAILED)
    one.checkpoints.look("a", one.digests)
    one.checkpoints.keep_unfinished(of, job(one.root, of), failed, one.root.parent / "own", stopping=True)
    one.checkpoints.finish(30)
    keep_each(two, "b")
    three = fleet.machine(again)
    keep_each(three, "c")  # hands the failure on
    last, found = decided(fleet, "a", "b", "c")
    assert found == [(Action.RUN, Reason.FAILED_BEFORE), RESTORED, RESTORED]
    assert last.checkpoints.told["a"] in [key for key in fleet.store.entries if "-a~-1-2-" in key]


def test_a_machine_whose_clock_is_late_writes_what_counts_as_later_all_the_same(fleet: Fleet) -> None:
    early = fleet.machine()
    early.checkpoints._uploads.numbering.go_past((time.time_ns() // 1_000_000) + 3_600_000)
    keep_each(early, "a")
    late, beside = fleet.machine(), fleet.machine()
    late.run(late.step("a"), writing("a", "second"))
    late.checkpoints.finish(30)
    keep_each(beside, "b")
    last, _ = decided(fleet, "a", "b")
    assert (last.root / "a").read_text() == "second"


def test_of_several_steps_in_one_archive_each_is_found(fleet: Fleet) -> None:
    one, two = fleet.machine(), fleet.machine()
    fleet.store.gate.clear()
    for name in ("a", "a-b", "b"):
        one.run(one.step(name), writing(name, name))
        assert fleet.store.uploading.wait(30)
    fleet.store.gate.set()
    one.checkpoints.finish(30)
    assert len(fleet.store.entries) == 2, "two of them have gone up together"
    keep_each(two, "c")
    _, found = decided(fleet, "a", "a-b", "b", "c")
    assert found == [RESTORED] * 4


def test_an_archive_that_is_not_usable_costs_what_it_alone_tells(fleet: Fleet) -> None:
    one, two = fleet.machine(), fleet.machine()
    keep_each(one, "a")
    keep_each(two, "b")
    fleet.store.entries[next(iter(fleet.store.entries))] = b"junk"
    last, found = decided(fleet, "a", "b")
    assert found == [(Action.RUN, Reason.NEVER_RAN), RESTORED]
    assert len(last.warnings) == 2  # it has looked twice
    assert "is not usable" in last.warnings[0]


def test_a_lost_archive_is_told_and_one_that_was_met_is_not_asked_for_again(fleet: Fleet) -> None:
    one, two = fleet.machine(), fleet.machine()
    keep_each(one, "a")
    keep_each(two, "b")
    keep_each(fleet.machine(), "c")
    del fleet.store.entries[next(iter(fleet.store.entries))]
    last = fleet.machine()
    records = last.checkpoints.learn(NAMES)
    assert records.keys() == {"a", "b", "c"}
    fleet.store.calls.clear()
    assert last.checkpoints.lost(records) == {"a"}
    assert fleet.store.calls == ["find"]


def test_sources_get_the_oldest_time_that_a_machine_has_seen() -> None:
    def state(**times: int) -> StoredState:
        return StoredState({}, {name: Source(1, time, "same") for name, time in times.items()}, {})

    found = merged([state(x=5, y=7), state(x=3, z=1), state(x=9)], SHARED)
    assert {name: source.mtime_ns for name, source in found.sources.items()} == {"x": 3, "y": 7, "z": 1}
    other = replace(state(x=1), sources={"x": Source(1, 1, "other content")})
    assert merged([state(x=5), other], SHARED).sources["x"].mtime_ns == 5


def test_a_record_of_this_run_goes_before_any_other_runs(tmp_path: Path) -> None:
    keys = KeyScheme("content", "j", "10", "1", shared=True)

    def state(run: str, attempt: str, sequence: int) -> StoredState:
        key = replace(keys, run=run, attempt=attempt).new("a", sequence)
        return StoredState({"a": record(step(f"of-{run}-{attempt}-{sequence}", tmp_path), tmp_path)}, {}, {"a": key})

    def first_of(*states: StoredState) -> str:
        found = {merged(order, keys).records["a"].step for order in (states, states[::-1])}
        assert len(found) == 1, "in whatever order"
        return found.pop()

    assert first_of(state("11", "1", 900_000), state("10", "1", 500_000)) == "of-10-1-500000"
    assert first_of(state("10", "2", 500_001), state("10", "1", 500_000)) == "of-10-2-500001"
    assert first_of(state("10", "1", 500_001), state("10", "1", 500_000)) == "of-10-1-500001"
    assert first_of(state("9", "1", 500_000), state("11", "1", 900_000)) == "of-11-1-900000"
