"""Digests of file contents, each computed once for as long as the file stays as it is."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os

__all__ = ["ContentDigests", "Stamp", "file_digest", "text_digest"]

_BUFFER = 1 << 18
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


def file_digest(path: str) -> str:
    """SHA-256 of a file's content, hex.

    :raises OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    buffer = bytearray(_BUFFER)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as file:
        while size := file.readinto(buffer):
            digest.update(view[:size])
    return digest.hexdigest()


class ContentDigests:
    """Remembers digests by stamp within one run."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, str]] = {}

    def digest(self, path: str, stat: os.stat_result) -> str:
        """SHA-256 of the file's content, hex.

        :param stat: what ``lstat`` says of it now.
        :raises OSError: it cannot be read.
        """
        stamp = Stamp.of(stat)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        looked = time.time_ns()
        value = file_digest(path)
        if max(stamp.mtime_ns, stamp.ctime_ns) < looked - _RACY_NS:
            self._known[path] = (stamp, value)
        else:
            self._known.pop(path, None)
        return value
