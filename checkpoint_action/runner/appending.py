"""A file that is appended to so that each piece is on the disk before anything goes on."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AppendedFile"]

_ROOM = 1 << 16
"""Bytes that are made ahead. A sync that finds the file as large as before, with blocks of its own for all of it, waits
for the data alone, about half as long; and not for whatever else has changed in the file system meanwhile."""

_sync_data = getattr(os, "fdatasync", os.fsync)


class AppendedFile:
    """An existing file and what is added to it. What has been made ahead are NUL bytes, until it is closed.

    :raises OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._fd = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        self._end = self._size = self._synced = os.fstat(self._fd).st_size
        self._has_grown = False  # since the last sync: then it is not enough to sync the data

    def append(self, data: bytes, *, sync: bool = True) -> None:
        """Append and wait until it is on the disk, with all before it. What could be written of a failed append is
        taken back.

        :param sync: whether to wait; else it gets there with the next append that does.
        :raises OSError: the disk is full, say.
        """
        try:
            if self._end + len(data) > self._size:
                self._write_with_room(data)
            else:
                self._write(data)
            if sync:
                self.sync(self._end + len(data))
        except OSError:
            self._cut()
            raise
        self._end += len(data)

    def sync(self, end: int | None = None) -> None:
        """Wait until all of it is on the disk.

        :param end: how far it goes; as far as it was appended to.
        :raises OSError: it did not get there.
        """
        if self._has_grown:
            os.fsync(self._fd)
            self._has_grown = False
        else:
            _sync_data(self._fd)
        self._synced = self._end if end is None else end

    @property
    def is_synced(self) -> bool:
        """Whether all of it is on the disk."""
        return self._synced == self._end

    def _write_with_room(self, data: bytes) -> None:
        """Write with new room behind it, or where there is none for that without."""
        self._has_grown = True
        try:
            self._write(data + bytes(_ROOM))
        except OSError:
            self._cut()
            self._write(data)
        self._size = os.fstat(self._fd).st_size

    def _write(self, data: bytes) -> None:
        view, at = memoryview(data), self._end
        while view:
            written = _write_at(self._fd, view, at)
            view, at = view[written:], at + written

    def _cut(self) -> None:
        with suppress(OSError):
            os.ftruncate(self._fd, self._end)
            self._size = self._end

    def is_in_place(self) -> bool:
        """Whether its path still leads to it."""
        try:
            there, held = os.stat(self._path), os.fstat(self._fd)  # noqa: PTH116  # for speed
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)

    def close(self) -> None:
        """Let go of it, without the room that was made ahead."""
        if self._size > self._end:
            self._cut()
        os.close(self._fd)


def _write_at(fd: int, data: memoryview, at: int) -> int:
    if sys.platform == "win32":
        os.lseek(fd, at, os.SEEK_SET)
        return os.write(fd, data)
    return os.pwrite(fd, data, at)
