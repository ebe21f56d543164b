"""A request from outside to stop, seen by whoever waits."""

from __future__ import annotations

import select
import signal
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

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
        self._making = threading.Lock()
        self._notice: tuple[socket.socket, socket.socket] | None = None

    @property
    def name(self) -> str:
        """The first signal's name, or an empty text."""
        return "" if self.signum is None else signal.Signals(self.signum).name

    def request(self, signum: int = signal.SIGTERM) -> None:
        """Note one signal; the first wakes every waiter.

        :param signum: what the running steps are sent.
        """
        if self.signum is None:
            self.signum = signum
        self.count += 1
        self._give_notice()

    def _give_notice(self) -> None:
        if self._notice is not None:
            with suppress(OSError):  # it is full: whoever waits is awake already
                self._notice[1].send(b"x")

    def notice(self) -> socket.socket:
        """A socket that is readable from the first request on; all who wait share it, so that nobody reads from it."""
        import socket  # noqa: PLC0415  # only what waits pays for it

        with self._making:
            if self._notice is None:
                reader, writer = socket.socketpair()
                reader.setblocking(False)
                writer.setblocking(False)
                weakref.finalize(self, _close, reader, writer)
                self._notice = reader, writer
                if self.signum is not None:
                    self._give_notice()
            return self._notice[0]

    def wait(self, seconds: float) -> bool:
        """Sleep, but not beyond a request.

        :param seconds: the longest sleep.
        :returns: whether a stop is requested.
        """
        end = time.monotonic() + seconds
        reader = self.notice()
        while self.signum is None:
            left = end - time.monotonic()
            if left <= 0:
                return False
            select.select([reader], [], [], min(left, _SLICE))
        return True


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        one.close()
