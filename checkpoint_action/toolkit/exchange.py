"""What a call consists of: its limits, its body, the request and the answer. Data only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from checkpoint_action.toolkit.errors import HttpStatusError, NetworkError, QuotaError, RateLimitedError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["CHUNK", "Call", "FileSlice", "Limits", "Response", "Retries", "Stream", "patient"]

CHUNK = 256 * 1024
"""Bytes of an answer that are read at once."""

_SENT_AT_ONCE = 64 * 1024  # the limit for a stalled send counts for each: 6.5 kB/s on each connection are enough
_PATIENCE = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a call may take, in seconds.

    :param connect: until a connection stands, and until a stalled send is given up.
    :param idle: between two pieces of an answer.
    :param total: the whole call with its tries and waits; looked at between two pieces, so passed by at most ``idle``.
    """

    connect: float = 10.0
    idle: float = 30.0
    total: float = 60.0


def patient(limits: Limits) -> Limits:
    """Limits for a call that is better waited for than made twice, as its second try is refused or does harm.

    The official client waits three minutes for each answer of the service.
    """
    return replace(limits, idle=_PATIENCE * limits.idle)


@dataclass(frozen=True, slots=True)
class Retries:
    """How a call is tried again.

    :param tries: tries in all.
    :param first: seconds before the second try; doubled for each further one, less up to half at random.
    :param cap: seconds that such a wait never exceeds.
    :param retry_after_cap: seconds that a wait the server asked for never exceeds.
    """

    tries: int = 5
    first: float = 1.0
    cap: float = 20.0
    retry_after_cap: float = 60.0

    def backoff(self, tries: int, jitter: float) -> float:
        """Seconds to wait after the ``tries``-th try has failed.

        :param jitter: a random number from 0 to 1.
        """
        return min(self.cap, self.first * 2.0 ** min(tries - 1, 30)) * (1 - jitter / 2)

    def wait_after(self, error: ToolkitError, tries: int, jitter: float) -> float | None:
        """Seconds to wait after the ``tries``-th try has failed with ``error``; ``None`` where it is not made again."""
        if tries >= self.tries or (isinstance(error, NetworkError) and error.permanent):
            return None
        if isinstance(error, HttpStatusError):
            passes = error.status in {408, 429} or error.status >= 500 or isinstance(error, RateLimitedError)
            if not passes or isinstance(error, QuotaError):
                return None
            if error.retry_after is not None:
                return min(error.retry_after, self.retry_after_cap) + jitter
        return self.backoff(tries, jitter)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A part of a file as a request's body: read in pieces while it is sent, anew for each try.

    :param offset: first byte.
    :param length: number of bytes.
    """

    path: Path
    offset: int
    length: int

    def __iter__(self) -> Iterator[bytes]:
        left = self.length
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                while left:
                    piece = file.read(min(left, _SENT_AT_ONCE))
                    if not piece:
                        raise ToolkitError(f"{self.path} became shorter while it was sent")
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise ToolkitError(f"cannot read {self.path}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer whose body is still to come; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Call:
    """A request and when it has to be over.

    :param headers: names in lower case.
    :param until: moment of the client's clock.
    :param follow: whether a redirect is followed, or is itself the answer (unless it says "moved for good").
    :raises NetworkError: ``url`` is none that can be asked for.
    """

    method: str
    url: str
    label: str
    headers: Mapping[str, str]
    body: bytes | FileSlice | None
    limits: Limits
    until: float
    follow: bool = True

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            is_http = parts.scheme in {"http", "https"} and self.url.isascii()
            usable = is_http and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise NetworkError(f"{self.label}: not a usable address", permanent=True)

    def pieces(self) -> Iterator[bytes]:
        """The body, as it is sent."""
        if isinstance(self.body, FileSlice):
            yield from self.body
        elif self.body:
            for at in range(0, len(self.body), _SENT_AT_ONCE):
                yield self.body[at : at + _SENT_AT_ONCE]

    @property
    def place(self) -> str:
        """Operation and host: all of a URL that a message may show."""
        return f"{self.label} at {urlsplit(self.url).netloc.rpartition('@')[2]}"

    def redirected(self, location: str) -> Call:
        """The call to make instead: without ``Authorization`` where another host, port or scheme is named."""
        try:
            url = urljoin(self.url, location)
        except ValueError:
            url = ""
        call = replace(self, url=url)
        before, after = urlsplit(self.url), urlsplit(url)
        if (before.scheme, before.netloc) == (after.scheme, after.netloc):
            return call
        return replace(call, headers={name: value for name, value in call.headers.items() if name != "authorization"})
