"""Files and pieces of files to signed URLs, in the Azure Blob dialect (Put Blob, Put Block, Put Block List)."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from checkpoint_action.toolkit.answers import content_md5
from checkpoint_action.toolkit.errors import DigestError, InputError, ProtocolError
from checkpoint_action.toolkit.exchange import FileSlice, patient
from checkpoint_action.toolkit.parallel import Crew

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from checkpoint_action.toolkit.exchange import Response
    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["BlockUpload", "Part", "UploadPlan", "upload", "upload_blocks"]

_API_VERSION = "2021-12-02"
_BINARY = "application/octet-stream"
_MOST_BLOCKS = 50_000
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """How a file is cut for its upload.

    :param single: bytes up to which it goes in one request.
    :param block: bytes of a block of a larger one (more where the file would need too many of them).
    :param parallel: blocks on their way at a time.
    """

    single: int = 32 * _MIB
    block: int = 16 * _MIB
    parallel: int = 8


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a blob that was handed over, to be named in the blob's final order.

    :param blocks: names of its blocks.
    :param length: bytes.
    """

    blocks: tuple[str, ...]
    length: int


class BlockUpload:
    """A blob whose pieces go up while the next ones are made; their order is only named at the end.

    >>> with BlockUpload(http, url) as blob:
    ...     body = [blob.put(piece) for piece in pieces]
    ...     blob.commit([blob.put(header), *body])

    Nothing is visible before :meth:`commit`, and nothing at all when the block is left without it. A blob has at most
    50,000 blocks, so pieces should be large.

    :param url: signed for writing; used as it came.
    :param plan: ``block`` and ``parallel`` of it count. With ``parallel=1`` the pieces arrive in order.
    :param content_type: what the blob is to be served as; the store's own default if empty.
    """

    def __init__(self, http: HttpClient, url: str, *, plan: UploadPlan | None = None, content_type: str = "") -> None:
        self._plan = plan or UploadPlan()
        self._http = http.stoppable()
        self._url = url
        self._content_type = content_type
        self._nonce = secrets.token_hex(16)
        self._count = 0
        self._crew = Crew(self._plan.parallel, on_failure=self._http.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._crew.__exit__(kind, error, trace)

    def put(self, body: bytes | FileSlice) -> Part:
        """Have a piece go up; wait while ``parallel`` blocks are on their way, so that memory stays flat.

        :param body: must stay as it is until :meth:`commit` has returned.
        :raises ToolkitError: what the first block failed with that did.
        """
        names = []
        for piece in _cut(body, self._plan.block):
            self._count += 1
            # All names of a blob must have one length, at most 64 bytes before base64.
            names.append(base64.b64encode(f"{self._nonce}{self._count:012d}".encode()).decode())
            self._crew.submit(partial(self._send, names[-1], piece))
        return Part(tuple(names), _length(body))

    def commit(self, parts: Iterable[Part]) -> int:
        """Wait for all pieces and make the blob of ``parts``, in this order; return its length in bytes.

        :raises InputError: it would have more than 50,000 blocks.
        :raises ToolkitError: a piece did not arrive, or the store refuses.
        """
        self._crew.finish()
        chosen = list(parts)
        names = [name for part in chosen for name in part.blocks]
        if len(names) > _MOST_BLOCKS:
            raise InputError(f"a blob has at most {_MOST_BLOCKS} blocks, this one has {len(names)}")
        listed = "".join(f"<Latest>{name}</Latest>" for name in names)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
        headers = {"content-type": "application/xml"}
        if self._content_type:
            headers["x-ms-blob-content-type"] = self._content_type
        _put(self._http, _with_query(self._url, "comp=blocklist"), "Put Block List", headers, body, is_final=True)
        return sum(part.length for part in chosen)

    def _send(self, name: str, body: bytes | FileSlice) -> None:
        url = _with_query(self._url, f"comp=block&blockid={quote(name, safe='')}")
        _put(self._http, url, "Put Block", {}, body)


def upload(http: HttpClient, url: str, source: Path, *, plan: UploadPlan | None = None, content_type: str = "") -> int:
    """Store the file ``source`` at the signed ``url`` and return its length in bytes.

    Small files go as one Put Blob; larger ones as blocks in parallel and a list that puts them in order.

    :param content_type: what the blob is to be served as; the store's own default if empty.
    :raises HttpStatusError: the store refuses.
    :raises NetworkError: it cannot be reached in time.
    :raises DigestError: what arrived is not what was sent, by the digest that the store answers with.
    """
    plan = plan or UploadPlan()
    size = source.stat().st_size
    if size <= plan.single:
        headers = {"x-ms-blob-type": "BlockBlob"}
        if content_type:
            headers["x-ms-blob-content-type"] = content_type
        _put(http, url, "Put Blob", headers, FileSlice(source, 0, size))
        return size
    plan = UploadPlan(plan.single, max(plan.block, -(-size // _MOST_BLOCKS)), plan.parallel)
    with BlockUpload(http, url, plan=plan, content_type=content_type) as blob:
        return blob.commit([blob.put(FileSlice(source, 0, size))])


def upload_blocks(
    http: HttpClient, url: str, blocks: Iterable[bytes | FileSlice], *, parallel: int, content_type: str = ""
) -> None:
    """Store ``blocks``, one behind the other, as one blob at the signed ``url``.

    They are taken as they are needed: of blocks made on the way, ``parallel`` and one more are in memory at a time.

    :param parallel: blocks on their way at a time; with 1 they arrive in order.
    :param content_type: what the blob is to be served as; the store's own default if empty.
    :raises HttpStatusError: the store refuses.
    :raises NetworkError: it cannot be reached in time.
    :raises DigestError: what arrived is not what was sent, by the digest that the store answers with.
    """
    with BlockUpload(http, url, plan=UploadPlan(parallel=parallel), content_type=content_type) as blob:
        blob.commit([blob.put(block) for block in blocks])


def _put(
    http: HttpClient, url: str, label: str, headers: dict[str, str], body: bytes | FileSlice, *, is_final: bool = False
) -> None:
    """Send a body, again where the answer is no clear success or tells that the body arrived damaged.

    :param is_final: better waited for than sent twice.
    """

    def check(answer: Response) -> None:
        if answer.status != 201:  # a page in a proxy's name, or act's answer to what it does not store
            raise ProtocolError(f"{label} was answered with {answer.status} where 201 is meant to be")
        told = answer.headers.get("content-md5", "")
        # Reckoned only when there is something to compare: the cloud store gives it to those alone who send it.
        if told and told != content_md5(body if isinstance(body, FileSlice) else (body,)):
            raise DigestError(f"{label}: what arrived is not what was sent")

    sent = {"x-ms-version": _API_VERSION, "content-type": _BINARY, **headers}
    limits = patient(http.limits) if is_final else None
    http.request("PUT", url, label=label, headers=sent, body=body, limits=limits, check=check)


def _cut(body: bytes | FileSlice, longest: int) -> Iterator[bytes | FileSlice]:
    length = _length(body)
    if length <= longest:
        if length:
            yield body
        return
    for at in range(0, length, longest):
        if isinstance(body, FileSlice):
            yield FileSlice(body.path, body.offset + at, min(longest, length - at))
        else:
            yield body[at : at + longest]


def _length(body: bytes | FileSlice) -> int:
    return body.length if isinstance(body, FileSlice) else len(body)


def _with_query(url: str, more: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{more}"
