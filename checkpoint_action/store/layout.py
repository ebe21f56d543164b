"""Where an entry lies in a store with folders: one for each job and scope, so that a look-up lists no other's."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from checkpoint_action.errors import StoreError
from checkpoint_action.store.base import Found, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "SUFFIX",
    "Listed",
    "ListingStore",
    "age_in",
    "common",
    "folder_of",
    "key_at",
    "newest",
    "newest_each",
    "place",
]

_T = TypeVar("_T")

SUFFIX = ".tar.zst"
"""Ends an entry's name, so that everybody sees what opens it."""

_PART = r"[a-z0-9][a-z0-9._~-]*"
_KEY = re.compile(_PART)
_IN_FOLDER = re.compile(r"(.*?-[0-9a-f]{16})-(.*)")
"""The job in a key ends with its digest. What is before it is the same for all keys of the job."""

_TAIL = re.compile(r".*-([^-]+)-([0-9]{1,18})-([0-9]{6,18})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry as a listing tells of it.

    :param size: its bytes.
    :param modified: when it came, in seconds since 1970 by the store's clock.
    """

    key: str
    size: int
    modified: float


class ListingStore(Store, Protocol):
    """A store whose entries can be listed and deleted; it raises what a store does."""

    def entries(self, prefix: str = "") -> list[Listed]:
        """The complete entries whose keys start with ``prefix``, in no order."""
        ...

    def find_each(self, prefixes: Sequence[str]) -> list[Found | None]:
        """For each prefix what :meth:`find` gives, in one look."""
        ...

    def delete(self, key: str) -> None:
        """Delete an entry; one that is gone is no fault."""
        ...


def place(key: str) -> tuple[str, str]:
    """The folder (empty for none) and the name of the entry with this key.

    :raises StoreError: it cannot be a key here.
    """
    if not _KEY.fullmatch(key):
        raise StoreError(f"{key!r:.200} cannot be a key here: lower-case letters, digits and '._~-' only")
    match = _IN_FOLDER.fullmatch(key)
    if match is None or not _KEY.fullmatch(match[2]):
        return "", key + SUFFIX
    return match[1], match[2] + SUFFIX


def folder_of(prefix: str) -> str | None:
    """The one folder of all keys that start with ``prefix``, ``None`` where they may lie anywhere."""
    match = _IN_FOLDER.fullmatch(prefix)
    return match[1] if match and _KEY.fullmatch(match[2] or "x") else None


def key_at(folder: str, name: str) -> str | None:
    """The key of the entry at a place; ``None`` where no entry of ours lies there."""
    stem = name.removesuffix(SUFFIX)
    key = f"{folder}-{stem}" if folder else stem
    return key if name.endswith(SUFFIX) and _KEY.fullmatch(key) and place(key) == (folder, name) else None


def age_in(key: str) -> tuple[int, int, int] | None:
    """What a key tells of its age, whatever job it is of: number of the archive, run (0 for none), attempt.

    The number goes first: it is made from the time, and the runs of two systems, or of none, are not in one order.
    """
    match = _TAIL.fullmatch(key)
    if match is None:
        return None
    run = int(match[1]) if re.fullmatch(r"[0-9]{1,18}", match[1]) else 0
    return int(match[3]), run, int(match[2])


def newest_each(
    rows: Sequence[Listed], prefixes: Sequence[str], order: Callable[[str], tuple[object, ...] | None]
) -> list[Found | None]:
    """For each prefix the newest entry whose key starts with it, ``None`` where there is none.

    :param order: what a key tells of its age, the greater the newer, or ``None``.
    """
    found: list[Found | None] = []
    for prefix in prefixes:
        of_prefix = [row for row in rows if row.key.startswith(prefix.lower())]
        best = newest(of_prefix, lambda row: row.key, order, lambda row: row.modified)
        found.append(Found(best.key) if best is not None else None)
    return found


def common(prefixes: Sequence[str]) -> str:
    """What all of the prefixes begin with, in lower case."""
    return os.path.commonprefix([prefix.lower() for prefix in prefixes])  # noqa: RUF071  # no paths, but texts


def newest(
    rows: Iterable[_T],
    key: Callable[[_T], str],
    order: Callable[[str], tuple[object, ...] | None],
    modified: Callable[[_T], float],
) -> _T | None:
    """The newest of some entries: by what their keys tell of their age, else by the time they came.

    :param order: what a key tells of its age, the greater the newer, or ``None``.
    :param modified: asked only where keys do not decide it.
    """
    ages = [(order(key(row)), row) for row in rows]
    told = [age for age, _row in ages if age is not None]
    best = max(told) if told else None
    last = [row for age, row in ages if age == best]
    return max(last, key=lambda row: (modified(row), key(row))) if len(last) > 1 else next(iter(last), None)
