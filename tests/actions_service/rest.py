"""GitHub's REST interface: artifacts and caches of the repository ``octo/demo``."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.actions_service.messages import Reply, Route, json_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.actions_service.artifact_store import ArtifactItem, ArtifactStore
    from tests.actions_service.blobs import Blobs
    from tests.actions_service.entries import Entries, Entry
    from tests.actions_service.messages import Request

__all__ = ["RestService"]

_PREFIX = "/api/v3/repos/octo/demo/"


class RestService:
    """The calls that protocol and client need.

    :ivar url: what a job knows as ``GITHUB_API_URL``.
    :ivar tokens: token to what it may do, of ``read`` and ``write``.
    :ivar remaining: calls that are left before all are refused.
    :ivar reset_at: seconds since the epoch when there will be more.
    """

    def __init__(self, entries: Entries, artifacts: ArtifactStore, blobs: Blobs, origin: str) -> None:
        self.url = f"{origin}/api/v3"
        self.tokens = {"rest-token": {"read", "write"}, "fork-token": {"read"}}
        self.remaining = 1000
        self.reset_at = 0
        self._entries = entries
        self._artifacts = artifacts
        self._blobs = blobs
        # The same server under another name: what must not follow a redirect there would be seen.
        self._elsewhere = origin.replace("127.0.0.1", "localhost")

    def route(self, request: Request) -> Route | None:
        if not request.path.startswith(_PREFIX):
            return None
        path = request.path.removeprefix(_PREFIX)
        for pattern, operation, answer in (
            (r"GET actions/runs/(\d+)/artifacts", "ListRunArtifacts", self._list_artifacts),
            (r"GET actions/artifacts/(\d+)/zip", "DownloadRunArtifact", self._zip),
            (r"DELETE actions/artifacts/(\d+)", "DeleteRunArtifact", self._delete_artifact),
            (r"GET actions/caches()", "ListCaches", self._list_caches),
            (r"DELETE actions/caches/(\d+)", "DeleteCache", self._delete_cache),
            (r"GET actions/cache/usage()", "CacheUsage", self._usage),
        ):
            match = re.fullmatch(pattern, f"{request.method} {path}")
            if match:
                number = int(match[1] or 0)
                return Route(operation, partial(self._checked, request, answer, number))
        return Route("UnknownRest", lambda: _refusal(404, "Not Found"))

    def _checked(self, request: Request, answer: Callable[[Request, int], Reply], number: int) -> Reply:
        # The official client says ``token``, GitHub's documentation ``Bearer``; both count.
        may = self.tokens.get(request.headers.get("authorization", "").partition(" ")[2])
        if not request.headers.get("user-agent"):
            reply = _refusal(403, "Request forbidden by administrative rules")
        elif may is None:
            reply = _refusal(401, "Bad credentials")
        elif self.remaining <= 0:
            reply = _refusal(403, "API rate limit exceeded")
        elif ("write" if request.method == "DELETE" else "read") not in may:
            reply = _refusal(403, "Resource not accessible by integration")
        else:
            self.remaining -= 1
            reply = answer(request, number)
        reply.headers["x-ratelimit-limit"] = "1000"
        reply.headers["x-ratelimit-remaining"] = str(max(0, self.remaining))
        reply.headers["x-ratelimit-reset"] = str(self.reset_at)
        return reply

    def _list_artifacts(self, request: Request, run: int) -> Reply:
        found = sorted(self._artifacts.of_run(f"run-{run}"), key=lambda item: item.created, reverse=True)
        if "name" in request.query:
            found = [item for item in found if item.name == request.query["name"]]
        return self._page(request, "artifacts", [_artifact(item) for item in found])

    def _zip(self, _request: Request, number: int) -> Reply:
        item = self._artifact(number)
        if item is None:
            return _refusal(404, "Not Found")
        if item.expired:
            return _refusal(410, "Artifact has expired")
        return Reply(302, b"", {"location": self._blobs.sign(self._elsewhere, item.blob, "r")})

    def _delete_artifact(self, _request: Request, number: int) -> Reply:
        item = self._artifact(number)
        if item is None:
            return _refusal(404, "Not Found")
        self._artifacts.remove(item)
        return Reply(204)

    def _list_caches(self, request: Request, _number: int) -> Reply:
        found = self._caches(request.query.get("key", ""), request.query.get("ref", ""))
        field = {"size_in_bytes": "size"}.get(request.query.get("sort", ""), "created")
        falling = request.query.get("direction", "desc") == "desc"
        found.sort(key=lambda entry: int(getattr(entry, field)), reverse=falling)
        return self._page(request, "actions_caches", [_cache(entry) for entry in found])

    def _delete_cache(self, _request: Request, number: int) -> Reply:
        return Reply(204) if self._entries.all.pop(number, None) else _refusal(404, "Not Found")

    def _usage(self, _request: Request, _number: int) -> Reply:
        sizes = [entry.size for entry in self._caches("", "")]
        usage = {"active_caches_size_in_bytes": sum(sizes), "active_caches_count": len(sizes)}
        return json_reply({"full_name": "octo/demo", **usage})

    def _page(self, request: Request, name: str, items: list[dict[str, object]]) -> Reply:
        size = min(100, int(request.query.get("per_page", 30)))
        page = int(request.query.get("page", 1))
        reply = json_reply({"total_count": len(items), name: items[(page - 1) * size : page * size]})
        if page * size < len(items):
            reply.headers["link"] = f'<{self.url}{unquote(request.path)}?page={page + 1}>; rel="next"'
        return reply

    def _artifact(self, number: int) -> ArtifactItem | None:
        return next((item for item in self._artifacts.items if item.complete and item.number == number), None)

    def _caches(self, key: str, ref: str) -> list[Entry]:
        with self._entries.lock:
            ready = [entry for entry in self._entries.all.values() if entry.complete]
        return [entry for entry in ready if entry.key.startswith(key) and ref in {"", entry.scope}]


def _artifact(item: ArtifactItem) -> dict[str, object]:
    return {
        "id": item.number,
        "name": item.name,
        "size_in_bytes": item.size,
        "expired": item.expired,
        "created_at": item.created_text,
        "digest": item.digest or None,
        "workflow_run": {"id": int(re.sub(r"\D", "", item.workflow_run) or 0)},
    }


def _cache(entry: Entry) -> dict[str, object]:
    moment = f"2026-01-01T00:00:{entry.created % 60:02d}Z"
    return {
        "id": entry.number,
        "ref": entry.scope,
        "key": entry.key,
        "version": entry.version,
        "size_in_bytes": entry.size,
        "created_at": moment,
        "last_accessed_at": moment,
    }


def _refusal(status: int, message: str) -> Reply:
    return json_reply({"message": message, "documentation_url": "https://docs.github.com/rest"}, status)
