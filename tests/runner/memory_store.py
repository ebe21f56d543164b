"""A store in memory that can be made slow, to fail and to lie."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError, StoreMissingError
from checkpoint_action.store.base import Found

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MemoryStore"]


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
            raise StoreError(f"{key} is there already")
        self.entries[key] = source.read_bytes()

    def fetch(self, found: Found, target: Path) -> None:
        self._called("fetch")
        if found.key not in self.entries:
            raise StoreMissingError(f"{found.key} is not there")
        target.write_bytes(self.entries[found.key])
