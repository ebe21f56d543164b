"""Files to and from signed URLs, in the Azure Blob dialect that cache v2 and artifacts share.

A signed URL is used exactly as it came: what has to be added is appended to its text.
"""

from __future__ import annotations

import base64
import re
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote, unquote

from checkpoint_action.toolkit.errors import HttpStatusError, NetworkError, ProtocolError
from checkpoint_action.toolkit.exchange import FileSlice
from checkpoint_action.toolkit.parallel import each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from checkpoint_action.toolkit.exchange import Stream
    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["UploadPlan", "download", "mask_signature", "upload"]

_API_VERSION = "2021-12-02"
_MOST_BLOCKS = 50_000
_MOST_RENEWALS = 5
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """How a file is cut for its upload.

    :param single: bytes up to which it goes in one request.
    :param block: bytes of a block of a larger one (more where the file would need too many of them).
    :param parallel: blocks on their way at a time.
    """

    single: int = 128 * _MIB
    block: int = 32 * _MIB
    parallel: int = 4


def upload(http: HttpClient, url: str, source: Path, *, plan: UploadPlan | None = None) -> int:
    """Store the file ``source`` at the signed ``url`` and return its length in bytes.

    Small files go as one Put Blob; larger ones as blocks in parallel and a list that puts them in order.

    :raises HttpStatusError: the store refuses.
    :raises NetworkError: it cannot be reached in time.
    """
    plan = plan or UploadPlan()
    size = source.stat().st_size
    common = {"x-ms-version": _API_VERSION, "content-type": "application/octet-stream"}
    if size <= plan.single:
        headers = {**common, "x-ms-blob-type": "BlockBlob"}
        http.request("PUT", url, label="Put Blob", headers=headers, body=FileSlice(source, 0, size))
        return size

    length = max(plan.block, -(-size // _MOST_BLOCKS))
    nonce = secrets.token_hex(16)
    slices = [FileSlice(source, at, min(length, size - at)) for at in range(0, size, length)]
    names = [base64.b64encode(f"{nonce}{index:012d}".encode()).decode() for index in range(len(slices))]

    def put(block: tuple[str, FileSlice]) -> None:
        name, part = block
        target = _with_query(url, f"comp=block&blockid={quote(name, safe='')}")
        http.request("PUT", target, label="Put Block", headers=common, body=part)

    each(put, zip(names, slices, strict=True), parallel=plan.parallel)
    listed = "".join(f"<Latest>{name}</Latest>" for name in names)
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
    headers = {"x-ms-version": _API_VERSION, "content-type": "application/xml"}
    http.request("PUT", _with_query(url, "comp=blocklist"), label="Put Block List", headers=headers, body=body)
    return size


def download(http: HttpClient, url: str, target: Path, *, renew: Callable[[], str] | None = None) -> int:
    """Write what the signed ``url`` gives to the file ``target``, whole or not at all; return its length in bytes.

    What breaks off is continued at the byte it broke (by ``Range``), as often as it gets on. The length must be the
    one the server announced. ``target`` is replaced in one move; the part file beside it never stays.

    :param renew: gives a fresh URL of the same content when the old one has expired (401, 403 or 404).
    :raises HttpStatusError: the store refuses, with a fresh URL too.
    :raises NetworkError: it cannot be reached in time.
    :raises ProtocolError: what it sends does not fit.
    """
    with _part_file(target) as (file, part):
        length = _Transfer(http, url, file, renew).run()
        file.close()
        http.check("download")
        part.replace(target)
    return length


def mask_signature(url: str, mask: Callable[[str], None]) -> None:
    """Hand the signature in a signed URL to ``mask``, as it stands there and in plain."""
    for name in ("sig", "X-Amz-Signature", "X-Goog-Signature"):
        for value in re.findall(rf"[?&]{name}=([^&#]+)", url):
            for form in dict.fromkeys((value, unquote(value), quote(unquote(value), safe=""))):
                mask(form)


class _Transfer:
    """A download under way: what has come, and what says that a continuation is of the same content."""

    def __init__(self, http: HttpClient, url: str, file: BinaryIO, renew: Callable[[], str] | None) -> None:
        self._http = http
        self._url = url
        self._file = file
        self._renew = renew
        self._renewals = 0
        self._total: int | None = None
        self._etag = ""

    def run(self) -> int:
        fruitless = 0
        while True:
            before = self._file.tell()
            try:
                self._attempt()
                return self._file.tell()
            except NetworkError as error:
                fruitless = 0 if self._file.tell() > before else fruitless + 1
                if error.permanent or fruitless >= self._http.retries.tries:
                    raise
                self._http.pause(self._http.backoff(fruitless + 1), "download")
            except HttpStatusError as error:
                if self._renew is None or error.status not in {401, 403, 404} or self._renewals >= _MOST_RENEWALS:
                    raise
                self._renewals += 1
                self._url = self._renew()

    def _attempt(self) -> None:
        offset = self._file.tell()
        headers = {"range": f"bytes={offset}-"} if offset else {}
        with self._http.stream("GET", self._url, label="download", headers=headers) as answer:
            self._begin(answer, offset)
            for piece in answer.chunks:
                self._file.write(piece)
        length = self._file.tell()
        if self._total is not None and length < self._total:
            raise NetworkError(f"download broke off at {length} of {self._total} bytes")
        if self._total is not None and length > self._total:
            raise ProtocolError(f"download brought {length} bytes where {self._total} were announced")

    def _begin(self, answer: Stream, offset: int) -> None:
        """Take in what the answer says of itself; start anew where it is no continuation of what has come."""
        total, start = _extent(answer)
        etag = answer.headers.get("etag", "")
        changed = offset > 0 and (total != self._total or (bool(etag) and bool(self._etag) and etag != self._etag))
        if start not in {0, offset} or (changed and start):
            self._restart()
            raise NetworkError("download was continued with other content")
        if start < offset:
            self._restart()
        self._total = total
        self._etag = etag

    def _restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()


def _extent(answer: Stream) -> tuple[int | None, int]:
    """The whole content's length, where it is told, and the byte that the answer starts with."""
    if answer.status == 206:
        match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("content-range", "").strip())
        if match is None:
            raise ProtocolError("download was continued without saying where")
        return int(match[3]), int(match[1])
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None, 0


@contextmanager
def _part_file(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file, part
    finally:
        part.unlink(missing_ok=True)


def _with_query(url: str, more: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{more}"
