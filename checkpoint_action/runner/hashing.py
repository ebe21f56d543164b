"""Digests of file contents, each computed once for as long as the file stays as it is."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

from checkpoint_action.runner.stop import StoppedError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["ContentDigests", "Stamp", "file_digest", "never", "text_digest"]

_BUFFER = 1 << 18
_ENDLESS = 1 << 63
_RACY_NS = 2_000_000_000
"""A file changed less than this before its digest was taken may change again without its times telling (coarse
clocks of file systems, up to two seconds on FAT): git calls that racily clean. Such a digest is not kept."""


class Stamp(NamedTuple):
    """What tells cheaply that a file is still the one that was looked at."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Stamp:
        """The stamp of a stat result."""
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


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
    buffer = bytearray(_BUFFER)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as file:
        while left > 0:
            if cancelled():
                raise StoppedError
            got = file.readinto(view[: min(left, _BUFFER)])
            if not got:
                break
            digest.update(view[:got])
            left -= got
    return digest.hexdigest()


class ContentDigests:
    """Remembers digests by stamp within one run.

    :param cancelled: asked again and again while a file is read; once true, no further byte is.
    """

    def __init__(self, cancelled: Callable[[], bool] = never) -> None:
        self._cancelled = cancelled
        self._known: dict[str, tuple[Stamp, str]] = {}

    def digest(self, path: str, stat: os.stat_result) -> str:
        """SHA-256 of the file's content, hex.

        :param stat: what ``lstat`` says of it now; of a file that has grown since, no more than its size is read.
        :raises OSError: it cannot be read.
        :raises StoppedError: it was cancelled.
        """
        stamp = Stamp.of(stat)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        looked = time.time_ns()
        value = file_digest(path, stamp.size, self._cancelled)
        if max(stamp.mtime_ns, stamp.ctime_ns) < looked - _RACY_NS:
            self._known[path] = (stamp, value)
        else:
            self._known.pop(path, None)
        return value
