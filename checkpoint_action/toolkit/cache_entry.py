"""What the cache protocols share: a hit, an upload, the rules for keys, and how a refusal reads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    InputError,
    RateLimitedError,
    ReservedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checkpoint_action.toolkit.blob import Part
    from checkpoint_action.toolkit.exchange import FileSlice
    from checkpoint_action.toolkit.runtime import CacheScope

__all__ = [
    "Hit",
    "Upload",
    "cache_version",
    "check_key",
    "check_keys",
    "denial",
    "denied_read",
    "refused_reservation",
    "scopes_text",
    "taken",
]

_LONGEST_KEY = 512
_MOST_KEYS = 10
_SALT = "1.0"
_DENIALS = ("cache read denied:", "cache write denied:")


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that a look-up found.

    :param key: the entry's complete key as the server gives it (some servers lower-case it).
    :param version: the version it was asked with.
    :param url: where its content is, for a few minutes; whoever has it can read the content.
    :param exact: whether ``key`` is the first key asked for, letter case apart.
    """

    key: str
    version: str
    url: str = field(repr=False)
    exact: bool


class Upload(Protocol):
    """An entry whose pieces are handed over as they are ready; see :meth:`Cache.begin <.cache.Cache.begin>`."""

    def put(self, body: bytes | FileSlice) -> Part:
        """Hand a piece over. A file must stay as it is until :meth:`finish` has returned.

        :raises ToolkitError: the service fails, or failed with an earlier piece.
        """
        ...

    def finish(self, parts: Iterable[Part]) -> int:
        """Make the entry of ``parts``, in this order, and visible; return its length in bytes.

        :raises ToolkitError: the service fails; there is then no entry.
        """
        ...


def cache_version(paths: Sequence[str], compression: str = "zstd-without-long", *, windows_only: bool = False) -> str:
    """The version under which the official client keeps an archive of ``paths``: 64 hex digits.

    :param paths: as the user wrote them, in order.
    :param compression: ``zstd-without-long`` or ``gzip`` (``zstd`` in entries of old clients).
    :param windows_only: made on Windows without ``enableCrossOsArchive``.
    """
    parts = [*paths, compression, *(["windows-only"] if windows_only else []), _SALT]
    # A name that is no text has each of its stray bytes replaced, as node does when it reads it.
    text = "|".join(parts).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return hashlib.sha256(text.encode()).hexdigest()


def check_key(key: str) -> None:
    """Refuse a key that no server takes.

    :raises InputError: it is empty, longer than 512 characters, no text, or has a comma in it.
    """
    if not key:
        raise InputError("a cache key must not be empty")
    if len(key) > _LONGEST_KEY:
        raise InputError(f"a cache key has at most {_LONGEST_KEY} characters, this one has {len(key)}: {key[:40]}…")
    if "," in key:
        raise InputError(f"a cache key must have no comma in it: {key}")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"a cache key must be text: {key!a}") from error


def check_keys(keys: Sequence[str]) -> None:
    """Refuse a list of keys that no server takes.

    :raises InputError: one of them is unusable, there is none, or there are more than 10.
    """
    if not 1 <= len(keys) <= _MOST_KEYS:
        raise InputError(f"a cache look-up takes 1 to {_MOST_KEYS} keys, not {len(keys)}")
    for key in keys:
        check_key(key)


def denial(error: HttpStatusError) -> DeniedError | None:
    """The denial that an error status stands for, if it does: what the token may not do, stays so."""
    denied = error.status in {401, 403} and not isinstance(error, RateLimitedError)
    return DeniedError(str(error)) if denied or any(words in error.body.lower() for words in _DENIALS) else None


def denied_read(message: str) -> DeniedError | None:
    """The denial that a look-up's ``ok: false`` stands for, if it does.

    :param message: what the server said, or empty: then it is a miss.
    """
    return DeniedError(_line(message)) if _DENIALS[0] in message.lower() else None


def refused_reservation(key: str, message: str) -> DeniedError | ReservedError:
    """The error for a reservation that the server answered without giving one.

    :param message: what it said, or empty.
    """
    if _DENIALS[1] in message.lower():
        return DeniedError(_line(message))
    return ReservedError(f"cache key {key} is taken" + (f": {_line(message)}" if message else ""))


def taken(key: str, error: HttpStatusError) -> ReservedError:
    """The error for a reservation that the server answered with a conflict."""
    more = ", perhaps by an earlier try whose answer was lost" if error.repeated else ""
    return ReservedError(f"cache key {key} is taken{more}", repeated=error.repeated)


def scopes_text(scopes: Sequence[CacheScope]) -> str:
    """Where the token lets the job read and write entries, for a message; empty where the token does not tell."""
    if not scopes:
        return ""
    reads = ", ".join(scope.scope for scope in scopes if scope.readable)
    writes = ", ".join(scope.scope for scope in scopes if scope.writable)
    return f"this job can read entries of {reads or 'no ref'} and write entries of {writes or 'no ref'}"


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
