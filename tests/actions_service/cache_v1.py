"""Cache service v1, in the manners it is met in."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Literal

from tests.actions_service.blobs import ranged
from tests.actions_service.messages import Reply, Route, json_reply
from tests.actions_service.tokens import make_token, token_scopes

if TYPE_CHECKING:
    from tests.actions_service.entries import Entries, Entry
    from tests.actions_service.messages import Request

__all__ = ["CacheV1Service"]


class CacheV1Service:
    """Look-up, reservation, chunks, commit and archives below a path that is part of the address.

    ``manner`` is one of these:

    - ``github``: bearer checked, 409 for a taken key, 201 and 204, list of entries; an enterprise server's own words
      for a second commit;
    - ``act``: no bearer checked, keys in lower case, everything 200, no list;
    - ``forgejo``: like act, but 404 for a reservation it does not know;
    - ``gitea``: the bearer must be the job's own, keys as given, else like act.

    Archives lie at signed addresses. ``refuses_head`` on takes no HEAD there, as a store whose signatures are bound to
    a method.

    :param path: the address's path, with a slash at both ends.
    """

    def __init__(self, entries: Entries, base_url: str, path: str) -> None:
        self.manner: Literal["github", "act", "forgejo", "gitea"] = "github"
        self.refuses_head = False
        self.archives: dict[int, bytes] = {}
        self._chunks: dict[int, dict[int, bytes]] = {}
        self._entries = entries
        self._base_url = base_url
        self._path = f"{path}_apis/artifactcache/"
        self._age = 0
        self._cut: int | None = None

    def expire_all(self) -> None:
        """Let every archive's address handed out so far be refused."""
        self._age += 1

    def expire_after(self, count: int) -> None:
        """Break the next download after ``count`` bytes and refuse its address, and all others, from then on."""
        self._cut = count

    def route(self, request: Request) -> Route | None:
        if not request.path.startswith(self._path):
            return None
        resource = request.path.removeprefix(self._path)
        number = re.fullmatch(r"(?:caches|artifacts)/(\d+)", resource)
        operation, answer = {
            ("GET", "cache"): ("lookup", self._lookup),
            ("GET", "caches"): ("list", self._list),
            ("POST", "caches"): ("reserve", self._reserve),
        }.get((request.method, resource), ("unknown", self._unknown))
        if number and resource.startswith("artifacts/"):
            return Route("archive", lambda: self._archive(request, int(number[1])))
        if number:
            operation, answer = {
                "PATCH": ("chunk", lambda request: self._chunk(request, int(number[1]))),
                "POST": ("commit", lambda request: self._commit(request, int(number[1]))),
            }.get(request.method, (operation, answer))
        return Route(operation, lambda: self._refusal(request, operation) or answer(request))

    def _refusal(self, request: Request, operation: str) -> Reply | None:
        if self.manner == "gitea" and request.bearer != make_token():
            return json_reply({"error": "unauthorized"}, 401)
        if self.manner != "github":
            return None
        if not request.bearer:
            return json_reply({"message": "no token"}, 401)
        bits = 1 if operation in {"lookup", "list"} else 2
        if not any(granted & bits for _, granted in token_scopes(request.bearer)):
            words = "read denied: token has no readable" if bits == 1 else "write denied: token has no writable"
            return Reply(403, f"cache {words} scopes".encode())
        return None

    def _lookup(self, request: Request) -> Reply:
        keys = [self._cased(key) for key in request.query["keys"].split(",")]
        entry = self._entries.match(self._readable(request), keys, request.query["version"])
        if entry is None:
            return Reply(204)
        location = (
            f"{self._base_url}{self._path}artifacts/{entry.number}?X-Amz-Signature={self._signature(entry.number)}"
        )
        result: dict[str, object] = {"archiveLocation": location, "cacheKey": entry.key}
        result |= {"scope": entry.scope} if self.manner == "github" else {"result": "hit"}
        return json_reply(result)

    def _list(self, request: Request) -> Reply:
        if self.manner != "github":
            return Reply(405, b"Method Not Allowed")
        scopes = self._readable(request)
        found = [
            {"cacheKey": entry.key, "cacheVersion": entry.version, "scope": entry.scope, "creationTime": ""}
            for entry in self._entries.all.values()
            if entry.complete and entry.scope in scopes and entry.key.startswith(request.query["key"])
        ]
        return json_reply({"totalCount": len(found), "artifactCaches": found})

    def _readable(self, request: Request) -> list[str]:
        if self.manner != "github":
            return ["shared"]
        return [ref for ref, bits in token_scopes(request.bearer) if bits & 1]

    def _reserve(self, request: Request) -> Reply:
        data = request.json()
        key, version, scope = self._cased(str(data["key"])), str(data["version"]), "shared"
        seconds = self._entries.count_upload()
        if seconds:
            return Reply(429, b"rate limit exceeded", {"retry-after": str(seconds)})
        if self.manner == "github":
            scope = next(ref for ref, bits in token_scopes(request.bearer) if bits & 2)
            if self._entries.find(scope, key, version):
                taken = {
                    "message": f"Cache already exists. Key: {key}",
                    "typeKey": "ArtifactCacheItemAlreadyExistsException",
                }
                return json_reply(taken, 409)
        entry = self._entries.reserve(scope, key, version)
        return json_reply({"cacheId": entry.number}, 201 if self.manner == "github" else 200)

    def _chunk(self, request: Request, number: int) -> Reply:
        entry, refusal = self._pending(number)
        if entry is None:
            return refusal
        match = re.fullmatch(r"bytes (\d+)-(\d+)/\*", request.headers.get("content-range", ""))
        if match is None or int(match[2]) - int(match[1]) + 1 != len(request.body):
            return json_reply({"error": "bad range"}, 400)
        with self._entries.lock:
            self._chunks.setdefault(number, {})[int(match[1])] = request.body
        return Reply(204) if self.manner == "github" else json_reply({})

    def _commit(self, request: Request, number: int) -> Reply:
        entry, refusal = self._pending(number)
        if entry is None:
            return refusal
        with self._entries.lock:
            content = b"".join(chunk for _, chunk in sorted(self._chunks.pop(number, {}).items()))
            if len(content) != request.json()["size"]:
                return json_reply({"error": "broken file"}, 400 if self.manner == "github" else 500)
            self.archives[number] = content
            self._entries.complete(entry, len(content))
        return Reply(204) if self.manner == "github" else json_reply({})

    def _pending(self, number: int) -> tuple[Entry | None, Reply]:
        entry = self._entries.all.get(number)
        if entry is None:
            return None, json_reply({"error": f"cache {number}: not found"}, 404 if self.manner == "forgejo" else 400)
        if entry.complete and self.manner == "github":
            return None, json_reply({"message": "Cache entry is not in the expected state."}, 400)
        if entry.complete:
            return None, json_reply({"error": f"cache {number} {entry.key}: already complete"}, 400)
        return entry, Reply()

    def _archive(self, request: Request, number: int) -> Reply:
        if "authorization" in request.headers:
            return Reply(400, b"an archive's address carries its own secret")
        if request.query.get("X-Amz-Signature") != self._signature(number):
            return Reply(403, b"<Error><Code>AccessDenied</Code></Error>", {"content-type": "application/xml"})
        if request.method == "HEAD" and self.refuses_head:
            return Reply(403)
        content = self.archives.get(number)
        if content is None:
            return Reply(404, b"not found")
        reply = ranged(request, content)
        if self._cut is not None and request.method == "GET":
            reply.cut_after, self._cut = self._cut, None
            self.expire_all()
        return reply

    def _signature(self, number: int) -> str:
        return hashlib.sha256(f"{number} {self._age}".encode()).hexdigest()

    def _cased(self, key: str) -> str:
        return key.lower() if self.manner in {"act", "forgejo"} else key

    @staticmethod
    def _unknown(_request: Request) -> Reply:
        return Reply(405, b"no such call")
