"""What a workspace holds, and what a step changed in it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkpoint_action.model import Entry, Layer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from checkpoint_action.runner.globs import Excludes
    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["OURS", "UNREADABLE", "Scan", "Workspace", "difference", "entry_of", "walk"]

OURS = ".checkpoint-run-"
"""How the names of our own files begin. They belong to no step, wherever they lie."""

UNREADABLE = ""
"""Stands for the digest of a file that we may not read."""


def entry_of(path: str, name: str, digests: ContentDigests) -> Entry | None:
    """One path as it is now.

    :param path: where it is.
    :param name: what the entry calls it.
    :returns: ``None`` where there is nothing, or nothing that can be kept (a socket, a device).
    :raises OSError: its folder does not let us look.
    """
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISREG(info.st_mode):
        try:
            sha256 = digests.digest(path, info)
        except FileNotFoundError:
            return None
        except OSError:
            sha256 = UNREADABLE
        return Entry(name, "file", mode, info.st_mtime_ns, size=info.st_size, sha256=sha256)
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
    stack = [(folder, prefix)]
    while stack:
        current, start = stack.pop()
        try:
            with os.scandir(current) as found:
                items = sorted(found, key=lambda item: item.name)
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
            yield name
            if is_folder:
                below.append((item.path, name + "/"))
        stack.extend(reversed(below))


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

    def scan(self, digests: ContentDigests) -> Scan:
        """Everything in it."""
        found = Scan()
        for name in walk(str(self.root), "", self.excludes, self.repositories, found.closed):
            try:
                entry = entry_of(os.path.join(self.root, name), name, digests)
            except OSError:
                found.closed.add(name.rpartition("/")[0] + "/")
                continue
            if entry is not None:
                found[name] = entry
        return found


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
