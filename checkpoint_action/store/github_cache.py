"""Archives in the Actions cache."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.errors import StoreError, StoreMissingError
from checkpoint_action.store.base import FilePart, Found
from checkpoint_action.store.bounded import bounded
from checkpoint_action.toolkit.cache import LOOKUP_SECONDS, TRANSFER_SECONDS
from checkpoint_action.toolkit.errors import HttpStatusError, MissingEntryError
from checkpoint_action.toolkit.exchange import FileSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from checkpoint_action.toolkit.blob import Part
    from checkpoint_action.toolkit.cache import Cache, Hit, Upload

__all__ = ["CACHE_VERSION", "GithubCacheStore", "Pieces"]

_T = TypeVar("_T")

_FORMAT = 1
CACHE_VERSION = hashlib.sha256(f"checkpoint-run|{_FORMAT}".encode()).hexdigest()
"""Version of our cache entries: no other client's look-up meets them, nor ours theirs, on any system."""


class GithubCacheStore:
    """The Actions cache as a :class:`~checkpoint_action.store.base.Store`.

    :param lookup_seconds: time for a look-up. A refusal for too many calls is waited out within it, since a false miss
        means that finished work runs again.
    :param transfer_seconds: time for an archive to go or come; a stall ends it sooner (the HTTP client's idle limit).
    """

    def __init__(
        self, cache: Cache, *, lookup_seconds: float = LOOKUP_SECONDS, transfer_seconds: float = TRANSFER_SECONDS
    ) -> None:
        self._cache = cache
        self._lookup_seconds = lookup_seconds
        self._transfer_seconds = transfer_seconds
        self._hits: dict[str, Hit] = {}

    @property
    def name(self) -> str:
        """What people call it, for messages."""
        return "Actions cache"

    @property
    def reach(self) -> str:
        """Which refs' entries this job can read and write, in words, for whoever wonders about a miss; or empty."""
        return self._cache.reach

    def find(self, prefix: str) -> Found | None:
        """The newest entry whose key starts with ``prefix`` (letter case apart), or ``None``.

        Its address is kept here and not in the result: it lets anyone read, and is good for minutes only.
        """
        hit = self._bounded("look-up", self._lookup_seconds, lambda: self._lookup(prefix))
        if hit is None or not hit.key.lower().startswith(prefix.lower()):
            return None
        self._hits[hit.key] = hit
        return Found(hit.key)

    def save(self, key: str, source: Path) -> None:
        """Keep the content of the file ``source`` under ``key``, all or nothing.

        :raises StoreTakenError: another key will do.
        """
        seconds = self._transfer_seconds
        self._bounded("save", seconds, lambda: self._cache.save(key, CACHE_VERSION, source, seconds=seconds))

    @contextmanager
    def begin(self, key: str) -> Iterator[Pieces]:
        """Keep under ``key`` what is handed over piece by piece, as the pieces are ready: all of it, or nothing.

        >>> with store.begin(key) as entry:
        ...     layers = [entry.put(FileSlice(path, 0, size)) for path, size in made_one_by_one()]
        ...     entry.finish([entry.put(header), *layers])

        :raises StoreTakenError: another key will do.
        """
        seconds = self._transfer_seconds
        opened = self._cache.begin(key, CACHE_VERSION, seconds=seconds)
        entry = self._bounded("save", seconds, opened.__enter__)
        try:
            yield Pieces(entry, self._bounded, seconds)
        except BaseException as error:
            kind, failure, trace = type(error), error, error.__traceback__
            with suppress(StoreError):  # the caller is told of the first failure
                self._bounded("save", self._lookup_seconds, lambda: opened.__exit__(kind, failure, trace))
            raise
        self._bounded("save", seconds, lambda: opened.__exit__(None, None, None))

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: the entry is gone, or only its content is.
        """
        hit = self._hit(found)
        self._hits.pop(found.key, None)
        self._bounded("download", self._transfer_seconds, lambda: self._download(hit, target))

    def read(self, found: Found, start: int, length: int) -> bytes:
        """Read ``length`` bytes of the entry's content, from byte ``start`` on; fewer where it ends before.

        :raises StoreMissingError: the entry is gone, or only its content is.
        """
        hit = self._hit(found)
        return self._bounded("look at an entry", self._lookup_seconds, lambda: self._read(hit, start, length))

    def _hit(self, found: Found) -> Hit:
        hit = self._hits.get(found.key)
        if hit is None:
            hit = self._bounded("look-up", self._lookup_seconds, lambda: self._lookup(found.key))
            if hit is None or not hit.exact:
                raise StoreMissingError(f"{self.name}: {found.key} is gone")
            self._hits[found.key] = hit
        return hit

    def _download(self, hit: Hit, target: Path) -> None:
        with _content_of(hit):
            self._cache.download(hit, target, seconds=self._transfer_seconds)

    def _read(self, hit: Hit, start: int, length: int) -> bytes:
        with _content_of(hit):
            return self._cache.read_range(hit, start, length, seconds=self._lookup_seconds).data

    def _lookup(self, key: str) -> Hit | None:
        return self._cache.lookup([key], CACHE_VERSION, seconds=self._lookup_seconds)

    def _bounded(self, what: str, seconds: float, call: Callable[[], _T]) -> _T:
        return bounded(self.name, what, seconds, call, reach=self.reach)


class Pieces:
    """An entry that is being handed over; every call is bounded in time and raises nothing but ``StoreError``."""

    def __init__(self, entry: Upload, bounded: Callable[[str, float, Callable[[], object]], object], seconds: float):
        self._entry = entry
        self._bounded = bounded
        self._seconds = seconds

    def put(self, body: bytes | FilePart | FileSlice) -> Part:
        """Hand a piece over. A file must stay as it is until :meth:`finish` has returned."""
        sent = FileSlice(body.path, body.offset, body.length) if isinstance(body, FilePart) else body
        parts: list[Part] = []
        self._bounded("save", self._seconds, lambda: parts.append(self._entry.put(sent)))
        return parts[0]

    def finish(self, parts: Iterable[Part]) -> None:
        """Make the entry of ``parts``, in this order, and visible."""
        self._bounded("save", self._seconds, lambda: self._entry.finish(parts))


@contextmanager
def _content_of(hit: Hit) -> Iterator[None]:
    try:
        yield
    except HttpStatusError as error:
        if error.status not in {404, 410}:  # at an address that was renewed until then
            raise
        raise MissingEntryError(f"the content of {hit.key} is gone") from error
