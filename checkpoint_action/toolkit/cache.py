"""The Actions cache: one face for both protocols."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.cache_entry import Hit, cache_version, check_key, check_keys
from checkpoint_action.toolkit.cache_v1 import CacheV1
from checkpoint_action.toolkit.cache_v2 import CacheV2
from checkpoint_action.toolkit.errors import DeniedError, HttpStatusError, MissingEntryError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from checkpoint_action.toolkit.http import HttpClient
    from checkpoint_action.toolkit.runtime import CacheService, Runtime

__all__ = ["LOOKUP_SECONDS", "TRANSFER_SECONDS", "Cache", "Hit", "cache_version"]

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
    """

    def __init__(
        self,
        runtime: Runtime,
        http: HttpClient,
        *,
        mask: Callable[[str], None] = _unmasked,
        plan: blob.UploadPlan | None = None,
    ) -> None:
        self._runtime = runtime
        self._http = http
        self._mask = mask
        self._plan = plan or blob.UploadPlan()
        self._service: CacheService | None = runtime.cache_service
        self._lock = threading.Lock()

    @property
    def service(self) -> CacheService | None:
        """The protocol that is spoken now; ``None`` where the environment offers no cache."""
        return self._service

    def lookup(self, keys: Sequence[str], version: str, *, seconds: float = LOOKUP_SECONDS) -> Hit | None:
        """The newest entry of ``version`` that fits the first of ``keys`` which fits any, or ``None``.

        A server takes every key for a prefix, the first one too: look at the key of the hit.

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

        def renew() -> str:
            again = self._run(http, lambda backend: backend.lookup([hit.key], hit.version))
            if again is None or again.key.lower() != hit.key.lower():
                raise MissingEntryError(f"cache entry {hit.key} is gone")
            return again.url

        return blob.download(http, hit.url, target, renew=renew)

    def save(self, key: str, version: str, source: Path, *, seconds: float = TRANSFER_SECONDS) -> None:
        """Keep the content of the file ``source`` under ``key``; it becomes visible at once, when all has arrived.

        :raises DeniedError: the token or ``ACTIONS_CACHE_MODE`` permits no writes.
        :raises ReservedError: the key is taken. A broken upload may leave its key so: never use one again.
        :raises UnavailableError: the environment offers no cache.
        :raises ToolkitError: the service fails.
        """
        check_key(key)
        if not self._runtime.may_write_cache:
            raise DeniedError(f"the cache mode {self._runtime.cache_mode!r} permits no writes")
        self._run(self._http.within(seconds), lambda backend: backend.save(key, version, source))

    def _check_read(self) -> None:
        if not self._runtime.may_read_cache:
            raise DeniedError(f"the cache mode {self._runtime.cache_mode!r} permits no reads")

    def _run(self, http: HttpClient, call: Callable[[CacheV1 | CacheV2], _T]) -> _T:
        """Make ``call`` with the protocol in use; change to v1 for good where v2 turns out not to be served."""
        service = self._service
        try:
            return call(self._backend(http, service))
        except HttpStatusError as error:
            # act knows no v2: 404 and no JSON. A Twirp service says why in its ``code``.
            if service != "v2" or error.status != 404 or error.code or not self._runtime.cache_url:
                raise
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
