"""A disk that loses its power: what may be found on it afterwards, of all that was written, synced, renamed, removed.

Until a file is synced, each piece that was written since may be there, or not, or in part, or as zeros, and in any
order; its length may have grown without its content. Until a folder is synced, each name that came or went in it since
may have done so, or not: the first so many of them as on ext4, or any of them, which is harsher than file systems are.
A rename is one step, and says nothing of the content of the file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.torture.syscalls import Call

__all__ = ["Disk", "Found", "Node", "UnmodelledError", "contents", "found_in", "lay_out", "random_content"]

_SECTORS = (512, 4096)
_MOST_BLOCKS = 6
_MOST_CUTS = 12

Found = dict[str, tuple[str, int, bytes]]
"""What lies under the top: path to kind (``file``, ``dir``, ``link``), mode and content."""


class UnmodelledError(Exception):
    """A call of which the model does not know what it does."""


@dataclass(eq=False, slots=True)
class Node:
    """A file, folder or link, whatever it is called.

    :ivar durable: the content that was synced.
    :ivar pending: pieces written since: offset and bytes; or a length and nothing, where it was cut or made longer.
    :ivar entries: of a folder: its names as the programs see them.
    """

    kind: str
    mode: int
    durable: bytes = b""
    current: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    entries: dict[str, Node] = field(default_factory=dict)
    position: int = 0
    appends: bool = False


@dataclass(eq=False, slots=True)
class _Naming:
    """One change of names: what each of them stands for from then on.

    :ivar path: one of the names, with all that stands before it.
    """

    path: str
    changes: tuple[tuple[Node, str, Node | None], ...]
    synced: bool = False


class Disk:
    """All below one folder.

    :param top: absolute; what is below it when the disk is made is durable.
    """

    def __init__(self, top: Path) -> None:
        self._top = str(top)
        self.root = Node("dir", 0o755)
        self._base: dict[Node, dict[str, Node]] = {self.root: {}}
        self._namings: list[_Naming] = []
        for name, (kind, mode, content) in found_in(top).items():
            folder, last = self._walk(f"{top}/{name}")
            folder.entries[last] = self._base.setdefault(folder, {})[last] = Node(kind, mode, content, content)

    def holds(self, path: str) -> bool:
        """Whether a path is below the top."""
        return path.startswith(f"{self._top}/")

    def _walk(self, path: str) -> tuple[Node, str]:
        """The folder of a path, and its name in it."""
        *folders, name = os.path.normpath(path)[len(self._top) + 1 :].split("/")
        node = self.root
        for one in folders:
            node = node.entries[one]
        return node, name

    def _at(self, path: str) -> Node:
        if os.path.normpath(path) == self._top:
            return self.root
        folder, name = self._walk(path)
        return folder.entries[name]

    def pending_nodes(self) -> dict[Node, str]:
        """Files with pieces that are not synced, as far as they have, or may have, a name; with one of their names."""
        named = {node: name for entries in self._base.values() for name, node in entries.items()}
        for naming in self._namings:
            named |= {node: name for _folder, name, node in naming.changes if node is not None}
        return {node: name for node, name in named.items() if node.pending}

    @property
    def namings(self) -> Sequence[_Naming]:
        """Changes of names that are not synced, oldest first."""
        return [naming for naming in self._namings if not naming.synced]

    def apply(self, call: Call) -> bool:
        """Have a call take place; whether it was about anything below the top.

        :raises UnmodelledError: it is of a kind that the model does not have.
        """
        path = call.path
        is_ours = self.holds(path) or path == self._top
        if call.name == "rename" and not is_ours and self.holds(call.other):
            raise UnmodelledError(f"something is brought in by {call}")
        if not is_ours or path.endswith(" (deleted)"):
            return False
        apply: Callable[[Call], None] | None = getattr(self, f"_{call.name}", None)
        if apply is None:
            raise UnmodelledError(f"{call.name} of {path}")
        apply(call)
        return True

    def _name(self, *changes: tuple[str, Node | None]) -> None:
        placed = []
        for path, node in changes:
            folder, name = self._walk(path)
            placed.append((folder, name, node))
            if node is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = node
        self._namings.append(_Naming(changes[-1][0], tuple(placed)))

    def _open(self, call: Call) -> None:
        folder, name = self._walk(call.path)
        node = folder.entries.get(name)
        if node is None:
            node = Node("file", call.number & ~0o022)
            self._name((call.path, node))
        elif "O_TRUNC" in call.flags and node.current:
            self._write_to(node, 0, None)
        node.position = 0
        node.appends = "O_APPEND" in call.flags

    def _write(self, call: Call) -> None:
        node = self._at(call.path)
        at = call.number if call.number >= 0 else len(node.current) if node.appends else node.position
        self._write_to(node, at, call.data)
        if call.number < 0:
            node.position = at + len(call.data)

    def _write_to(self, node: Node, at: int, data: bytes | None) -> None:
        node.pending.append((at, data))
        node.current = _after(node.current, at, data)

    def _lseek(self, call: Call) -> None:
        self._at(call.path).position = call.number

    def _ftruncate(self, call: Call) -> None:
        self._write_to(self._at(call.path), call.number, None)

    _truncate = _ftruncate

    def _fchmod(self, call: Call) -> None:
        self._at(call.path).mode = call.number

    _chmod = _fchmod

    def _fsync(self, call: Call) -> None:
        node = self._at(call.path)
        if node.kind == "file":
            node.durable = node.current
            node.pending.clear()
            return
        for naming in self._namings:
            naming.synced |= any(folder is node for folder, _name, _node in naming.changes)
        while self._namings and self._namings[0].synced:
            _settle(self._namings.pop(0), self._base)

    def _mkdir(self, call: Call) -> None:
        self._name((call.path, Node("dir", call.number & ~0o022)))

    def _symlink(self, call: Call) -> None:
        self._name((call.path, Node("link", 0o777, call.other.encode(), call.other.encode())))

    def _unlink(self, call: Call) -> None:
        self._name((call.path, None))

    _rmdir = _unlink

    def _rename(self, call: Call) -> None:
        if not self.holds(call.other):
            raise UnmodelledError(f"something is taken away by {call}")
        self._name((call.path, None), (call.other, self._at(call.path)))

    def _link(self, call: Call) -> None:
        self._name((call.other, self._at(call.path)))

    def found(self, kept: Callable[[_Naming], bool], content: Mapping[Node, bytes], *, lost: bool) -> Found:
        """What is found after the power was lost.

        :param kept: whether a change of names that was not synced took place.
        :param content: what is in files that were not synced; in others of them nothing that was not synced is there
            (``lost``), or all of it.
        """
        names = {node: dict(entries) for node, entries in self._base.items()}
        for naming in self._namings:
            if naming.synced or kept(naming):
                _settle(naming, names)
        found: Found = {}

        def look(folder: Node, path: str) -> None:
            for name, node in sorted(names.get(folder, {}).items()):
                here = f"{path}{name}"
                if here in found:
                    continue
                held = content.get(node, node.durable if lost else node.current)
                found[here] = (node.kind, node.mode, b"" if node.kind == "dir" else held)
                if node.kind == "dir":
                    look(node, f"{here}/")

        look(self.root, "")
        return found


def _settle(naming: _Naming, names: dict[Node, dict[str, Node]]) -> None:
    for folder, name, node in naming.changes:
        entries = names.setdefault(folder, {})
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _after(content: bytes, at: int, data: bytes | None) -> bytes:
    if data is None:
        return content[:at].ljust(at, b"\0")
    return content[:at].ljust(at, b"\0") + data + content[at + len(data) :]


def contents(node: Node) -> Iterator[bytes]:
    """What a file may hold after a loss of power, apart from all and nothing of what was not synced."""
    old, new = node.durable, node.current
    zeroed = bytearray(old[: len(new)].ljust(len(new), b"\0"))
    yield bytes(zeroed)  # the length is there, what is in it is not
    pieces = [(at, data) for at, data in node.pending if data]
    total = sum(len(data) for _at, data in pieces)
    cuts = {1, 2, total // 4, total // 2, 3 * total // 4, total - 2, total - 1, *range(512, total, 512)}
    for cut in sorted(cut for cut in cuts if 0 < cut < total)[:_MOST_CUTS]:
        yield _cut(node, cut)
    for size in _SECTORS:
        blocks = [at for at in range(0, len(new), size) if zeroed[at : at + size] != new[at : at + size]]
        for at in blocks[:_MOST_BLOCKS] if len(blocks) > 1 else ():
            one = slice(at, at + size)
            yield bytes(zeroed[: one.start]) + new[one] + bytes(zeroed[one.stop :])
            yield new[: one.start] + bytes(zeroed[one]) + new[one.stop :]
    for number in range(len(node.pending)) if len(node.pending) > 1 else ():
        yield _without(node, {number})  # what was written later has overtaken it


def _cut(node: Node, size: int) -> bytes:
    """The first so many bytes of what was written."""
    content = node.durable
    for at, data in node.pending:
        piece = data if data is None else data[:size]
        if data is not None and not size:
            break
        content = _after(content, at, piece)
        size -= len(piece or b"")
    return content


def _without(node: Node, numbers: set[int]) -> bytes:
    content = node.durable
    for number, (at, data) in enumerate(node.pending):
        if number not in numbers:
            content = _after(content, at, data)
    return content


def random_content(node: Node, chance: random.Random) -> bytes:
    """Any one of what a file may hold, several things at once included."""
    kind = chance.randrange(6)
    if kind == 0:
        return node.durable
    if kind == 1:
        return node.current
    total = sum(len(data) for _at, data in node.pending if data)
    if kind == 2 and total:
        return _cut(node, chance.randrange(total + 1))
    if kind == 3:
        return _without(node, {number for number in range(len(node.pending)) if chance.random() < 0.5})
    new = node.current
    old = node.durable[: len(new)].ljust(len(new), b"\0")
    size = chance.choice(_SECTORS)
    starts = range(0, len(new), size)
    return b"".join((new if chance.random() < 0.5 else old)[at : at + size] for at in starts)


def found_in(top: Path) -> Found:
    """What really lies under a folder."""
    found: Found = {}
    for path in sorted(top.rglob("*")):
        name, mode = str(path.relative_to(top)), path.lstat().st_mode & 0o7777
        if path.is_symlink():
            found[name] = ("link", 0o777, os.readlink(path).encode())
        else:
            found[name] = ("dir", mode, b"") if path.is_dir() else ("file", mode, path.read_bytes())
    return found


def lay_out(found: Found, top: Path) -> None:
    """Make an empty folder hold what was found."""
    for name in sorted(found):  # a folder comes before what is in it
        kind, mode, content = found[name]
        path = f"{top}/{name}"
        if kind == "dir":
            os.mkdir(path)
        elif kind == "link":
            os.symlink(content.decode(), path)
        else:
            with open(path, "wb") as file:
                file.write(content)
            if mode != 0o644:
                os.chmod(path, mode)
