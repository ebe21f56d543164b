"""Which steps run, where their guardian finds it once we are gone: in a file without a name that both have open."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from contextlib import suppress

__all__ = ["WatchBoard", "tokens_on"]

_WIDTH = 32  # bytes of a place: a token and what fills it up


class WatchBoard:
    """Has a place for each running step. Writing one wakes nobody; from whatever thread.

    :raises OSError: it cannot be made.
    :ivar number: its descriptor.
    """

    def __init__(self) -> None:
        self.number = _new_file()
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._lock = threading.Lock()

    def put(self, token: str) -> None:
        """A step's shell is about to start.

        :param token: at most 31 characters of ASCII.
        """
        with self._lock:
            place = self._places[token] = self._free.pop() if self._free else len(self._places)
            self._write(place, token.encode("ascii"))

    def remove(self, token: str) -> None:
        """A step is over."""
        with self._lock:
            place = self._places.pop(token, None)
            if place is not None:
                self._write(place, b"")
                self._free.append(place)

    def _write(self, place: int, text: bytes) -> None:
        os.lseek(self.number, place * _WIDTH, os.SEEK_SET)
        os.write(self.number, text.ljust(_WIDTH))

    def close(self) -> None:
        """Let go of it."""
        os.close(self.number)


def tokens_on(number: int) -> set[str]:
    """The tokens of the steps that run.

    :param number: of the board's descriptor, whoever has made it.
    """
    os.lseek(number, 0, os.SEEK_SET)
    with open(number, "rb") as file:
        return {word.decode("ascii") for word in file.read().split()}


def _new_file() -> int:
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel or sandbox without it
            return os.memfd_create("checkpoint-run")
    number, name = tempfile.mkstemp(prefix="checkpoint-run-")
    os.unlink(name)  # noqa: PTH108
    return number
