"""A request from outside to stop, seen by whoever waits."""

from __future__ import annotations

import select
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

__all__ = ["BlockedWriteError", "StopRequest", "StoppedError"]

_SLICE = 0.5  # seconds; on Windows a signal handler only runs once a wait has ended


class BlockedWriteError(Exception):
    """Raised by a signal's handler out of a write that nobody reads."""


class StoppedError(Exception):
    """Work of our own was given up as a stop was requested."""


class StopRequest:
    """Counts the signals we got. Safe to be told from a signal handler and from any thread.

    :ivar signum: the first signal, or ``None``.
    :ivar count: how many came.
    :ivar breaks_writes: whether the main thread is in a write that may block for ever, which a signal is to end.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.count = 0
        self.breaks_writes = False
        self._wakers: list[socket.socket] = []

    @property
    def name(self) -> str:
        """The first signal's name, or an empty text."""
        return "" if self.signum is None else signal.Signals(self.signum).name

    def request(self, signum: int = signal.SIGTERM) -> None:
        """Note one signal and wake every waiter.

        :param signum: what the running steps are sent.
        """
        if self.signum is None:
            self.signum = signum
        self.count += 1
        for waker in list(self._wakers):
            with suppress(OSError):  # a full or closed socket: its waiter is awake already
                waker.send(b"x")

    @contextmanager
    def subscribe(self) -> Iterator[socket.socket]:
        """A socket that becomes readable at each request. Non-blocking; the reader empties it."""
        import socket  # noqa: PLC0415  # only what waits pays for it

        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        self._wakers.append(writer)
        try:
            yield reader
        finally:
            self._wakers.remove(writer)
            reader.close()
            writer.close()

    def wait(self, seconds: float) -> bool:
        """Sleep, but not beyond a request.

        :param seconds: the longest sleep.
        :returns: whether a stop is requested.
        """
        end = time.monotonic() + seconds
        with self.subscribe() as reader:
            while self.signum is None:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                select.select([reader], [], [], min(left, _SLICE))
        return True
