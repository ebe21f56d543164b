from __future__ import annotations

import threading

import pytest

from checkpoint_action.toolkit.parallel import each


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
