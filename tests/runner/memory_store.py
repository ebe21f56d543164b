"""A store in memory that can be made slow, to fail and to lie."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreMissingError, StoreTakenError
from checkpoint_action.store.base import FilePart, Found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["MemoryPieceStore", "MemoryStore"]


class MemoryStore:
    """Keeps archives in order.

    :ivar entries: archives by key, oldest first.
    :ivar gate: while it is not set, no upload ends.
    :ivar uploading: set once an upload waits at the gate.
    :ivar refuse: why the next calls fail: by method name.
    :ivar calls: names of the methods called.
    :ivar hang: names of the methods that do not return while the gate is not set.
    """

    name = "memory"
    reach = ""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.uploading = threading.Event()
        self.refuse: dict[str, Exception] = {}
        self.calls: list[str] = []
        self.hang: set[str] = set()

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.hang:
            self.gate.wait()
        if name in self.refuse:
            raise self.refuse[name]

    def find(self, prefix: str) -> Found | None:
        self._called("find")
        keys = [key for key in self.entries if key.startswith(prefix)]
        return Found(keys[-1]) if keys else None

    def save(self, key: str, source: Path) -> None:
        self.uploading.set()
        self.gate.wait()
        self._called("save")
        if key in self.entries:
            raise StoreTakenError(f"{key} is there already")
        self.entries[key] = source.read_bytes()

    def fetch(self, found: Found, target: Path) -> None:
        self._called("fetch")
        if found.key not in self.entries:
            raise StoreMissingError(f"{found.key} is not there")
        target.write_bytes(self.entries[found.key])

    def read(self, found: Found, start: int, length: int) -> bytes:
        self._called("read")
        if found.key not in self.entries:
            raise StoreMissingError(f"{found.key} is not there")
        return self.entries[found.key][start : start + length]


class MemoryPieceStore(MemoryStore):
    """One that takes pieces.

    :ivar begun: keys of the entries that were begun.
    :ivar ended: keys of those that were left, with what they were left by.
    :ivar pieces: bytes of each piece, by its entry's key, in the order in which they came.
    :ivar came: set whenever a piece has come.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.ended: list[tuple[str, BaseException | None]] = []
        self.pieces: dict[str, list[int]] = {}
        self.came = threading.Event()

    @contextmanager
    def begin(self, key: str) -> Iterator[Handed]:
        self._called("begin")
        if key in self.entries:
            raise StoreTakenError(f"{key} is there already")
        self.begun.append(key)
        self.pieces[key] = []
        try:
            yield Handed(self, key)
        except BaseException as error:
            self.ended.append((key, error))
            raise
        self.ended.append((key, None))

    def put(self, key: str, size: int) -> None:
        self.uploading.set()
        self.gate.wait()
        self._called("put")
        self.pieces[key].append(size)
        self.came.set()


class Handed:
    """An entry of it on its way. Pieces are read at the end, as late as a store may."""

    def __init__(self, store: MemoryPieceStore, key: str) -> None:
        self._store = store
        self._key = key
        self._bodies: list[bytes | FilePart] = []

    def put(self, body: bytes | FilePart) -> int:
        self._store.put(self._key, body.length if isinstance(body, FilePart) else len(body))
        self._bodies.append(body)
        return len(self._bodies) - 1

    def finish(self, parts: Iterable[int]) -> None:
        self._store._called("finish")
        content = bytearray()
        for number in parts:
            body = self._bodies[number]
            if isinstance(body, FilePart):
                with body.path.open("rb") as file:
                    file.seek(body.offset)
                    data = file.read(body.length)
                    assert len(data) == body.length
                    content += data
            else:
                content += body
        self._store.entries[self._key] = bytes(content)
