"""The Actions cache: one face for both protocols."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.cache_entry import Hit, Upload, cache_version, check_key, check_keys, scopes_text
from checkpoint_action.toolkit.cache_v1 import CacheV1
from checkpoint_action.toolkit.cache_v2 import CacheV2
from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    MissingEntryError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from checkpoint_action.toolkit.http import HttpClient
    from checkpoint_action.toolkit.runtime import CacheScope, CacheService, Runtime

__all__ = ["LOOKUP_SECONDS", "TRANSFER_SECONDS", "Cache", "Hit", "Upload", "cache_version"]

_T = TypeVar("_T")

LOOKUP_SECONDS = 90.0
"""Time for a look-up: long enough to wait out a refusal for too many calls."""

TRANSFER_SECONDS = 1800.0
"""Time for an upload or a download as a whole."""


def _unmasked(_value: str) -> None:
    pass


class Cache:
    """Entries of the Actions cache of this job. Threads may share one.

    :param http: makes the calls, with its limits and its deadline.
    :param mask: gets each signature that must not appear in the log, before it is used.
    :param plan: how files are cut for the upload.
    :param fetch_plan: how content is fetched.
    """

    def __init__(
        self,
        runtime: Runtime,
        http: HttpClient,
        *,
        mask: Callable[[str], None] = _unmasked,
        plan: blob.UploadPlan | None = None,
        fetch_plan: blob.DownloadPlan | None = None,
    ) -> None:
        self._runtime = runtime
        self._http = http
        self._mask = mask
        self._plan = plan or blob.UploadPlan()
        self._fetch_plan = fetch_plan
        self._service: CacheService | None = runtime.cache_service
        self._is_proven = False
        self._lock = threading.Lock()

    @property
    def service(self) -> CacheService | None:
        """The protocol that is spoken now; ``None`` where the environment offers no cache."""
        return self._service

    @property
    def scopes(self) -> tuple[CacheScope, ...]:
        """The refs whose entries the token reaches, in the order of a look-up; empty where it does not tell."""
        return self._runtime.scopes

    @property
    def reach(self) -> str:
        """The same in words, for whoever wonders about a miss or a denial; empty where the token does not tell."""
        return scopes_text(self._runtime.scopes)

    def lookup(self, keys: Sequence[str], version: str, *, seconds: float = LOOKUP_SECONDS) -> Hit | None:
        """The newest entry of ``version`` that fits the first of ``keys`` which fits any, or ``None``.

        A server takes every key for a prefix, the first one too: look at the hit's ``exact``, or at its key.

        :param version: 64 hex digits, equal only to itself (:func:`cache_version` for the official client's).
        :param seconds: time for the whole call, its tries and waits included.
        :raises DeniedError: the token or ``ACTIONS_CACHE_MODE`` permits no reads.
        :raises UnavailableError: the environment offers no cache.
        :raises ToolkitError: the service fails.
        """
        check_keys(keys)
        self._check_read()
        return self._run(self._http.within(seconds), lambda backend: backend.lookup(keys, version))

    def download(self, hit: Hit, target: Path, *, seconds: float = TRANSFER_SECONDS) -> int:
        """Write the content of ``hit`` to the file ``target``, whole or not at all; return its length in bytes.

        An address that has expired is asked for again under the exact key, also in the middle.

        :raises MissingEntryError: the entry is gone.
        :raises ToolkitError: the service fails.
        """
        self._check_read()
        http = self._http.within(seconds)
        return blob.download(http, hit.url, target, renew=self._renewing(http, hit), plan=self._fetch_plan)

    def read_range(self, hit: Hit, start: int, length: int, *, seconds: float = LOOKUP_SECONDS) -> blob.Excerpt:
        """Read ``length`` bytes of the content of ``hit``, from byte ``start`` on; fewer where it ends before.

        :raises MissingEntryError: the entry is gone.
        :raises ToolkitError: the service fails.
        """
        self._check_read()
        http = self._http.within(seconds)
        return blob.read_range(http, hit.url, start, length, renew=self._renewing(http, hit))

    def save(self, key: str, version: str, source: Path, *, seconds: float = TRANSFER_SECONDS) -> None:
        """Keep the content of the file ``source`` under ``key``; it becomes visible at once, when all has arrived.

        :raises DeniedError: the token or ``ACTIONS_CACHE_MODE`` permits no writes.
        :raises ReservedError: the key is taken. A broken upload may leave its key so: never use one again.
        :raises UnavailableError: the environment offers no cache.
        :raises ToolkitError: the service fails.
        """
        check_key(key)
        self._check_write()
        self._run(self._http.within(seconds), lambda backend: backend.save(key, version, source))

    @contextmanager
    def begin(self, key: str, version: str, *, seconds: float = TRANSFER_SECONDS) -> Iterator[Upload]:
        """Keep under ``key`` what is handed over piece by piece, as the pieces are ready.

        >>> with cache.begin(key, version) as entry:
        ...     body = [entry.put(piece) for piece in pieces]
        ...     entry.finish([entry.put(header), *body])

        With v2 the pieces go up at once, several at a time, and the order is only named at the end, so that what comes
        first in the entry may be made last. v1 sends all of them at the end. There is no entry without ``finish``.

        :param seconds: time for all of it.
        :raises ToolkitError: as of :meth:`save`.
        """
        check_key(key)
        self._check_write()
        http = self._http.within(seconds)
        # Reserving is what shows whether v2 is served, so the fallback can only happen here.
        with self._run(http, lambda backend: backend.begin(key, version)) as entry:
            yield entry

    def _renewing(self, http: HttpClient, hit: Hit) -> Callable[[], str]:
        def renew() -> str:
            again = self._run(http, lambda backend: backend.lookup([hit.key], hit.version))
            if again is None or again.key.lower() != hit.key.lower():
                raise MissingEntryError(f"cache entry {hit.key} is gone")
            return again.url

        return renew

    def _check_read(self) -> None:
        if not self._runtime.may_read_cache:
            raise DeniedError(f"the cache mode {self._runtime.cache_mode!r} permits no reads")

    def _check_write(self) -> None:
        if not self._runtime.may_write_cache:
            raise DeniedError(f"the cache mode {self._runtime.cache_mode!r} permits no writes")

    def _run(self, http: HttpClient, call: Callable[[CacheV1 | CacheV2], _T]) -> _T:
        """Make ``call`` with the protocol in use; change to v1 for good where v2 turns out not to be served."""
        service = self._service
        try:
            result = call(self._backend(http, service))
        except HttpStatusError as error:
            # act knows no v2: 404 and no JSON. A Twirp service says why in its ``code``, and one that has answered
            # before is there, whatever a proxy says now.
            absent = service == "v2" and error.status == 404 and not error.code and not self._is_proven
            if not absent or not self._runtime.cache_url:
                raise
        else:
            self._is_proven = True
            return result
        with self._lock:
            self._service = "v1"
        return call(self._backend(http, "v1"))

    def _backend(self, http: HttpClient, service: CacheService | None) -> CacheV1 | CacheV2:
        runtime = self._runtime
        if service == "v2" and runtime.results_url:
            return CacheV2(http, runtime.results_url, runtime.token, mask=self._mask, plan=self._plan)
        base = runtime.cache_url or runtime.results_url
        if service == "v1" and base:
            base = base if base.endswith("/") else f"{base}/"
            return CacheV1(http, base, runtime.token, mask=self._mask, plan=self._plan)
        raise UnavailableError("this job has no Actions cache: ACTIONS_RESULTS_URL and ACTIONS_CACHE_URL are not set")
