"""Threads that read large files while the caller goes on with others; there are none before the first is needed."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

from checkpoint_action.store.cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable
    from queue import SimpleQueue
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Reading", "ReadingThreads"]

_MOST_THREADS = 16
"""More would wait for the interpreter's lock between two pieces rather than read."""

_LOOK = 0.5  # seconds; on Windows a signal handler only runs once a wait has ended


class Reading:
    """A digest on its way.

    :param compute: gives it.
    """

    def __init__(self, compute: Callable[[], str]) -> None:
        self._compute = compute
        self._ended = Event()
        self._value = ""
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Compute it, in whatever thread."""
        try:
            self._value = self._compute()
        except BaseException as error:  # raised again where somebody can see it
            self._failure = error
        finally:
            self._ended.set()

    @property
    def ended(self) -> bool:
        """Whether :meth:`result` returns at once."""
        return self._ended.is_set()

    def result(self) -> str:
        """Wait for the digest, or raise what computing it has raised."""
        while not self._ended.wait(_LOOK):
            pass
        if self._failure is not None:
            raise self._failure
        return self._value


class ReadingThreads:
    """Runs readings side by side. Leaving the block ends those under way and waits for their threads.

    :ivar closing: whether a reading under way is to give up.
    """

    def __init__(self) -> None:
        self.closing = False
        self._width = 0
        self._todo: SimpleQueue[Reading | None] | None = None
        self._threads: list[Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing = True
        if self._todo is not None:
            for _ in self._threads:
                self._todo.put(None)
        for thread in self._threads:
            thread.join()

    @property
    def width(self) -> int:
        """How many run at once; most looks come to no large file, and never ask."""
        if not self._width:
            self._width = min(usable_cores(), _MOST_THREADS)
        return self._width

    def start(self, compute: Callable[[], str]) -> Reading:
        """Let a thread compute a digest as soon as one is free."""
        if self._todo is None:
            from queue import SimpleQueue  # noqa: PLC0415  # most runs read no large file

            self._todo = SimpleQueue()
        reading = Reading(compute)
        if len(self._threads) < self.width:
            thread = Thread(target=self._work, args=(self._todo,), name="reading", daemon=True)
            try:
                thread.start()
                self._threads.append(thread)
            except RuntimeError:  # the system gives no more of them
                if not self._threads:
                    reading.run()
                    return reading
        self._todo.put(reading)
        return reading

    @staticmethod
    def _work(todo: SimpleQueue[Reading | None]) -> None:
        while (reading := todo.get()) is not None:
            reading.run()
