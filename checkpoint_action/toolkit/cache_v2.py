"""Cache service v2: three Twirp methods and a signed blob URL."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.cache_entry import Hit, denial, denied_read, refused_reservation, taken
from checkpoint_action.toolkit.errors import HttpStatusError, ProtocolError, ToolkitError
from checkpoint_action.toolkit.exchange import patient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from checkpoint_action.toolkit.cache_entry import Upload
    from checkpoint_action.toolkit.exchange import FileSlice
    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["CacheV2"]

_SERVICE = "twirp/github.actions.results.api.v1.CacheService"
_FINALIZE_TRIES = 5


class CacheV2:
    """The operations against one results service.

    :param results_url: the service's address; only its origin is used, as the official client does.
    :param mask: gets the signatures of signed URLs before they are used.
    """

    def __init__(
        self, http: HttpClient, results_url: str, token: str, *, mask: Callable[[str], None], plan: blob.UploadPlan
    ) -> None:
        origin = re.match(r"\w+://[^/?#]+", results_url)
        self._http = http
        self._base = f"{origin[0] if origin else results_url}/{_SERVICE}"
        self._token = token
        self._mask = mask
        self._plan = plan

    def lookup(self, keys: Sequence[str], version: str) -> Hit | None:
        """The entry that the server prefers for ``keys``, or ``None``."""
        payload: dict[str, object] = {"key": keys[0], "version": version}
        if len(keys) > 1:
            payload["restore_keys"] = list(keys[1:])
        data = self._call("GetCacheEntryDownloadURL", payload)
        if data.get("ok") is not True:
            refusal = denied_read(_text(data, "message", "message"))
            if refusal is not None:
                raise refusal
            return None
        url = _text(data, "signed_download_url", "signedDownloadUrl")
        key = _text(data, "matched_key", "matchedKey")
        if not url or not key:
            raise ProtocolError("GetCacheEntryDownloadURL answered a hit without its address or key")
        blob.mask_signature(url, self._mask)
        return Hit(key, version, url, exact=key.lower() == keys[0].lower())

    def save(self, key: str, version: str, source: Path) -> None:
        """Reserve ``key``, upload ``source`` and make the entry visible."""
        url = self._reserve(key, version)
        self._finalize(key, version, blob.upload(self._http, url, source, plan=self._plan))

    def begin(self, key: str, version: str) -> AbstractContextManager[Upload]:
        """Reserve ``key`` for an entry that is handed over in pieces."""
        return self._pieces(key, version, self._reserve(key, version))

    @contextmanager
    def _pieces(self, key: str, version: str, url: str) -> Iterator[Upload]:
        with blob.BlockUpload(self._http, url, plan=self._plan) as blocks:
            yield _Pieces(blocks, lambda size: self._finalize(key, version, size))

    def _reserve(self, key: str, version: str) -> str:
        """The address to upload to."""
        try:
            data = self._call("CreateCacheEntry", {"key": key, "version": version}, changes=True)
        except HttpStatusError as error:
            if error.status == 409:
                raise taken(key, error) from error
            raise
        if data.get("ok") is not True:
            raise refused_reservation(key, _text(data, "message", "message"))
        url = _text(data, "signed_upload_url", "signedUploadUrl")
        if not url:
            raise ProtocolError("CreateCacheEntry answered without an address for the upload")
        blob.mask_signature(url, self._mask)
        return url

    def _finalize(self, key: str, version: str, size: int) -> None:
        """Finalize; the service may not see the blob at once, and is asked again for a while."""
        payload = {"key": key, "size_bytes": str(size), "version": version}
        tries = 1
        while True:
            try:
                data = self._call("FinalizeCacheEntryUpload", payload, changes=True)
                break
            except HttpStatusError as error:
                if error.status == 409 and error.repeated and self._is_there(key, version):
                    return  # by an earlier try whose answer was lost
                if error.code != "not_found" or tries >= _FINALIZE_TRIES:
                    raise
            self._http.pause(self._http.backoff(tries), "FinalizeCacheEntryUpload")
            tries += 1
        if data.get("ok") is not True:
            said = " ".join(_text(data, "message", "message").split())[:300]
            raise ProtocolError("FinalizeCacheEntryUpload was refused" + (f": {said}" if said else ""))

    def _is_there(self, key: str, version: str) -> bool:
        try:
            hit = self.lookup([key], version)
        except ToolkitError:  # nobody knows, then: the refusal counts
            return False
        return hit is not None and hit.exact

    def _call(self, method: str, payload: Mapping[str, object], *, changes: bool = False) -> dict[str, object]:
        headers = {"authorization": f"Bearer {self._token}"}
        limits = patient(self._http.limits) if changes else None
        try:
            return self._http.request_json(
                "POST", f"{self._base}/{method}", label=method, headers=headers, payload=payload, limits=limits
            )
        except HttpStatusError as error:
            refusal = denial(error)
            if refusal is None:
                raise
            raise refusal from error


class _Pieces:
    def __init__(self, blocks: blob.BlockUpload, finalize: Callable[[int], None]) -> None:
        self._blocks = blocks
        self._finalize = finalize

    def put(self, body: bytes | FileSlice) -> blob.Part:
        return self._blocks.put(body)

    def finish(self, parts: Iterable[blob.Part]) -> int:
        size = self._blocks.commit(parts)
        self._finalize(size)
        return size


def _text(data: Mapping[str, object], name: str, json_name: str) -> str:
    """A text field in either of the two spellings that servers use."""
    return str(data.get(name) or data.get(json_name) or "")
