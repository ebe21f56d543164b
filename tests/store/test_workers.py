"""Calls beside the caller: in order where there is one thread, and none is begun once nobody waits any more."""

from __future__ import annotations

import threading

import pytest

from checkpoint_action.store.workers import MOST_WORKERS, Workers

LONG = 30.0


def test_one_worker_makes_calls_in_their_order() -> None:
    made: list[int] = []
    with Workers(1) as workers:
        for number in range(100):
            last = workers.start(made.append, number)
        last.result(LONG)
    assert made == list(range(100))


def test_calls_run_beside_each_other() -> None:
    both = threading.Barrier(2, timeout=LONG)
    with Workers(2) as workers:
        assert sorted(each.result(LONG) for each in [workers.start(both.wait), workers.start(both.wait)]) == [0, 1]


def test_what_a_call_raises_comes_to_who_waits_for_it_and_costs_no_other() -> None:
    with Workers() as workers:
        assert 1 <= workers.width <= MOST_WORKERS
        failed = workers.start(int, "no number")
        assert workers.start(int, "7").result(LONG) == 7
        with pytest.raises(ValueError, match="no number"):
            failed.result(LONG)


def test_leaving_waits_for_the_call_under_way_and_begins_no_other() -> None:
    begun, go_on = threading.Event(), threading.Event()
    made = []

    def first() -> None:
        begun.set()
        go_on.wait(LONG)
        made.append("first")

    before = threading.active_count()
    with Workers(1) as workers:
        workers.start(first)
        second = workers.start(made.append, "second")
        begun.wait(LONG)
        threading.Timer(0.05, go_on.set).start()
    assert made == ["first"]
    assert second.cancelled()
    go_on.wait(LONG)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(LONG)
    assert threading.active_count() == before
