"""What a path is, as an entry: its content is read where nothing else tells."""

from __future__ import annotations

import os
import stat
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from checkpoint_action.model import Entry
from checkpoint_action.runner.reading import Reading, ReadingThreads

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["UNREADABLE", "entries_of", "entry_of", "looked_at"]

UNREADABLE = ""
"""Stands for the digest of a file that we may not read."""

_MOST_AHEAD = 1024
"""Paths that are looked at before an earlier file has been read, so that memory stays flat."""


def entry_of(path: str, name: str, digests: ContentDigests) -> Entry | None:
    """One path as it is now.

    :param path: where it is.
    :param name: what the entry calls it.
    :returns: ``None`` where there is nothing, or nothing that can be kept (a socket, a device).
    :raises OSError: its folder does not let us look.
    :raises StoppedError: the digests were cancelled.
    """
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(info.st_mode):
        return _no_file(path, name, info)
    try:
        return _file(name, info, digests.digest(path, info))
    except OSError as error:
        return _unread(name, info, error)


def entries_of(
    places: Iterable[tuple[str, str]], digests: ContentDigests
) -> Generator[tuple[str, Entry | OSError | None], None, None]:
    """What :func:`entry_of` gives for each of many paths, in their order; what it raises as ``OSError`` is given, too.

    Large files are read side by side. Close it where it is not read to its end: then no thread is left behind.

    :param places: where each path is, and what its entry calls it.
    :returns: the names, each with its entry.
    :raises StoppedError: the digests were cancelled.
    """
    with closing(looked_at(places, digests)) as found:
        for name, entry, _info in found:
            yield name, entry


def looked_at(
    places: Iterable[tuple[str, str]], digests: ContentDigests
) -> Generator[tuple[str, Entry | OSError | None, os.stat_result | None], None, None]:
    """What :func:`entries_of` gives, each with what ``lstat`` said of it, where it said something."""
    ahead: deque[tuple[str, Entry | OSError | _Begun | None, os.stat_result | None]] = deque()
    begun = 0
    with ReadingThreads() as threads:
        for path, name in places:
            entry, info = _begin(path, name, digests, threads)
            if not ahead and not isinstance(entry, _Begun):
                yield name, entry, info
                continue
            ahead.append((name, entry, info))
            begun += isinstance(entry, _Begun)
            while ahead and (
                not isinstance(first := ahead[0][1], _Begun)
                or first.reading.ended
                or begun > 2 * threads.width
                or len(ahead) > _MOST_AHEAD
            ):
                begun -= isinstance(first, _Begun)
                yield _finished(*ahead.popleft())
        for one in ahead:
            yield _finished(*one)


class _Begun(NamedTuple):
    """A file that is being read."""

    info: os.stat_result
    reading: Reading


def _finished(
    name: str, entry: Entry | OSError | _Begun | None, info: os.stat_result | None
) -> tuple[str, Entry | OSError | None, os.stat_result | None]:
    if not isinstance(entry, _Begun):
        return name, entry, info
    try:
        return name, _file(name, entry.info, entry.reading.result()), info
    except OSError as error:
        return name, _unread(name, entry.info, error), info


def _begin(
    path: str, name: str, digests: ContentDigests, threads: ReadingThreads
) -> tuple[Entry | OSError | _Begun | None, os.stat_result | None]:
    try:
        info = os.lstat(path)
        if not stat.S_ISREG(info.st_mode):
            return _no_file(path, name, info), info
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        return error, None
    try:
        digest = digests.begin(path, info, threads)
    except OSError as error:
        return _unread(name, info, error), info
    return (_file(name, info, digest) if isinstance(digest, str) else _Begun(info, digest)), info


def _file(name: str, info: os.stat_result, sha256: str) -> Entry:
    return Entry(name, "file", stat.S_IMODE(info.st_mode), info.st_mtime_ns, info.st_size, sha256)


def _unread(name: str, info: os.stat_result, error: OSError) -> Entry | None:
    return None if isinstance(error, FileNotFoundError) else _file(name, info, UNREADABLE)


def _no_file(path: str, name: str, info: os.stat_result) -> Entry | None:
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISDIR(info.st_mode):
        return Entry(name, "dir", mode, info.st_mtime_ns)
    if stat.S_ISLNK(info.st_mode):
        try:
            return Entry(name, "link", mode, info.st_mtime_ns, target=os.readlink(path))
        except FileNotFoundError:
            return None
    return None
