"""Threads for what releases the interpreter's lock: compressing, decompressing, hashing."""

from __future__ import annotations

from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.store.cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import ParamSpec, Self

    _P = ParamSpec("_P")

__all__ = ["MOST_WORKERS", "Workers"]

_T = TypeVar("_T")

MOST_WORKERS = 8
"""More would take more memory than they are worth: one thread alone has to read and write for all of them."""


class Workers:
    """Runs calls beside the caller, as many as there are cores. Leaving the block waits for those under way only.

    :param width: threads; by default one for each core, within bounds.
    :ivar width: calls that can run at once.
    """

    def __init__(self, width: int | None = None) -> None:
        self.width = width or min(usable_cores(), MOST_WORKERS)
        self._todo: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._closing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()

    def start(self, call: Callable[_P, _T], *given: _P.args, **named: _P.kwargs) -> Future[_T]:
        """Begin a call; one worker makes them in their order. Where the system gives no thread it is made at once."""
        future: Future[_T] = Future()

        def run() -> None:
            if self._closing:
                future.cancel()
                return
            try:
                future.set_result(call(*given, **named))
            except BaseException as error:  # raised again where somebody waits for it
                future.set_exception(error)

        if len(self._threads) < self.width:
            thread = Thread(target=self._work, name="layer", daemon=True)
            try:
                thread.start()
                self._threads.append(thread)
            except RuntimeError:
                if not self._threads:
                    run()
                    return future
        self._todo.put(run)
        return future

    def _work(self) -> None:
        while (run := self._todo.get()) is not None:
            run()
