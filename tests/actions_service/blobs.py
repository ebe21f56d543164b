"""Signed URLs in the Azure Blob dialect."""

from __future__ import annotations

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

__all__ = ["Blobs"]

_FOLDER = "/devstoreaccount1/actions-cache/"
_SECRET = b"storage account key"


class Blobs:
    """Blobs, blocks that no list has committed yet, and the URLs that open them.

    A URL opens one blob for reading or for writing, until it is expired. What it does not open answers as Azure does.
    """

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.staged: dict[str, dict[str, bytes]] = {}
        self.targets: list[str] = []
        self._expired: set[str] = set()
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
        self.content[name] = request.body
        return _created()

    def _put_block(self, request: Request, name: str) -> Reply:
        block = request.query.get("blockid", "")
        with self._lock:
            staged = self.staged.setdefault(name, {})
            lengths = {len(b64decode(other)) for other in (*staged, block)}
            if len(lengths) != 1 or max(lengths) > 64:
                return _error(400, "InvalidBlobOrBlock")
            staged[block] = request.body
        return _created()

    def _put_list(self, request: Request, name: str) -> Reply:
        names = re.findall(r"<(?:Latest|Uncommitted|Committed)>([^<]*)</", request.body.decode())
        with self._lock:
            staged = self.staged.pop(name, {})
            if any(block not in staged for block in names):
                return _error(400, "InvalidBlockList")
            self.content[name] = b"".join(staged[block] for block in names)
        return _created()

    def _get(self, request: Request, name: str) -> Reply:
        content = self.content.get(name)
        if content is None:
            return _error(404, "BlobNotFound")
        reply = ranged(request, content)
        reply.headers["etag"] = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        if self._cut is not None and request.method == "GET":
            reply.cut_after, self._cut = self._cut, None
            match = re.search(r"[?&]se=([^&]*)", request.target)
            self._expired.add(match[1] if match else "")
        return reply

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
        return _error(416, "InvalidRange")
    headers["content-range"] = f"bytes {start}-{end}/{len(content)}"
    return Reply(206, content[start : end + 1], headers)


def _created() -> Reply:
    headers = {"etag": '"0x8D"', "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
    return Reply(201, b"", {**headers, "x-ms-request-id": "1", "x-ms-version": "2026-02-06"})


def _error(status: int, code: str) -> Reply:
    body = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>no</Message></Error>'
    return Reply(status, body.encode(), {"content-type": "application/xml", "x-ms-error-code": code})
