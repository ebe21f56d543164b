"""Cache service v1, as enterprise servers, act, Gitea and Forgejo speak it."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.answers import json_object
from checkpoint_action.toolkit.cache_entry import Hit, denial, refused_reservation, taken
from checkpoint_action.toolkit.errors import HttpStatusError, ProtocolError, ToolkitError
from checkpoint_action.toolkit.exchange import FileSlice, patient
from checkpoint_action.toolkit.parallel import each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from checkpoint_action.toolkit.cache_entry import Upload
    from checkpoint_action.toolkit.exchange import Response
    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["CacheV1"]

_T = TypeVar("_T")

_ACCEPT = "application/json;api-version=6.0-preview.1"
_MOST_PARALLEL = 4  # as the official client; these servers are often small
_NO_TOKEN = "none"  # noqa: S105 - no password
"""Bearer where the job has no token: act asks for none, the secret is in its path."""


class CacheV1:
    """The operations against one cache server.

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
        """Reserve ``key``, upload ``source`` in chunks and commit. act keeps no empty content and answers 500."""
        size = source.stat().st_size
        number = self._reserve(key, {"key": key, "version": version, "cacheSize": size})
        self._send(number, [FileSlice(source, 0, size)])
        self._commit(number, key, version, size)

    def begin(self, key: str, version: str) -> AbstractContextManager[Upload]:
        """Reserve ``key`` for an entry that is handed over in pieces.

        A chunk names its place in the whole, so nothing can go up before the order is known.
        """
        return self._pieces(key, version, self._reserve(key, {"key": key, "version": version}))

    @contextmanager
    def _pieces(self, key: str, version: str, number: int) -> Iterator[Upload]:
        def finish(pieces: list[FileSlice]) -> None:
            self._send(number, pieces)
            self._commit(number, key, version, sum(piece.length for piece in pieces))

        with tempfile.TemporaryDirectory(prefix="cache-upload-", ignore_cleanup_errors=True) as folder:
            path = Path(folder, "pieces")
            with path.open("wb") as file:
                yield _Pieces(path, file, finish)

    def _send(self, number: int, pieces: Iterable[FileSlice]) -> None:
        """Send ``pieces``, one behind the other, as chunks: in any order, for their offsets put them in place."""
        http = self._http.stoppable()
        chunks: list[tuple[int, FileSlice]] = []
        offset = 0
        for piece in pieces:
            for at in range(0, piece.length, self._plan.block):
                length = min(self._plan.block, piece.length - at)
                chunks.append((offset + at, replace(piece, offset=piece.offset + at, length=length)))
            offset += piece.length

        def send(chunk: tuple[int, FileSlice]) -> None:
            first, body = chunk
            headers = {
                **self._headers,
                "content-type": "application/octet-stream",
                "content-range": f"bytes {first}-{first + body.length - 1}/*",
            }
            url = f"{self._base}/caches/{number}"
            self._guarded(
                lambda: http.request("PATCH", url, label="cache upload", headers=headers, body=body, check=_check_taken)
            )

        each(send, chunks, parallel=min(self._plan.parallel, _MOST_PARALLEL), on_failure=http.stop)

    def _reserve(self, key: str, payload: dict[str, object]) -> int:
        try:
            data = self._call("POST", "caches", "cache reservation", payload)
        except HttpStatusError as error:
            if error.status == 409:
                raise taken(key, error) from error
            raise
        number = data.get("cacheId")
        if not isinstance(number, int) or number < 0:
            raise refused_reservation(key, str(data.get("message") or ""))
        return number

    def _commit(self, number: int, key: str, version: str, size: int) -> None:
        url = f"{self._base}/caches/{number}"
        body = f'{{"size":{size}}}'.encode()
        headers = {**self._headers, "content-type": "application/json"}
        limits = patient(self._http.limits)
        try:
            self._guarded(
                lambda: self._http.request(
                    "POST", url, label="cache commit", headers=headers, body=body, limits=limits, check=_check_taken
                )
            )
        except HttpStatusError as error:
            # The number is ours alone: complete already means that an earlier try got through and its answer was lost.
            if error.status != 400 or not ("already complete" in error.body or self._was_done(error, key, version)):
                raise

    def _was_done(self, error: HttpStatusError, key: str, version: str) -> bool:
        """Whether the refusal comes of an earlier try that got through, on a server with other words for it."""
        try:
            hit = self.lookup([key], version) if error.repeated else None
        except ToolkitError:  # nobody knows, then: the refusal counts
            return False
        return hit is not None and hit.exact

    def _call(
        self, method: str, resource: str, label: str, payload: dict[str, object] | None = None
    ) -> dict[str, object]:
        url = f"{self._base}/{resource}"
        limits = None if payload is None else patient(self._http.limits)
        return self._guarded(
            lambda: self._http.request_json(
                method, url, label=label, headers=self._headers, payload=payload, limits=limits
            )
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


def _check_taken(answer: Response) -> None:
    """A server says nothing on success, or ``{}``; a page for people comes from something before it."""
    if answer.body.strip() and json_object(answer.body) is None:
        raise ProtocolError(f"the cache server answered {answer.status} with a body that is no JSON object")


class _Pieces:
    """Pieces that wait for their order: bytes in a file, so that memory stays flat."""

    def __init__(self, path: Path, file: BinaryIO, finish: Callable[[list[FileSlice]], None]) -> None:
        self._path = path
        self._file = file
        self._finish = finish
        self._pieces: dict[str, FileSlice] = {}

    def put(self, body: bytes | FileSlice) -> blob.Part:
        name = str(len(self._pieces))
        if not isinstance(body, FileSlice):
            offset = self._file.tell()
            try:
                self._file.write(body)
                self._file.flush()
            except OSError as error:
                raise ToolkitError(f"cannot write {self._path}: {error.strerror or error}") from error
            body = FileSlice(self._path, offset, len(body))
        self._pieces[name] = body
        return blob.Part((name,), body.length)

    def finish(self, parts: Iterable[blob.Part]) -> int:
        chosen = [self._pieces[name] for part in parts for name in part.blocks]
        self._finish(chosen)
        return sum(piece.length for piece in chosen)
