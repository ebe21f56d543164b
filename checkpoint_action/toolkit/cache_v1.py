"""Cache service v1, as enterprise servers, act, Gitea and Forgejo speak it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.cache_entry import Hit, denial, refused_reservation
from checkpoint_action.toolkit.errors import HttpStatusError, ProtocolError
from checkpoint_action.toolkit.exchange import FileSlice
from checkpoint_action.toolkit.parallel import each

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["CacheV1"]

_T = TypeVar("_T")

_ACCEPT = "application/json;api-version=6.0-preview.1"
_NO_TOKEN = "none"  # noqa: S105 - no password
"""Bearer where the job has no token: act asks for none, the secret is in its path."""


class CacheV1:
    """The three operations against one cache server.

    :param cache_url: the server's address with a closing slash; a path in it is kept, and may be a secret.
    :param token: may be empty (act).
    :param mask: gets the signatures of signed URLs before they are used.
    """

    def __init__(
        self, http: HttpClient, cache_url: str, token: str, *, mask: Callable[[str], None], plan: blob.UploadPlan
    ) -> None:
        self._http = http
        self._base = f"{cache_url}_apis/artifactcache"
        self._headers = {"accept": _ACCEPT, "authorization": f"Bearer {token or _NO_TOKEN}"}
        self._mask = mask
        self._plan = plan

    def lookup(self, keys: Sequence[str], version: str) -> Hit | None:
        """The entry that the server prefers for ``keys``, or ``None``."""
        query = f"keys={quote(','.join(keys), safe='')}&version={quote(version, safe='')}"
        data = self._call("GET", f"cache?{query}", "cache look-up")
        if not data:
            return None
        url, key = data.get("archiveLocation"), data.get("cacheKey")
        if not isinstance(url, str) or not isinstance(key, str) or not url or not key:
            raise ProtocolError("cache look-up answered a hit without its address or key")
        blob.mask_signature(url, self._mask)
        return Hit(key, version, url, exact=key.lower() == keys[0].lower())

    def save(self, key: str, version: str, source: Path) -> None:
        """Reserve ``key``, upload ``source`` in chunks and commit."""
        size = source.stat().st_size
        number = self._reserve(key, version, size)
        slices = [FileSlice(source, at, min(self._plan.block, size - at)) for at in range(0, size, self._plan.block)]

        def send(part: FileSlice) -> None:
            headers = {
                **self._headers,
                "content-type": "application/octet-stream",
                "content-range": f"bytes {part.offset}-{part.offset + part.length - 1}/*",
            }
            url = f"{self._base}/caches/{number}"
            self._guarded(lambda: self._http.request("PATCH", url, label="cache upload", headers=headers, body=part))

        each(send, slices, parallel=self._plan.parallel)
        self._commit(number, size)

    def _reserve(self, key: str, version: str, size: int) -> int:
        payload = {"key": key, "version": version, "cacheSize": size}
        try:
            data = self._call("POST", "caches", "cache reservation", payload)
        except HttpStatusError as error:
            if error.status == 409:
                raise refused_reservation(key, "") from error
            raise
        number = data.get("cacheId")
        if not isinstance(number, int) or number < 0:
            raise refused_reservation(key, str(data.get("message") or ""))
        return number

    def _commit(self, number: int, size: int) -> None:
        url = f"{self._base}/caches/{number}"
        body = f'{{"size":{size}}}'.encode()
        headers = {**self._headers, "content-type": "application/json"}
        try:
            self._guarded(lambda: self._http.request("POST", url, label="cache commit", headers=headers, body=body))
        except HttpStatusError as error:
            # The number is ours alone: complete already means that an earlier try got through and its answer was lost.
            if error.status != 400 or "already complete" not in error.body:
                raise

    def _call(
        self, method: str, resource: str, label: str, payload: dict[str, object] | None = None
    ) -> dict[str, object]:
        url = f"{self._base}/{resource}"
        return self._guarded(
            lambda: self._http.request_json(method, url, label=label, headers=self._headers, payload=payload)
        )

    @staticmethod
    def _guarded(call: Callable[[], _T]) -> _T:
        try:
            return call()
        except HttpStatusError as error:
            refusal = denial(error)
            if refusal is None:
                raise
            raise refusal from error
