"""A folder as the tests of resuming see it: a real one, or one that is only remembered."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["Disk", "File", "Folder", "Link", "Node", "RealDisk", "RememberedDisk", "Tree", "expanded", "follow"]


@dataclass(frozen=True, slots=True)
class File:
    """A file as far as it counts."""

    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as far as it counts."""

    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


Node: TypeAlias = File | Folder | Link
Tree: TypeAlias = dict[str, Node]


class Disk(Protocol):
    """Paths relative to one folder, with ``/`` between their parts."""

    def get(self, path: str) -> Node | None:
        """What is at a path; links are not followed."""
        ...

    def put(self, path: str, node: Node) -> None:
        """Put something in the place of whatever is there; its folders are made."""
        ...

    def remove(self, path: str) -> None:
        """Remove what is at a path, if anything, with all it holds."""
        ...

    def below(self, folder: str) -> list[str]:
        """All paths below a folder, in order."""
        ...

    def tree(self) -> Tree:
        """Everything."""
        ...


class RememberedDisk:
    """A folder that is only remembered."""

    def __init__(self) -> None:
        self._tree: Tree = {}

    def get(self, path: str) -> Node | None:
        """See :class:`Disk`."""
        return self._tree.get(path)

    def put(self, path: str, node: Node) -> None:
        """See :class:`Disk`."""
        if not (isinstance(node, Folder) and isinstance(self._tree.get(path), Folder)):
            self.remove(path)
        for end in (place for place, char in enumerate(path) if char == "/"):
            self._tree.setdefault(path[:end], Folder())
        self._tree[path] = node

    def remove(self, path: str) -> None:
        """See :class:`Disk`."""
        for name in [name for name in self._tree if name == path or name.startswith(f"{path}/")]:
            del self._tree[name]

    def below(self, folder: str) -> list[str]:
        """See :class:`Disk`."""
        return sorted(path for path in self._tree if path.startswith(f"{folder}/"))

    def tree(self) -> Tree:
        """See :class:`Disk`."""
        return dict(self._tree)


class RealDisk:
    """A real folder."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def _place(self, path: str) -> str:
        return f"{self.root}/{path}"

    def get(self, path: str) -> Node | None:
        """See :class:`Disk`."""
        place = self._place(path)
        try:
            info = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(info.st_mode):
            return Link(os.readlink(place))
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISDIR(info.st_mode):
            return Folder(mode)
        with open(place, "rb") as file:
            return File(file.read(), mode)

    def put(self, path: str, node: Node) -> None:
        """See :class:`Disk`."""
        place = self._place(path)
        there = self.get(path)
        if there is not None and not (type(there) is type(node) and isinstance(node, File | Folder)):
            self.remove(path)
        self._make_folders(path)
        if isinstance(node, Link):
            os.symlink(node.target, place)
            return
        if isinstance(node, Folder):
            os.makedirs(place, exist_ok=True)
        else:
            if isinstance(there, File):
                os.chmod(place, 0o600)  # written in its place, so that its inode stays
            with open(place, "wb") as file:
                file.write(node.content)
        os.chmod(place, node.mode)

    def put_unseen(self, path: str, node: File) -> None:
        """Put other content into a file and give it the time it had."""
        before = os.lstat(self._place(path))
        self.put(path, node)
        os.utime(self._place(path), ns=(before.st_atime_ns, before.st_mtime_ns))

    def touch(self, path: str) -> None:
        """Give what is at a path an old time."""
        os.utime(self._place(path), ns=(10**18, 10**18), follow_symlinks=False)

    def _make_folders(self, path: str) -> None:
        for end in (place for place, char in enumerate(path) if char == "/"):
            place = self._place(path[:end])
            with suppress(FileExistsError):  # another step may have made it just now
                os.mkdir(place)
                os.chmod(place, 0o755)

    def remove(self, path: str) -> None:
        """See :class:`Disk`."""
        place = self._place(path)
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
        elif os.path.lexists(place):
            os.unlink(place)

    def tree(self) -> Tree:
        """See :class:`Disk`."""
        nodes = {path: self.get(path) for path in self._paths(".")}
        return {path: node for path, node in nodes.items() if node is not None}

    def below(self, folder: str) -> list[str]:
        """See :class:`Disk`."""
        return sorted(self._paths(folder))

    def _paths(self, top: str) -> Iterator[str]:
        for folder, folders, files in os.walk(self._place(top)):
            for name in [*folders, *files]:
                yield os.path.relpath(os.path.join(folder, name), self.root)


def follow(disk: Disk, path: str) -> File | None:
    """The file that a path leads to, by a link beside it if need be."""
    node = disk.get(path)
    if isinstance(node, Link):
        node = disk.get(_beside(path, node))
    return node if isinstance(node, File) else None


def _beside(path: str, link: Link) -> str:
    return posixpath.normpath(f"{posixpath.dirname(path)}/{link.target}")


def expanded(tree: Tree, patterns: Sequence[str], *, through: bool) -> tuple[set[str], set[str]]:
    """What patterns name: paths, and the patterns that name nothing.

    A folder stands for itself and all it holds.

    :param through: whether a link that a pattern itself matches stands for the file it leads to as well.
    """
    found: set[str] = set()
    behind: dict[str, set[str]] = {}
    missing: set[str] = set()
    for pattern in patterns:
        if pattern.startswith("!"):
            taken = _named(tree, pattern[1:])
            found -= taken
            behind = {end: left for end, links in behind.items() if end not in taken and (left := links - taken)}
            continue
        tops, named = _tops(tree, pattern), _named(tree, pattern)
        # A folder that an input names stands for what its links lead to, too.
        whole = named if through and "*" not in pattern else tops
        ends = {path: _beside(path, node) for path in whole if isinstance(node := tree[path], Link)}
        if not named or (pattern in ends and ends[pattern] not in tree):
            missing.add(pattern)
        found |= named
        for path, end in ends.items():
            if through and end in tree:
                behind.setdefault(end, set()).add(path)
    return found | set(behind), missing


def _named(tree: Tree, pattern: str) -> set[str]:
    return {path for top in _tops(tree, pattern) for path in tree if path == top or path.startswith(f"{top}/")}


def _tops(tree: Tree, pattern: str) -> list[str]:
    """What a pattern itself matches."""
    plain = pattern.rstrip("/")
    if "*" not in plain:
        return [plain] if plain in tree else []
    text = re.escape(plain).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*\*", ".+").replace(r"\*", "[^/]*")
    rule = re.compile(text)
    return [path for path in tree if rule.fullmatch(path)]
