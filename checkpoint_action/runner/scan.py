"""What a workspace holds, and what a step changed in it."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from checkpoint_action.model import Entry, Layer
from checkpoint_action.runner.entries import UNREADABLE, entries_of, entry_of, looked_at
from checkpoint_action.runner.hashing import stamp_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import TypeAlias

    from checkpoint_action.runner.globs import Excludes
    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["OURS", "UNREADABLE", "Scan", "Workspace", "difference", "entries_of", "entry_of", "walk", "walk_items"]

OURS = ".checkpoint-run-"
"""How the names of our own files begin. They belong to no step, wherever they lie."""


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


_Known: TypeAlias = "tuple[Entry, tuple[int, ...]]"
_stamp: Callable[[os.stat_result], tuple[int, ...]] = attrgetter(
    "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode"
)


class Scan(dict[str, Entry]):
    """Everything in a workspace, by path, in no order.

    :ivar closed: folders that did not let us look, each ending in ``/``.
    :ivar known: of what is as it was as long as its stamp is, entry and stamp: by folder, as in ``closed``, and name.
    :ivar digests: what the digests are from.
    """

    def __init__(self, digests: ContentDigests | None = None) -> None:
        super().__init__()
        self.closed: set[str] = set()
        self.known: dict[str, dict[str, _Known]] = {}
        self.digests = digests

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

    def check_kept(self, layer: Layer) -> None:
        """See that nothing of a layer lies in a repository of the checkout, or where our own files do.

        :raises ValueError: something does: no step's changes are ever kept from there.
        """
        for path in (*(entry.path for entry in layer.entries), *layer.deleted):
            parts = path.split("/")
            if any(part.startswith(OURS) for part in parts) or any(
                "/".join(parts[:number]) in self.repositories for number in range(1, len(parts) + 1)
            ):
                raise ValueError(f"it would write to {path}")

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
        found = Scan(digests)
        new = self._look(before.known if before is not None and before.digests is digests else {}, found)
        top = os.path.join(self.root, "")
        places = ((top + name, name) for name in new)
        with closing(looked_at(places, digests)) as entries:
            for name, entry, info in entries:
                if isinstance(entry, OSError):
                    found.closed.add(name.rpartition("/")[0] + "/")
                elif entry is not None:
                    found[name] = entry
                    if info is not None and _tells_all(info, entry, digests.seen.get(top + name)):
                        cut = name.rfind("/") + 1
                        found.known[name[:cut]][name[cut:]] = entry, _stamp(info)
        return found

    def _look(self, known: Mapping[str, dict[str, _Known]], found: Scan) -> list[str]:
        """Fill ``found`` with what is as it was; the paths of all else.

        Every step is followed by this, in a workspace of any size: so it is one loop that does little for each path. It
        keeps the order that a folder gives: what is known then lies in memory as it is come upon.
        """
        new: list[str] = []
        folders = [(str(self.root), "")]
        while folders:
            folder, start = folders.pop()
            then = known.get(start) or {}
            now = found.known[start] = {}
            try:
                with os.scandir(folder) as items:
                    for item in items:
                        name = item.name
                        if name in then:
                            entry, stamp = then[name]
                            try:  # on Windows a folder says less of a file than the file itself
                                info = (
                                    os.lstat(item.path) if sys.platform == "win32" else item.stat(follow_symlinks=False)
                                )
                                is_still = _stamp(info) == stamp
                            except OSError:
                                is_still = False
                            if is_still:
                                now[name] = then[name]
                                path = entry.path
                                found[path] = entry
                                if entry.type == "dir":
                                    folders.append((item.path, path + "/"))
                                continue
                        path = start + name
                        is_folder = item.is_dir(follow_symlinks=False)
                        if name.startswith(OURS) or path in self.repositories:
                            continue
                        if self.excludes.excluded(path, folder=is_folder):
                            continue
                        new.append(path)
                        if is_folder:
                            folders.append((item.path, path + "/"))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                found.closed.add(start)
        return new


def _tells_all(info: os.stat_result, entry: Entry, said: str | None) -> bool:
    """Whether a path is what it was as long as its stamp is.

    :param said: its stamp and digest, as they are remembered; nothing is of what was changed too short a time before.
    """
    return said == stamp_of(info) + entry.sha256 if entry.type == "file" else entry.type == "dir"


def difference(before: Scan, after: Scan) -> Layer:
    """What turns one scan into another. A path whose time alone changed counts as changed, as make sees it so.

    What we can no longer look at does not count as deleted.
    """
    changed = []
    known = {}
    for path, entry in after.items():
        old = before.get(path)
        if old is entry or old == entry:
            continue
        changed.append(entry)
        if old is not None:
            known[path] = old.content
    deleted = [path for path in before if path not in after and not after.unseen(path)]
    known.update((path, before[path].content) for path in deleted)
    return Layer(tuple(sorted(changed, key=lambda entry: entry.path)), tuple(sorted(deleted)), known)
