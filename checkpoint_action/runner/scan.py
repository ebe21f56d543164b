"""What a workspace holds, and what a step changed in it."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from checkpoint_action.model import Entry, Layer
from checkpoint_action.runner.entries import UNREADABLE, entries_of, entry_of, looked_at
from checkpoint_action.runner.hashing import stamp_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

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


_stamp: Callable[[os.stat_result], tuple[int, ...]] = attrgetter(
    "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode"
)
_NO_STAMP: tuple[int, ...] = ()


class _Folder:
    """What a folder held: one that is still so is passed from scan to scan as it is.

    :ivar names: all that was in it, in the order that it gave, and so for ``stamps``.
    :ivar entries: what of that counts, by name.
    :ivar below: the folders among it that are looked into.
    :ivar again: names of which a stamp does not tell all: they are looked at each time.
    """

    __slots__ = ("again", "below", "entries", "names", "stamps")

    def __init__(self, names: list[str], stamps: list[tuple[int, ...]]) -> None:
        self.names = names
        self.stamps = stamps
        self.entries: dict[str, Entry] = {}
        self.below: list[str] = []
        self.again: set[str] = set()


class Scan(MutableMapping[str, Entry]):
    """Everything in a workspace, by path, in no order.

    :ivar closed: folders that did not let us look, each ending in ``/``.
    :ivar folders: what each folder held, named as in ``closed``. One may be another scan's, too: never change it.
    :ivar digests: what the digests are from.
    """

    def __init__(self, digests: ContentDigests | None = None) -> None:
        self.closed: set[str] = set()
        self.folders: dict[str, _Folder] = {}
        self.digests = digests
        self._own: set[str] = set()

    def unseen(self, path: str) -> bool:
        """Whether a path lies where we could not look."""
        return any(path.startswith(folder) for folder in self.closed)

    def __getitem__(self, path: str) -> Entry:
        cut = path.rfind("/") + 1
        return self.folders[path[:cut]].entries[path[cut:]]

    def __setitem__(self, path: str, entry: Entry) -> None:
        cut = path.rfind("/") + 1
        self._changed(path[:cut], path[cut:]).entries[path[cut:]] = entry

    def __delitem__(self, path: str) -> None:
        cut = path.rfind("/") + 1
        del self._changed(path[:cut], path[cut:]).entries[path[cut:]]

    def __iter__(self) -> Iterator[str]:
        for folder in self.folders.values():
            for entry in folder.entries.values():
                yield entry.path

    def __len__(self) -> int:
        return sum(len(folder.entries) for folder in self.folders.values())

    def _changed(self, start: str, name: str) -> _Folder:
        """A folder of this scan's own that is told something of: a later scan believes nothing of it."""
        then = self.folders.get(start)
        if then is None or start not in self._own:
            now = _Folder(then.names, then.stamps) if then is not None else _Folder([], [])
            if then is not None:
                now.entries, now.below, now.again = dict(then.entries), then.below, set(then.again)
            self.folders[start] = then = now
            self._own.add(start)
        then.again.add(name)
        return then


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
        new = self._look(before.folders if before is not None and before.digests is digests else {}, found)
        top = os.path.join(self.root, "")
        paths = (start + folder.names[index] for start, folder, index in new)
        places = ((top + path, path) for path in paths)
        with closing(looked_at(places, digests)) as entries:
            for (start, folder, index), (_, entry, info) in zip(new, entries, strict=True):
                name = folder.names[index]
                if isinstance(entry, OSError):
                    found.closed.add(start)
                elif entry is not None:
                    folder.entries[name] = entry
                    if info is not None and _tells_all(info, entry, digests.seen.get(top + entry.path)):
                        folder.stamps[index] = _stamp(info)
                        continue
                folder.again.add(name)
        return found

    def _look(self, known: Mapping[str, _Folder], found: Scan) -> list[tuple[str, _Folder, int]]:
        """Fill ``found`` with what is as it was; of all else, which name of which folder it is.

        Every step is followed by this, in a workspace of any size: so a folder in which nothing has changed is seen to
        be so at once, and only where something has are its names gone through.
        """
        new: list[tuple[str, _Folder, int]] = []
        todo = [""]
        while todo:
            start = todo.pop()
            then = known.get(start)
            try:
                with _listed(os.path.join(self.root, start)) as items:
                    names = list(map(_name_of, items))
                    stamps = _stamps(items) if then is not None else [_NO_STAMP] * len(items)
                    if then is not None and not then.again and names == then.names and stamps == then.stamps:
                        folder = then
                    else:
                        folder = _Folder(names, stamps)
                        new += [(start, folder, index) for index in self._differing(start, items, folder, then)]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                found.closed.add(start)
                continue
            found.folders[start] = folder
            todo += [f"{start}{name}/" for name in folder.below]
        return new

    def _differing(
        self, start: str, items: list[os.DirEntry[str]], folder: _Folder, then: _Folder | None
    ) -> Iterator[int]:
        """Fill a folder with what is as it was; which of the names have to be looked at."""
        known = {} if then is None else dict(zip(then.names, then.stamps, strict=True))
        for index, item in enumerate(items):
            name = folder.names[index]
            if then is not None and known.get(name) == folder.stamps[index] and name not in then.again:
                entry = then.entries.get(name)
                if entry is not None:
                    folder.entries[name] = entry
                    if entry.type == "dir":
                        folder.below.append(name)
                    continue
            path, is_folder = start + name, item.is_dir(follow_symlinks=False)
            if name.startswith(OURS) or path in self.repositories or self.excludes.excluded(path, folder=is_folder):
                if not folder.stamps[index]:
                    folder.again.add(name)
                continue
            if is_folder:
                folder.below.append(name)
            yield index


@contextmanager
def _listed(path: str) -> Iterator[list[os.DirEntry[str]]]:
    """What a folder holds; it can be looked at as long as the block lasts."""
    if sys.platform == "win32":
        with os.scandir(path) as found:
            yield list(found)
    else:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(number) as found:  # then the system need not go along the whole path for each name
                yield list(found)
        finally:
            os.close(number)


def _stamps(items: list[os.DirEntry[str]]) -> list[tuple[int, ...]]:
    """The stamp of each, empty where it cannot be looked at."""
    try:
        if sys.platform == "win32":  # where a folder says less of a file than the file itself
            return [_stamp(os.lstat(item.path)) for item in items]
        return [_stamp(item.stat(follow_symlinks=False)) for item in items]
    except OSError:
        return [_NO_STAMP] if len(items) == 1 else [stamp for item in items for stamp in _stamps([item])]


def _tells_all(info: os.stat_result, entry: Entry, said: str | None) -> bool:
    """Whether a path is what it was as long as its stamp is.

    :param said: its stamp and digest, as they are remembered; nothing is of what was changed too short a time before.
    """
    return said == stamp_of(info) + entry.sha256 if entry.type == "file" else entry.type == "dir"


def difference(before: Scan, after: Scan) -> Layer:
    """What turns one scan into another. A path whose time alone changed counts as changed, as make sees it so.

    What we can no longer look at does not count as deleted.
    """
    changed: list[Entry] = []
    deleted: list[str] = []
    known: dict[str, str] = {}
    for start in before.folders | after.folders:
        folder, then = after.folders.get(start), before.folders.get(start)
        if folder is then:
            continue
        now, old = folder.entries if folder is not None else {}, then.entries if then is not None else {}
        for name, entry in now.items():
            was = old.get(name)
            if was is entry or was == entry:
                continue
            changed.append(entry)
            if was is not None:
                known[entry.path] = was.content
        for name, was in old.items():
            if name not in now and not after.unseen(was.path):
                deleted.append(was.path)
                known[was.path] = was.content
    return Layer(tuple(sorted(changed, key=attrgetter("path"))), tuple(sorted(deleted)), known)
