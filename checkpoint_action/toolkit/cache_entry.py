"""What the cache protocols share: a hit, the rules for keys, and how a refusal reads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.errors import DeniedError, HttpStatusError, InputError, ReservedError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Hit", "cache_version", "check_key", "check_keys", "denial", "refused_reservation"]

_LONGEST_KEY = 512
_MOST_KEYS = 10
_SALT = "1.0"


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


def cache_version(paths: Sequence[str], compression: str = "zstd-without-long", *, windows_only: bool = False) -> str:
    """The version under which the official client keeps an archive of ``paths``: 64 hex digits.

    :param paths: as the user wrote them, in order.
    :param compression: ``zstd-without-long`` or ``gzip`` (``zstd`` in entries of old clients).
    :param windows_only: made on Windows without ``enableCrossOsArchive``.
    """
    parts = [*paths, compression, *(["windows-only"] if windows_only else []), _SALT]
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


def check_key(key: str) -> None:
    """Refuse a key that no server takes.

    :raises InputError: it is empty, longer than 512 characters, or has a comma in it.
    """
    if not key:
        raise InputError("a cache key must not be empty")
    if len(key) > _LONGEST_KEY:
        raise InputError(f"a cache key has at most {_LONGEST_KEY} characters, this one has {len(key)}: {key[:40]}…")
    if "," in key:
        raise InputError(f"a cache key must have no comma in it: {key}")


def check_keys(keys: Sequence[str]) -> None:
    """Refuse a list of keys that no server takes.

    :raises InputError: one of them is unusable, there is none, or there are more than 10.
    """
    if not 1 <= len(keys) <= _MOST_KEYS:
        raise InputError(f"a cache look-up takes 1 to {_MOST_KEYS} keys, not {len(keys)}")
    for key in keys:
        check_key(key)


def denial(error: HttpStatusError) -> DeniedError | None:
    """The denial that an error status stands for, if it does (401 and 403: what the token may not do, stays so)."""
    return DeniedError(str(error)) if error.status in {401, 403} else None


def refused_reservation(key: str, message: str) -> DeniedError | ReservedError:
    """The error for a reservation that the server answered without giving one.

    :param message: what it said, or empty.
    """
    said = " ".join(message.split())[:300]
    if "cache write denied:" in said.lower():
        return DeniedError(said)
    return ReservedError(f"cache key {key} is taken" + (f": {said}" if said else ""))
