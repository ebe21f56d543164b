"""What a workspace holds, and what a step changed in it."""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from checkpoint_action.model import Entry, Layer
from checkpoint_action.runner.hashing import stamp_of
from checkpoint_action.runner.reading import Reading, ReadingThreads

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from checkpoint_action.runner.globs import Excludes
    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["OURS", "UNREADABLE", "Scan", "Workspace", "difference", "entries_of", "entry_of", "walk", "walk_items"]

OURS = ".checkpoint-run-"
"""How the names of our own files begin. They belong to no step, wherever they lie."""

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
    ahead: deque[tuple[str, Entry | OSError | _Begun | None]] = deque()
    begun = 0
    with ReadingThreads() as threads:
        for path, name in places:
            entry = _begin(path, name, digests, threads)
            if not ahead and not isinstance(entry, _Begun):
                yield name, entry
                continue
            ahead.append((name, entry))
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


def _finished(name: str, entry: Entry | OSError | _Begun | None) -> tuple[str, Entry | OSError | None]:
    if not isinstance(entry, _Begun):
        return name, entry
    try:
        return name, _file(name, entry.info, entry.reading.result())
    except OSError as error:
        return name, _unread(name, entry.info, error)


def _begin(path: str, name: str, digests: ContentDigests, threads: ReadingThreads) -> Entry | OSError | _Begun | None:
    try:
        info = os.lstat(path)
        if not stat.S_ISREG(info.st_mode):
            return _no_file(path, name, info)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error
    try:
        digest = digests.begin(path, info, threads)
    except OSError as error:
        return _unread(name, info, error)
    return _file(name, info, digest) if isinstance(digest, str) else _Begun(info, digest)


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


def walk(
    folder: str,
    prefix: str,
    skip: Excludes | None = None,
    without: frozenset[str] = frozenset(),
    closed: set[str] | None = None,
) -> Iterator[str]:
    """Names of all below a folder, folders before what they hold; links are not followed, our own files left out.

    :param prefix: what the names begin with, empty or ending in ``/``.
    :param without: names that are left out with all they hold.
    :param closed: gets the folders that do not let us look, each ending in ``/``.
    """
    return (name for _, name in walk_items(folder, prefix, skip, without, closed))


def walk_items(
    folder: str,
    prefix: str,
    skip: Excludes | None = None,
    without: frozenset[str] = frozenset(),
    closed: set[str] | None = None,
) -> Iterator[tuple[os.DirEntry[str], str]]:
    """What :func:`walk` finds, with what the folder says of each: mostly its kind, without another look."""
    stack = [(folder, prefix)]
    while stack:
        current, start = stack.pop()
        try:
            with os.scandir(current) as found:
                items = sorted(found, key=_name_of)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            if closed is not None:
                closed.add(start)
            continue
        below = []
        for item in items:
            if item.name.startswith(OURS):
                continue
            name = start + item.name
            is_folder = item.is_dir(follow_symlinks=False)
            if name in without or (skip and skip.excluded(name, folder=is_folder)):
                continue
            yield item, name
            if is_folder:
                below.append((item.path, name + "/"))
        stack.extend(reversed(below))


_name_of = attrgetter("name")


class Scan(dict[str, Entry]):
    """Everything in a workspace, by path.

    :ivar closed: folders that did not let us look, each ending in ``/``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.closed: set[str] = set()

    def unseen(self, path: str) -> bool:
        """Whether a path lies where we could not look."""
        return any(path.startswith(folder) for folder in self.closed)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder whose changes are kept.

    :param root: absolute folder.
    :param excludes: what is never kept.
    :param repositories: folders named ``.git`` that were there before the first step; they are the checkout's own.
    """

    root: Path
    excludes: Excludes
    repositories: frozenset[str]

    @classmethod
    def at(cls, root: Path, excludes: Excludes) -> Workspace:
        """The workspace as the job finds it."""
        found = {name for name in walk(str(root), "", excludes) if name.rpartition("/")[2] == ".git"}
        return cls(root, excludes, frozenset({".git"} | found))

    def holds(self, path: str) -> bool:
        """Whether a name from elsewhere lies in the workspace, and not behind a link that leads out of it."""
        parts = path.split("/")
        if os.path.isabs(path) or not {"", ".", ".."}.isdisjoint(parts):
            return False
        folder = os.path.realpath(os.path.join(self.root, *parts[:-1]))
        return folder == os.path.normpath(os.path.join(os.path.realpath(self.root), *parts[:-1]))

    def keeps(self, path: str, *, folder: bool) -> bool:
        """Whether a path is looked at: it is not excluded, nor in a repository that the checkout brought."""
        parts = path.split("/")
        if any(part.startswith(OURS) for part in parts):
            return False
        for number in range(1, len(parts) + 1):
            name = "/".join(parts[:number])
            if name in self.repositories or self.excludes.excluded(name, folder=folder or number < len(parts)):
                return False
        return True

    def scan(self, digests: ContentDigests, before: Scan | None = None) -> Scan:
        """Everything in it.

        :param before: what an earlier scan with the same digests found. Whatever is still so is taken from it, which is
            far less work than to put it together again.
        """
        found = Scan()
        items = walk_items(str(self.root), "", self.excludes, self.repositories, found.closed)
        new = list(_not_taken_over(items, before or Scan(), digests.seen, found))
        places = ((os.path.join(self.root, name), name) for name in new)
        with closing(entries_of(places, digests)) as entries:
            for name, entry in entries:
                if isinstance(entry, OSError):
                    found.closed.add(name.rpartition("/")[0] + "/")
                if isinstance(entry, Entry):
                    found[name] = entry
                else:
                    del found[name]
        return found


_NOT_YET = Entry("", "file", 0, 0)
"""Holds the place of what has to be looked at more closely, so that the order stays."""


def _not_taken_over(
    items: Iterable[tuple[os.DirEntry[str], str]], before: Scan, seen: Mapping[str, str], found: Scan
) -> Iterator[str]:
    """Fill ``found`` with the entries of plain files that are as they were; the names of all else."""
    for item, name in items:
        old = before.get(name)
        said = seen.get(item.path)
        if old is not None and said is not None and _is_still(item, old, said):
            found[name] = old
        else:
            found[name] = _NOT_YET
            yield name


def _is_still(item: os.DirEntry[str], old: Entry, said: str) -> bool:
    """Whether a path is the file that it was.

    :param said: its stamp and digest, as they are remembered; nothing is of what was changed too short a time before.
    """
    try:
        info = os.lstat(item.path) if sys.platform == "win32" else item.stat(follow_symlinks=False)
    except OSError:
        return False
    return (
        old.mtime_ns == info.st_mtime_ns
        and stat.S_ISREG(info.st_mode)
        and old.mode == stat.S_IMODE(info.st_mode)
        and said == stamp_of(info) + old.sha256
    )


def difference(before: Scan, after: Scan) -> Layer:
    """What turns one scan into another. A path whose time alone changed counts as changed, as make sees it so.

    What we can no longer look at does not count as deleted.
    """
    changed = []
    known = {}
    for path, entry in after.items():
        old = before.get(path)
        if old == entry:
            continue
        changed.append(entry)
        if old is not None:
            known[path] = old.content
    deleted = [path for path in before if path not in after and not after.unseen(path)]
    known.update((path, before[path].content) for path in deleted)
    return Layer(tuple(sorted(changed, key=lambda entry: entry.path)), tuple(sorted(deleted)), known)
