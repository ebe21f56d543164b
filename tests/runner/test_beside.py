"""Work in threads of its own: its end is seen, whatever there is no memory or no thread for."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner import beside as module
from checkpoint_action.runner.beside import Beside

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK", 0.01)


class Forgetful(queue.SimpleQueue["Callable[[], None]"]):
    """Takes what is said, but has no memory for the end of a piece of work."""

    def put(self, item: Callable[[], None], block: bool = True, timeout: float | None = None) -> None:
        if item.__qualname__.startswith("_Piece"):
            raise MemoryError
        super().put(item, block, timeout)


def forgetful() -> Beside:
    beside = Beside()
    beside._messages = Forgetful()
    return beside


def drained(beside: Beside) -> None:
    while beside.running:
        beside.next()


@pytest.mark.parametrize("make", [Beside, forgetful])
def test_a_result_is_handed_on_once_after_all_that_was_said(make: Callable[[], Beside]) -> None:
    beside = make()
    seen: list[str] = []

    def work() -> str:
        for number in range(3):
            beside.say(lambda number=number: seen.append(f"said {number}"))  # type: ignore[misc]
        return "result"

    beside.start("work", work, seen.append)
    drained(beside)
    assert seen == ["said 0", "said 1", "said 2", "result"]


@pytest.mark.parametrize("make", [Beside, forgetful])
def test_what_work_raises_is_raised_where_it_is_waited_for(make: Callable[[], Beside]) -> None:
    beside = make()

    def work() -> None:
        raise MemoryError("in the thread")

    beside.start("work", work, lambda _result: None)
    with pytest.raises(MemoryError, match="in the thread"):
        beside.next()
    assert beside.running == 0


def test_an_end_that_is_seen_before_it_is_told_counts_once() -> None:
    beside = Beside()
    seen: list[int] = []
    beside.start("work", lambda: 1, seen.append)
    beside.next()
    beside.start("more", lambda: 2, seen.append)
    [piece] = beside._pieces
    while not piece.over:
        pass
    piece.seen()
    beside.say(lambda: seen.append(3))
    beside.next()
    beside.next()
    assert (seen, beside.running) == ([1, 2, 3], 0)


def test_work_for_which_there_is_no_thread_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    beside = Beside()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        beside.start("work", lambda: None, lambda _result: None)
    assert beside.running == 0
    beside.abandon()


def test_work_that_began_though_its_start_failed_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    go = threading.Event()
    begun = threading.Event()

    def half(thread: threading.Thread) -> None:
        start(thread)
        assert begun.wait(60)
        raise MemoryError

    def work() -> None:
        begun.set()
        go.wait(60)

    beside = Beside()
    monkeypatch.setattr(threading.Thread, "start", half)
    with pytest.raises(MemoryError):
        beside.start("work", work, lambda _result: None)
    assert beside.running == 1
    go.set()
    beside.abandon()
    assert beside.running == 0


def test_abandoned_work_is_waited_for_whatever_comes_of_it() -> None:
    beside = forgetful()
    go = threading.Event()

    def fails() -> None:
        go.wait(60)
        raise MemoryError

    for _ in range(3):
        beside.start("work", fails, lambda _result: None)
    go.set()
    beside.abandon()
    assert beside.running == 0
