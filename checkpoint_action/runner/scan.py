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

__all__ = ["UNREADABLE", "Workspace", "difference", "entry_of", "walk"]

UNREADABLE = ""
"""Stands for the digest of a file that we may not read."""


def entry_of(path: str, name: str, digests: ContentDigests) -> Entry | None:
    """One path as it is now.

    :param path: where it is.
    :param name: what the entry calls it.
    :returns: ``None`` where there is nothing, or nothing that can be kept (a socket, a device).
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
        return Entry(name, "link", mode, info.st_mtime_ns, target=os.readlink(path))
    return None


def walk(
    folder: str, prefix: str, skip: Excludes | None = None, without: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Names of all below a folder, folders before what they hold; links are not followed.

    :param prefix: what the names begin with, empty or ending in ``/``.
    :param without: names that are left out with all they hold.
    """
    stack = [(folder, prefix)]
    while stack:
        current, start = stack.pop()
        try:
            with os.scandir(current) as found:
                items = sorted(found, key=lambda item: item.name)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        below = []
        for item in items:
            name = start + item.name
            is_folder = item.is_dir(follow_symlinks=False)
            if name in without or (skip and skip.excluded(name, folder=is_folder)):
                continue
            yield name
            if is_folder:
                below.append((item.path, name + "/"))
        stack.extend(reversed(below))


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

    def scan(self, digests: ContentDigests) -> dict[str, Entry]:
        """Everything in it, by path."""
        entries = {}
        for name in walk(str(self.root), "", self.excludes, self.repositories):
            entry = entry_of(os.path.join(self.root, name), name, digests)
            if entry is not None:
                entries[name] = entry
        return entries


def difference(before: dict[str, Entry], after: dict[str, Entry]) -> Layer:
    """What turns one scan into another. A path whose time alone changed counts as changed, as make sees it so."""
    changed = []
    known = {}
    for path, entry in after.items():
        old = before.get(path)
        if old == entry:
            continue
        changed.append(entry)
        if old is not None:
            known[path] = old.content
    deleted = [path for path in before if path not in after]
    known.update((path, before[path].content) for path in deleted)
    return Layer(tuple(sorted(changed, key=lambda entry: entry.path)), tuple(sorted(deleted)), known)
