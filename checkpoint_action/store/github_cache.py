"""Archives in the Actions cache."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreMissingError
from checkpoint_action.store.base import Found
from checkpoint_action.toolkit.cache import LOOKUP_SECONDS, TRANSFER_SECONDS
from checkpoint_action.toolkit.errors import DeniedError, HttpStatusError, MissingEntryError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.cache import Cache, Hit

__all__ = ["CACHE_VERSION", "GithubCacheStore"]

_T = TypeVar("_T")

_FORMAT = 1
CACHE_VERSION = hashlib.sha256(f"checkpoint-run|{_FORMAT}".encode()).hexdigest()
"""Version of our cache entries: no other client's look-up meets them, nor ours theirs, on any system."""

_GRACE = 5.0
"""Seconds past its limit after which a call is left alone, whatever it hangs in (a name server, say)."""


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
        """Keep the content of the file ``source`` under ``key``, all or nothing."""
        seconds = self._transfer_seconds
        self._bounded("save", seconds, lambda: self._cache.save(key, CACHE_VERSION, source, seconds=seconds))

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: the entry is gone, or only its content is.
        """
        hit = self._hits.pop(found.key, None)
        if hit is None:
            hit = self._bounded("look-up", self._lookup_seconds, lambda: self._lookup(found.key))
            if hit is None or not hit.exact:
                raise StoreMissingError(f"{self.name}: {found.key} is gone")
        self._bounded("download", self._transfer_seconds, lambda: self._download(hit, target))

    def _download(self, hit: Hit, target: Path) -> None:
        try:
            self._cache.download(hit, target, seconds=self._transfer_seconds)
        except HttpStatusError as error:
            if error.status not in {404, 410}:  # at an address that was renewed until then
                raise
            raise MissingEntryError(f"the content of {hit.key} is gone") from error

    def _lookup(self, key: str) -> Hit | None:
        return self._cache.lookup([key], CACHE_VERSION, seconds=self._lookup_seconds)

    def _bounded(self, what: str, seconds: float, call: Callable[[], _T]) -> _T:
        """The result of ``call``, in time: it runs in a thread that is left behind when it does not keep its limits.

        Name resolution and a trickling answer know no time limit of their own, and a job must never hang in them.
        """
        results: list[_T] = []
        failures: list[BaseException] = []

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=work, name=f"cache {what}", daemon=True)
        thread.start()
        thread.join(seconds + _GRACE)
        if results:
            return results[0]
        if not failures:
            raise StoreError(f"{self.name}: {what}: out of time")
        try:
            raise failures[0]
        except DeniedError as error:
            raise StoreDeniedError(f"{self.name}: {error}") from error
        except MissingEntryError as error:
            raise StoreMissingError(f"{self.name}: {error}") from error
        except ToolkitError as error:
            raise StoreError(f"{self.name}: {error}") from error
        except OSError as error:
            raise StoreError(f"{self.name}: {what}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
