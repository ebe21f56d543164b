"""Cache service v2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.actions_service.messages import Reply, Route, json_reply, twirp_error
from tests.actions_service.tokens import token_scopes

if TYPE_CHECKING:
    from tests.actions_service.blobs import Blobs
    from tests.actions_service.entries import Entries
    from tests.actions_service.messages import Request

__all__ = ["CacheV2Service"]

_PREFIX = "/twirp/github.actions.results.api.v1.CacheService/"
_CAMEL = {
    "signed_upload_url": "signedUploadUrl",
    "signed_download_url": "signedDownloadUrl",
    "matched_key": "matchedKey",
    "entry_id": "entryId",
}


class CacheV2Service:
    """The three methods.

    Switches, all off: ``camel_case`` answers in the other JSON spelling; ``denies_with_403`` refuses writes by status;
    ``taken_is_ok_false`` answers a taken key with 200; ``present`` off leaves the service out, as act does;
    ``unseen_blobs`` counts the Finalize calls that do not see the blob yet; ``finalizes_once`` answers a second
    Finalize with 409; :meth:`be_gitea` turns on what Gitea's runner does.
    """

    def __init__(self, entries: Entries, blobs: Blobs, base_url: str) -> None:
        self.camel_case = False
        self.denies_with_403 = False
        self.taken_is_ok_false = False
        self.present = True
        self.unseen_blobs = 0
        self.finalizes_once = False
        self._is_gitea = False
        self._entries = entries
        self._blobs = blobs
        self._base_url = base_url

    def be_gitea(self) -> None:
        """Answer as Gitea's runner: every refusal is ``ok: false``, and an unfinished reservation is handed out again
        to the job that made it."""
        self._is_gitea = self.taken_is_ok_false = self._blobs.lists_once = True

    def route(self, request: Request) -> Route | None:
        if not request.path.startswith(_PREFIX) or not self.present:
            return None
        method = request.path.removeprefix(_PREFIX)
        return Route(method, lambda: self._answer(request, method))

    def _answer(self, request: Request, method: str) -> Reply:
        known = {
            "CreateCacheEntry": self._create,
            "FinalizeCacheEntryUpload": self._finalize,
            "GetCacheEntryDownloadURL": self._get,
        }.get(method)
        if known is None or request.method != "POST":
            return twirp_error(404, "bad_route", f"no handler for path {request.path}")
        if not request.bearer:
            return twirp_error(401, "unauthenticated", "missing bearer token")
        reply = known(request, request.json())
        return reply if isinstance(reply, Reply) else json_reply(self._spelled(reply))

    def _create(self, request: Request, data: dict[str, object]) -> Reply | dict[str, object]:
        scope = next((ref for ref, bits in token_scopes(request.bearer) if bits & 2), None)
        if scope is None:
            text = "cache write denied: token has no writable scopes"
            return (
                twirp_error(403, "permission_denied", text) if self.denies_with_403 else {"ok": False, "message": text}
            )
        key, version = str(data["key"]), str(data["version"])
        seconds = self._entries.count_upload()
        if seconds:
            refusal = twirp_error(429, "resource_exhausted", "rate limit exceeded")
            refusal.headers["retry-after"] = str(seconds)
            return refusal
        with self._entries.lock:
            own = self._entries.find(scope, key, version, complete=False) if self._is_gitea else None
            if own is not None:
                return {"ok": True, "signed_upload_url": self._blobs.sign(self._base_url, own.blob, "w")}
            if self._entries.find(scope, key, version):
                text = "cache entry with the same key, version, and scope already exists"
                return {"ok": False} if self.taken_is_ok_false else twirp_error(409, "already_exists", text)
            entry = self._entries.reserve(scope, key, version)
        return {"ok": True, "signed_upload_url": self._blobs.sign(self._base_url, entry.blob, "w")}

    def _finalize(self, request: Request, data: dict[str, object]) -> Reply | dict[str, object]:
        scope = next((ref for ref, bits in token_scopes(request.bearer) if bits & 2), "")
        entry = self._entries.find(scope, str(data["key"]), str(data["version"]))
        if entry is None or self.unseen_blobs:
            self.unseen_blobs = max(0, self.unseen_blobs - 1)
            return {"ok": False} if self._is_gitea else twirp_error(404, "not_found", "cache entry not found")
        size = int(str(data.get("size_bytes", data.get("sizeBytes", 0))))
        if self.finalizes_once and entry.complete:
            return twirp_error(409, "already_exists", "cache entry already finalized")
        if size != self._blobs.size(entry.blob):
            refusal = twirp_error(400, "invalid_argument", "size invalid cache size value")
            return {"ok": False} if self._is_gitea else refusal
        if not entry.complete:
            self._entries.complete(entry, size)
        return {"ok": True, "entry_id": str(entry.number)}

    def _get(self, request: Request, data: dict[str, object]) -> Reply | dict[str, object]:
        scopes = [ref for ref, bits in token_scopes(request.bearer) if bits & 1]
        if not scopes:
            return twirp_error(403, "permission_denied", "cache read denied: token has no readable scopes")
        others = data.get("restore_keys", data.get("restoreKeys", []))
        assert isinstance(others, list)
        entry = self._entries.match(scopes, [str(data["key"]), *others], str(data["version"]))
        if entry is None:
            return {"ok": False}
        url = self._blobs.sign(self._base_url, entry.blob, "r")
        return {"ok": True, "signed_download_url": url, "matched_key": entry.key}

    def _spelled(self, data: dict[str, object]) -> dict[str, object]:
        return {_CAMEL.get(name, name) if self.camel_case else name: value for name, value in data.items()}
