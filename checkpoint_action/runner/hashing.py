"""Digests of file contents, each computed once for as long as the file stays as it is."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from typing import TYPE_CHECKING, Protocol

from checkpoint_action.runner.stop import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.runner.reading import Reading, ReadingThreads

__all__ = ["ChangeClock", "ContentDigests", "LocalClock", "file_digest", "never", "stamp_of", "text_digest"]

_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_PIECE = 1 << 18
_ENDLESS = 1 << 63
_MOST_UNSIZED = 1 << 30  # bytes read of a file of no size: in /proc and the like there is something in it
_RACY_NS = 2_100_000_000
_WORTH_A_THREAD = 1 << 19
"""Bytes from which a file is read beside others; a smaller one is read before a thread would have taken it over."""


def stamp_of(info: os.stat_result) -> str:
    """What tells cheaply that a file is still the one that was looked at, as text that ends in a space."""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino} "


def text_digest(text: str) -> str:
    """SHA-256 of a text, hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def never() -> bool:
    """Nothing is ever cancelled."""
    return False


def file_digest(path: str, size: int | None = None, cancelled: Callable[[], bool] = never) -> str:
    """SHA-256 of a file's content, hex.

    :param size: bytes to read at most, so that a file is not chased as it grows; ``None`` for all it has.
    :param cancelled: asked before each piece.
    :raises OSError: it cannot be read.
    :raises StoppedError: it was cancelled.
    """
    left = _ENDLESS if size is None else size
    digest = hashlib.sha256()
    fd = os.open(path, _READ)  # `open` would take as long as reading a small file does
    try:
        while left > 0:
            if cancelled():
                raise StoppedError
            piece = os.read(fd, min(left, _PIECE))
            if not piece:
                break
            digest.update(piece)
            left -= len(piece)
    finally:
        os.close(fd)
    return digest.hexdigest()


class ChangeClock(Protocol):
    """Tells whether a later change of a file would show in its times."""

    def passed(self, info: os.stat_result) -> bool:
        """Whether any change from now on gives the file other times than ``info`` has."""
        ...


class LocalClock:
    """Takes the times of files for those of this machine's clock, in steps of up to two seconds (FAT).

    The clock by which the kernel dates changes is behind the one that we can ask, by up to a tick; a tenth of a second
    more covers that.
    """

    def passed(self, info: os.stat_result) -> bool:
        """Whether the file was last changed so long ago that a further change gets another time on any file system."""
        return max(info.st_mtime_ns, info.st_ctime_ns) < time.time_ns() - _RACY_NS


class ContentDigests:
    """Remembers digests by stamp within one run, and where it is given what an earlier one remembered, from run to run.

    A file that might change again without its stamp telling, when its digest is taken (git calls that racily clean), is
    not remembered but read again each time.

    :param cancelled: asked again and again while files are read, from whatever thread; once true, no further byte is.
    :param known: what an earlier run remembered.
    :param clock: tells which files are racily clean.
    :ivar seen: of all that is remembered, what this run has asked for: by path, the stamp followed by the digest.
    """

    def __init__(
        self,
        cancelled: Callable[[], bool] = never,
        *,
        known: dict[str, str] | None = None,
        clock: ChangeClock | None = None,
    ) -> None:
        self._cancelled = cancelled
        self._clock: ChangeClock = clock or LocalClock()
        self._known: dict[str, str] = {} if known is None else known
        self.seen: dict[str, str] = {}

    def digest(self, path: str, info: os.stat_result) -> str:
        """SHA-256 of the file's content, hex.

        :param info: what ``lstat`` says of it now; of a file that has grown since, no more than its size is read.
        :raises OSError: it cannot be read.
        :raises StoppedError: it was cancelled.
        """
        stamp = stamp_of(info)
        return self._remembered(path, stamp) or self._read(path, info, stamp, self._cancelled)

    def remembered(self, path: str) -> tuple[int, str] | None:
        """Mode and digest of a file that is as it was when it was read; ``None`` where that is not known."""
        said = self._known.get(path)
        if said is None:
            return None
        try:
            info = os.lstat(path)
        except (OSError, ValueError):
            return None
        stamp = stamp_of(info)
        if not said.startswith(stamp):
            return None
        self.seen[path] = said
        return stat.S_IMODE(info.st_mode), said[len(stamp) :]

    def begin(self, path: str, info: os.stat_result, threads: ReadingThreads) -> str | Reading:
        """The same, except that a large file is only begun with.

        :param threads: what reads a large file.
        """
        stamp = stamp_of(info)
        if known := self._remembered(path, stamp):
            return known
        if info.st_size < _WORTH_A_THREAD or threads.width == 1:
            return self._read(path, info, stamp, self._cancelled)
        return threads.start(lambda: self._read(path, info, stamp, lambda: threads.closing or self._cancelled()))

    def _remembered(self, path: str, stamp: str) -> str:
        """The digest of a file that is as it was, empty where none is known."""
        known = self._known.get(path, "")
        if not known.startswith(stamp):
            return ""
        self.seen[path] = known
        return known[len(stamp) :]

    def _read(self, path: str, info: os.stat_result, stamp: str, cancelled: Callable[[], bool]) -> str:
        passed = self._clock.passed(info)  # before the first byte is read
        value = file_digest(path, info.st_size or _MOST_UNSIZED, cancelled)
        if passed:
            self._known[path] = self.seen[path] = stamp + value
        else:
            self._known.pop(path, None)
            self.seen.pop(path, None)
        return value
