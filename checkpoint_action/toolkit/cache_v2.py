"""Cache service v2: three Twirp methods and a signed blob URL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.cache_entry import Hit, denial, refused_reservation
from checkpoint_action.toolkit.errors import HttpStatusError, ProtocolError, ReservedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["CacheV2"]

_SERVICE = "twirp/github.actions.results.api.v1.CacheService"
_FINALIZE_TRIES = 5


class CacheV2:
    """The three operations against one results service.

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
        if not data.get("ok"):
            return None
        url = _text(data, "signed_download_url", "signedDownloadUrl")
        key = _text(data, "matched_key", "matchedKey")
        if not url or not key:
            raise ProtocolError("GetCacheEntryDownloadURL answered a hit without its address or key")
        blob.mask_signature(url, self._mask)
        return Hit(key, version, url, exact=key.lower() == keys[0].lower())

    def save(self, key: str, version: str, source: Path) -> None:
        """Reserve ``key``, upload ``source`` and make the entry visible."""
        try:
            data = self._call("CreateCacheEntry", {"key": key, "version": version})
        except HttpStatusError as error:
            if error.status == 409:
                raise ReservedError(f"cache key {key} is taken") from error
            raise
        if not data.get("ok"):
            raise refused_reservation(key, _text(data, "message", "message"))
        url = _text(data, "signed_upload_url", "signedUploadUrl")
        if not url:
            raise ProtocolError("CreateCacheEntry answered without an address for the upload")
        blob.mask_signature(url, self._mask)
        size = blob.upload(self._http, url, source, plan=self._plan)
        self._finalize({"key": key, "size_bytes": str(size), "version": version})

    def _finalize(self, payload: Mapping[str, object]) -> None:
        """Finalize; the service may not see the blob at once, and is asked again for a while."""
        tries = 1
        while True:
            try:
                data = self._call("FinalizeCacheEntryUpload", payload)
                break
            except HttpStatusError as error:
                if error.code != "not_found" or tries >= _FINALIZE_TRIES:
                    raise
            self._http.pause(self._http.backoff(tries), "FinalizeCacheEntryUpload")
            tries += 1
        if not data.get("ok"):
            said = " ".join(_text(data, "message", "message").split())[:300]
            raise ProtocolError("FinalizeCacheEntryUpload was refused" + (f": {said}" if said else ""))

    def _call(self, method: str, payload: Mapping[str, object]) -> dict[str, object]:
        headers = {"authorization": f"Bearer {self._token}"}
        try:
            return self._http.request_json(
                "POST", f"{self._base}/{method}", label=method, headers=headers, payload=payload
            )
        except HttpStatusError as error:
            refusal = denial(error)
            if refusal is None:
                raise
            raise refusal from error


def _text(data: Mapping[str, object], name: str, json_name: str) -> str:
    """A text field in either of the two spellings that servers use."""
    return str(data.get(name) or data.get(json_name) or "")
