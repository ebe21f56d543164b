from __future__ import annotations

import threading

import pytest

from checkpoint_action.toolkit.parallel import Crew, each


def test_every_item_is_called_once_and_never_too_many_at_a_time() -> None:
    lock = threading.Lock()
    done: list[int] = []
    running = 0
    most = 0

    def call(item: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
            done.append(item)

    each(call, range(200), parallel=3)
    assert sorted(done) == list(range(200))
    assert most <= 3


def test_the_calls_do_run_at_the_same_time() -> None:
    barrier = threading.Barrier(4, timeout=30)
    each(lambda _item: barrier.wait(), range(8), parallel=4)


def test_after_a_failure_no_further_call_starts() -> None:
    started: list[int] = []

    def call(item: int) -> None:
        started.append(item)
        if item == 3:
            raise KeyError(item)

    with pytest.raises(KeyError):
        each(call, range(1000), parallel=2)
    assert len(started) < 1000


def test_nothing_to_do_is_fine() -> None:
    each(print, [], parallel=4)


def test_a_crew_makes_calls_while_others_are_handed_over() -> None:
    gate = threading.Event()
    done: list[int] = []

    def call(item: int) -> None:
        gate.wait(30)
        done.append(item)

    with Crew(2) as crew:
        crew.submit(lambda: call(1))
        crew.submit(lambda: call(2))
        assert done == []
        gate.set()
        crew.submit(lambda: call(3))
    assert sorted(done) == [1, 2, 3]


def test_a_failure_is_told_to_whoever_can_end_the_other_calls() -> None:
    ended = threading.Event()
    told: list[bool] = []

    def fail() -> None:
        raise KeyError("first")

    def stop() -> None:
        told.append(True)
        ended.set()

    crew = Crew(3, on_failure=stop)
    crew.submit(lambda: ended.wait(30))
    crew.submit(fail)
    with pytest.raises(KeyError, match="first"):
        crew.finish()
    with pytest.raises(KeyError, match="first"):
        crew.submit(lambda: told.append(False))
    assert told == [True]


def test_leaving_by_an_exception_ends_the_calls_and_waits_for_them() -> None:
    ended = threading.Event()
    done: list[int] = []

    def call() -> None:
        ended.wait(30)
        done.append(1)

    def leave() -> None:
        with Crew(2, on_failure=ended.set) as crew:
            crew.submit(call)
            raise KeyError

    with pytest.raises(KeyError):
        leave()
    assert done == [1]


def test_without_a_thread_to_be_had_the_call_is_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    each(done.append, [1, 2], parallel=2)
    assert done == [1, 2]
    with pytest.raises(ZeroDivisionError):
        each(lambda number: 1 // number, [0], parallel=2)
