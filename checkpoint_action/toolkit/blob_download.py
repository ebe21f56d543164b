"""Files, and ranges of them, from signed URLs: in parallel, continued where they broke, their address renewed."""

from __future__ import annotations

import re
import secrets
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.answers import content_md5
from checkpoint_action.toolkit.errors import DigestError, HttpStatusError, NetworkError, ProtocolError
from checkpoint_action.toolkit.exchange import FileSlice
from checkpoint_action.toolkit.parallel import Crew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from checkpoint_action.toolkit.exchange import Stream
    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["DownloadPlan", "Excerpt", "download", "read_range"]

_MOST_RENEWALS = 5
_MOST_STARTS = 3
_MIB = 1024 * 1024
_MOST_DIGITS = 18  # of a number of bytes; Python refuses to read very long ones
_NUMBER = rf"\d{{1,{_MOST_DIGITS}}}"
_EXPIRED = frozenset({401, 403, 404})
_DIGEST_LENGTH = 24  # 16 bytes in base64; anything else is no MD5 digest


@dataclass(frozen=True, slots=True)
class DownloadPlan:
    """How content is fetched.

    :param part: bytes that one request asks for.
    :param parallel: requests at a time.
    """

    part: int = 16 * _MIB
    parallel: int = 8


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A range of content.

    :param data: fewer bytes than asked for where the content ends before.
    :param total: bytes of the whole content, where the server tells.
    """

    data: bytes
    total: int | None


def download(
    http: HttpClient,
    url: str,
    target: Path,
    *,
    renew: Callable[[], str] | None = None,
    described: Callable[[Mapping[str, str]], None] | None = None,
    plan: DownloadPlan | None = None,
) -> int:
    """Write what the signed ``url`` gives to the file ``target``, whole or not at all; return its length in bytes.

    The first request asks for the first part by ``Range`` and learns the length from its answer (HEAD is refused by
    stores whose signatures are bound to a method); the other parts follow in parallel. A server that knows no ranges is
    read in one go. What breaks off is continued at the byte it broke, as often as it gets on. The length must be the
    one that the server announced, and so must the MD5 digest where it gives one. ``target`` is replaced in one move;
    the part file beside it never stays.

    :param renew: gives a fresh URL of the same content when the old one has expired (401, 403 or 404).
    :param described: gets the headers (names in lower case) of the answer that the content begins with; from another
        thread.
    :raises HttpStatusError: the store refuses, with a fresh URL too.
    :raises NetworkError: it cannot be reached in time.
    :raises ProtocolError: what it sends does not fit, each time; :class:`DigestError` where it is the digest.
    """
    plan = plan or DownloadPlan()
    with _part_file(target) as part:
        for start in range(1, _MOST_STARTS + 1):
            source = _Source(http, url, renew, described=described, greedy=True)
            try:
                length = _fetch_all(source, part, plan)
                source.check_digest(part, length)
                break
            except (_ChangedError, DigestError):
                if start == _MOST_STARTS:
                    raise
                http.pause(http.backoff(start), "download")
            url = source.url
        http.check("download")
        part.replace(target)
    return length


def read_range(
    http: HttpClient, url: str, start: int, length: int, *, renew: Callable[[], str] | None = None
) -> Excerpt:
    """Read ``length`` bytes of what the signed ``url`` gives, from byte ``start`` on, and no more than that.

    Where the content ends before, what there is of it is the result, be it nothing. Else as :func:`download`.
    """
    data = bytearray()
    source = _Source(http, url, renew)
    try:
        source.fetch(start, start + length, data.extend)
    except HttpStatusError as error:
        if error.status != 416 or data:
            raise
    return Excerpt(bytes(data), source.total)


class _ChangedError(ProtocolError):
    """The content became another one under way: what has come of it is worth nothing."""


class _Source:
    """Where content is read, from several threads: its address, and what tells it from other content.

    :param greedy: a server that knows no ranges is read to the end by whoever asked for the first one.
    :ivar total: bytes of the content; ``None`` while not known.
    :ivar ranged: whether the server answered the first request with a range; ``None`` before.
    :ivar opened: set once the first answer has begun, or nothing more is to be expected.
    """

    def __init__(
        self,
        http: HttpClient,
        url: str,
        renew: Callable[[], str] | None,
        *,
        described: Callable[[Mapping[str, str]], None] | None = None,
        greedy: bool = False,
    ) -> None:
        self.url = url
        self.total: int | None = None
        self.ranged: bool | None = None
        self.opened = threading.Event()
        self._http = http.stoppable()
        self._renew = renew
        self._described = described
        self._greedy = greedy
        self._plain = False
        self._renewals = 0
        self._etag = ""
        self._digest = ""
        self._lock = threading.Lock()

    def stop(self) -> None:
        """End all reading."""
        self._http.stop()
        self.opened.set()

    def fetch(self, start: int, end: int, write: Callable[[bytes], object]) -> int:
        """Hand the bytes from ``start`` to before ``end``, or to where the content ends, to ``write``; return where.

        :raises _ChangedError: the content is not what it was.
        """
        position, fruitless = start, 0
        while True:
            before = position
            url = self.url
            try:
                for piece in self._read(url, position, end):
                    write(piece)
                    position += len(piece)
                    self._renewals = 0
                self._check_reached(position, end)
                return position
            except NetworkError as error:
                fruitless = 0 if position > before else fruitless + 1
                if error.permanent or fruitless >= self._http.retries.tries:
                    raise
                self._http.pause(self._http.backoff(fruitless + 1), "download")
            except HttpStatusError as error:
                if error.status == 416 and position == 0 and not self._plain:
                    self._plain = True  # of empty content there is no range
                elif error.status in _EXPIRED:
                    self._renewed(url, error)
                else:
                    raise

    def _read(self, url: str, position: int, end: int) -> Iterator[bytes]:
        """What one answer brings of the bytes from ``position`` to before ``end``."""
        last = "" if self._greedy and self.ranged is False else str(end - 1)
        headers = {} if self._plain else {"range": f"bytes={position}-{last}"}
        with self._http.stream("GET", url, label="download", headers=headers) as answer:
            first, size = self._admit(answer, position)
            limit = self._end(end)
            came = 0
            for chunk in answer.chunks:
                at = first + came
                came += len(chunk)
                if size is not None and came > size:
                    raise ProtocolError(f"download brought more than the {size} bytes that were announced")
                piece = chunk[max(0, position - at) : None if limit is None else max(0, limit - at)]
                if piece:
                    yield piece
                if limit is not None and first + came >= limit and came != size:
                    return  # the rest is of no use here

    def _end(self, end: int) -> int | None:
        """Where to stop, as far as that is known."""
        if self._greedy and self.ranged is False:
            return self.total
        return end if self.total is None else min(end, self.total)

    def _check_reached(self, position: int, end: int) -> None:
        limit = self._end(end)
        if self.total is not None and limit is not None and position < limit:
            raise NetworkError(f"download broke off at {position} of {limit} bytes")

    def _admit(self, answer: Stream, position: int) -> tuple[int, int | None]:
        """The byte that an answer starts with and its length, where told; the first says what all must be part of."""
        first, size, total = _extent(answer)
        if answer.status != 206 and answer.headers.get("content-type", "").startswith("text/html"):
            raise NetworkError("download was answered with a page for people")  # by something before the store
        if first not in {0, position}:
            raise ProtocolError(f"download was answered from byte {first} on, not from {position}")
        etag = answer.headers.get("etag", "")
        with self._lock:
            if self.ranged is None:
                self.total, self.ranged, self._etag = total, answer.status == 206, etag
                # Azure's header for the whole blob's digest in a range; the plain one is of what the answer holds.
                whole = size is not None and size == total
                plain = answer.headers.get("content-md5", "") if whole else ""
                digest = answer.headers.get("x-ms-blob-content-md5", "") or plain
                self._digest = digest if len(digest) == _DIGEST_LENGTH else ""
                if self._described is not None:
                    self._described(answer.headers)
                self.opened.set()
            elif _differ(total, self.total) or _differ(etag or None, self._etag or None):
                raise _ChangedError("download was continued with other content")
        return first, size

    def _renewed(self, refused: str, error: HttpStatusError) -> None:
        """See that ``url`` is another one than the ``refused``, or raise ``error``."""
        with self._lock:
            if self.url != refused:
                return  # by another thread
            if self._renew is None or self._renewals >= _MOST_RENEWALS:
                raise error
            self._renewals += 1
            self.url = self._renew()

    def check_digest(self, file: Path, length: int) -> None:
        """Compare what has come with the digest that the server gave, if it did.

        :raises DigestError: it is not the same.
        """
        if self._digest and content_md5(FileSlice(file, 0, length)) != self._digest:
            raise DigestError("download: what came has not the digest that the server gave")


def _fetch_all(source: _Source, file: Path, plan: DownloadPlan) -> int:
    """Fill ``file`` with all of the content and return its length."""
    lengths: list[int] = []

    def fetch(start: int, end: int) -> None:
        with file.open("r+b") as target:
            target.seek(start)
            lengths.append(source.fetch(start, end, target.write))

    with file.open("wb"):
        pass
    with Crew(plan.parallel, on_failure=source.stop) as crew:
        crew.submit(partial(fetch, 0, plan.part))
        source.opened.wait()
        if source.ranged and source.total is not None:
            for start in range(plan.part, source.total, plan.part):
                crew.submit(partial(fetch, start, start + plan.part))
    return max(lengths)


def _differ(one: object, other: object) -> bool:
    """Whether both are known, and not the same."""
    return one is not None and other is not None and one != other


def _extent(answer: Stream) -> tuple[int, int | None, int | None]:
    """The byte that an answer starts with, its own length, and the whole content's, each where it is told."""
    told = answer.headers.get("content-length", "")
    length = int(told) if told.isdecimal() and len(told) <= _MOST_DIGITS else None
    if told.isdecimal() and length is None:
        raise ProtocolError(f"download announced a length of {len(told)} digits")
    if answer.status != 206:
        return 0, length, length
    match = re.fullmatch(rf"bytes ({_NUMBER})-({_NUMBER})/({_NUMBER})", answer.headers.get("content-range", "").strip())
    if match is None:
        raise ProtocolError("download was continued without saying where")
    first, last, total = (int(number) for number in match.groups())
    size = last - first + 1
    if length not in {None, size} or last >= total:
        raise ProtocolError(f"download brought {length} bytes where {size} were announced")
    return first, size, total


@contextmanager
def _part_file(target: Path) -> Iterator[Path]:
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
