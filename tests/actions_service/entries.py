"""The cache entries that both protocols look through."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Entries", "Entry"]


@dataclass
class Entry:
    """A reservation, and once complete an entry."""

    number: int
    scope: str
    key: str
    version: str
    blob: str
    complete: bool = False
    created: int = 0
    size: int = 0


class Entries:
    """Entries by number; numbers and creation times only grow.

    :ivar uploads_per_minute: how many reservations are taken within 60 seconds (github.com: 200 in a repository);
        ``None`` for any number.
    :ivar clock: what these seconds are told by.
    """

    def __init__(self) -> None:
        self.uploads_per_minute: int | None = None
        self.clock: Callable[[], float] = time.monotonic
        self._taken: deque[float] = deque()
        self.all: dict[int, Entry] = {}
        self.lock = threading.RLock()
        self._counter = itertools.count(1)

    def count_upload(self) -> int:
        """Count a reservation, or tell the whole seconds after which there is room for one again."""
        with self.lock:
            if self.uploads_per_minute is None:
                return 0
            now = self.clock()
            while self._taken and self._taken[0] <= now - 60:
                self._taken.popleft()
            if len(self._taken) >= self.uploads_per_minute:
                return int(self._taken[0] + 60 - now) + 1
            self._taken.append(now)
            return 0

    def reserve(self, scope: str, key: str, version: str) -> Entry:
        with self.lock:
            number = next(self._counter)
            entry = self.all[number] = Entry(number, scope, key, version, f"entry-{number}")
            return entry

    def find(self, scope: str, key: str, version: str, *, complete: bool | None = None) -> Entry | None:
        """The newest entry of exactly this name."""
        with self.lock:
            for entry in sorted(self.all.values(), key=lambda entry: -entry.number):
                same = (entry.scope, entry.key, entry.version) == (scope, key, version)
                if same and (complete is None or entry.complete == complete):
                    return entry
        return None

    def complete(self, entry: Entry, size: int) -> None:
        with self.lock:
            entry.complete, entry.size, entry.created = True, size, next(self._counter)

    def match(self, scopes: Iterable[str], keys: Iterable[str], version: str) -> Entry | None:
        """The entry a look-up gets: scope by scope, key by key, exact before prefix, newest first."""
        wanted = list(keys)
        with self.lock:
            ready = sorted(
                (e for e in self.all.values() if e.complete and e.version == version), key=lambda e: -e.created
            )
            for scope in scopes:
                mine = [entry for entry in ready if entry.scope == scope]
                for key in wanted:
                    exact = [entry for entry in mine if entry.key == key]
                    for entry in exact or [entry for entry in mine if entry.key.startswith(key)]:
                        return entry
        return None
