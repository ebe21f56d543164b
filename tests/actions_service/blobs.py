"""Signed URLs in the Azure Blob dialect."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import re
import threading
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.actions_service.messages import Reply, Route

if TYPE_CHECKING:
    from tests.actions_service.messages import Request

__all__ = ["Blobs", "ranged"]

_FOLDER = "/devstoreaccount1/actions-cache/"
_SECRET = b"storage account key"
_MOST_BLOCKS = 50_000


class Blobs:
    """Blobs, blocks that no list has committed yet, and the URLs that open them.

    A URL opens one blob for reading or for writing, until it is expired. What it does not open answers as Azure does.

    Switches, all off: ``digests`` answers with the MD5 digest of what arrived and of what is there; ``lists_once``
    takes a block's staged copy away with the list that names it, as Gitea does, so that a list cannot be sent twice;
    ``without_ranges`` answers with the whole content, whatever part was asked for.

    :ivar headers: what a blob is served with, by its name.
    """

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.staged: dict[str, dict[str, bytes]] = {}
        self.targets: list[str] = []
        self.digests = False
        self.lists_once = False
        self.without_ranges = False
        self._committed: dict[str, dict[str, bytes]] = {}
        self._expired: set[str] = set()
        self._etags: dict[str, tuple[bytes, str]] = {}
        self._serial = itertools.count(1)
        self._lock = threading.Lock()
        self._cut: int | None = None

    def sign(self, base: str, name: str, permission: str) -> str:
        """A URL for blob ``name``: permission ``r`` or ``w``."""
        expiry = f"2099-01-01T00%3a00%3a{next(self._serial):02d}Z"  # lower-case escapes: not to be normalised
        signature = self._signature(name, permission, expiry)
        return f"{base}{_FOLDER}{name}?se={expiry}&sp={permission}&sv=2021-12-02&sr=b&sig={quote(signature, safe='')}"

    def expire_all(self) -> None:
        """Let every URL handed out so far be refused."""
        with self._lock:
            count = next(self._serial)
            self._expired.update(f"2099-01-01T00%3a00%3a{number:02d}Z" for number in range(count))

    def expire_after(self, count: int) -> None:
        """Break the next download after ``count`` bytes and refuse its URL from then on."""
        self._cut = count

    def size(self, name: str) -> int | None:
        """Bytes of a blob; ``None`` where there is none, be there blocks or not."""
        content = self.content.get(name)
        return None if content is None else len(content)

    def route(self, request: Request) -> Route | None:
        if not request.path.startswith(_FOLDER):
            return None
        name = request.path.removeprefix(_FOLDER)
        comp = request.query.get("comp", "")
        if request.method == "PUT":
            operation, answer = {
                "": ("PutBlob", self._put_blob),
                "block": ("PutBlock", self._put_block),
                "blocklist": ("PutBlockList", self._put_list),
            }[comp]
        else:
            operation, answer = "GetBlob", self._get

        def run() -> Reply:
            self.targets.append(request.target)
            refusal = self._refusal(request, name, "w" if request.method == "PUT" else "r")
            return refusal or answer(request, name)

        return Route(operation, run)

    def _refusal(self, request: Request, name: str, permission: str) -> Reply | None:
        match = re.search(r"[?&]se=([^&]*)", request.target)
        expiry = match[1] if match else ""
        valid = hmac.compare_digest(request.query.get("sig", ""), self._signature(name, permission, expiry))
        if "authorization" in request.headers or not valid or expiry in self._expired:
            return _error(403, "AuthenticationFailed")
        return None

    def _put_blob(self, request: Request, name: str) -> Reply:
        if request.headers.get("x-ms-blob-type") != "BlockBlob":
            return _error(400, "MissingRequiredHeader")
        with self._lock:
            self.staged.pop(name, None)
            self._committed.pop(name, None)
            self.content[name] = request.body
        self._note_type(request, name)
        return self._created(request.body)

    def _put_block(self, request: Request, name: str) -> Reply:
        block = request.query.get("blockid", "")
        if not request.body:
            return _error(400, "InvalidHeaderValue")  # Azure takes no empty block
        with self._lock:
            staged = self.staged.setdefault(name, {})
            lengths = {len(b64decode(other)) for other in (*staged, *self._committed.get(name, {}), block)}
            if len(lengths) != 1 or max(lengths) > 64:
                return _error(400, "InvalidBlobOrBlock")
            staged[block] = request.body
        return self._created(request.body)

    def _put_list(self, request: Request, name: str) -> Reply:
        wanted = re.findall(r"<(Latest|Uncommitted|Committed)>([^<]*)</", request.body.decode())
        if len(wanted) > _MOST_BLOCKS:
            return _error(400, "BlockListTooLong")
        with self._lock:
            staged, committed = self.staged.get(name, {}), self._committed.get(name, {})
            places = {"Latest": {**committed, **staged}, "Uncommitted": staged, "Committed": committed}
            if any(block not in places[kind] for kind, block in wanted):
                return _error(500 if self.lists_once else 400, "InvalidBlockList")
            chosen = {block: places[kind][block] for kind, block in wanted}
            self.content[name] = b"".join(places[kind][block] for kind, block in wanted)
            self._committed[name] = {} if self.lists_once else chosen
            self.staged.pop(name, None)
        self._note_type(request, name)
        return self._created(request.body)

    def _note_type(self, request: Request, name: str) -> None:
        kind = request.headers.get("x-ms-blob-content-type", "")
        if kind:
            self.headers.setdefault(name, {})["content-type"] = kind

    def _get(self, request: Request, name: str) -> Reply:
        content = self.content.get(name)
        if content is None:
            return _error(404, "BlobNotFound")
        whole = {"content-type": "application/octet-stream"}
        reply = Reply(200, content, whole) if self.without_ranges else ranged(request, content)
        reply.headers.update(self.headers.get(name, {}))
        reply.headers["etag"] = self._etag(name, content)
        if self.digests:
            header = "content-md5" if reply.status == 200 else "x-ms-blob-content-md5"
            reply.headers[header] = _md5(content)
        if self._cut is not None and request.method == "GET":
            reply.cut_after, self._cut = self._cut, None
            match = re.search(r"[?&]se=([^&]*)", request.target)
            self._expired.add(match[1] if match else "")
        return reply

    def _etag(self, name: str, content: bytes) -> str:
        """Reckoned once for what is there: a large blob is fetched in many parts."""
        known = self._etags.get(name)
        if known is None or known[0] is not content:
            known = self._etags[name] = (content, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
        return known[1]

    def _created(self, body: bytes) -> Reply:
        headers = {"etag": '"0x8D"', "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if self.digests:
            headers["content-md5"] = _md5(body)
        return Reply(201, b"", {**headers, "x-ms-request-id": "1", "x-ms-version": "2026-02-06"})

    @staticmethod
    def _signature(name: str, permission: str, expiry: str) -> str:
        text = f"{name}|{permission}|{expiry}".encode()
        return b64encode(hmac.digest(_SECRET, text, "sha256")).decode()


def ranged(request: Request, content: bytes) -> Reply:
    """The whole content, or the part that a ``Range`` header asks for."""
    wanted = request.headers.get("x-ms-range") or request.headers.get("range", "")
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
    headers = {"content-type": "application/octet-stream", "accept-ranges": "bytes"}
    if not match:
        return Reply(200, content, headers)
    start = int(match[1])
    end = min(int(match[2]) if match[2] else len(content) - 1, len(content) - 1)
    if start >= len(content):
        refusal = _error(416, "InvalidRange")
        refusal.headers["content-range"] = f"bytes */{len(content)}"
        return refusal
    headers["content-range"] = f"bytes {start}-{end}/{len(content)}"
    return Reply(206, content[start : end + 1], headers)


def _md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def _error(status: int, code: str) -> Reply:
    body = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>no</Message></Error>'
    return Reply(status, body.encode(), {"content-type": "application/xml", "x-ms-error-code": code})
