"""Old entries deleted from a store, but none that is needed yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import BundleError, StoreError, StoreMissingError
from checkpoint_action.store.base import Found
from checkpoint_action.store.bundle import LONGEST_HEADER, Short, parse_header
from checkpoint_action.store.layout import age_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from checkpoint_action.store.layout import Listed, ListingStore

__all__ = ["Pruned", "prune"]

_FIRST_LOOK = 64 << 10
_LONGEST_LOOK = LONGEST_HEADER + (LONGEST_HEADER >> 6)
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was done.

    :param deleted: entries that are gone now.
    :param kept: how many stay.
    :param failed: why entries that should have gone did not go, by key.
    """

    deleted: tuple[Listed, ...]
    kept: int
    failed: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Header:
    """What an archive says.

    :param job: empty where it is no archive of ours.
    :param needs: keys of the archives that its records point to.
    """

    job: str
    needs: frozenset[str]


def prune(
    store: ListingStore,
    *,
    older_than: float,
    keep: int,
    now: float,
    dry_run: bool = False,
) -> Pruned:
    """Delete the entries that are older than ``older_than`` seconds, but of each job the ``keep`` newest.

    What a kept archive's records point to is kept too: a resume from it needs it. What comes meanwhile stays, with what
    it points to. Others may use the store at the same time; whoever misses an entry then does its step again.

    :param keep: counted over all scopes of a job; 0 keeps none for its own sake.
    :param now: seconds since 1970 by the store's clock, or one that goes about as it does.
    :param dry_run: only tell what would be done.
    :raises StoreError: the store cannot be listed, or an archive cannot be read now: then nothing is deleted.
    """
    headers: dict[str, _Header] = {}
    rows = {row.key: row for row in store.entries()}
    for _round in range(_ROUNDS):
        _read_headers(store, rows, headers)
        rows = {row.key: row for row in store.entries()}
        if rows.keys() <= headers.keys():
            break
    known = [row for key, row in rows.items() if key in headers]
    stay = _to_keep(known, headers, now - older_than, keep)
    going = sorted((row for row in known if row.key not in stay), key=lambda row: (row.modified, row.key))
    deleted: list[Listed] = []
    failed: dict[str, str] = {}
    for row in going:
        try:
            if not dry_run:
                store.delete(row.key)
        except StoreError as error:
            failed[row.key] = str(error)
        else:
            deleted.append(row)
    return Pruned(tuple(deleted), len(rows) - len(deleted), failed)


def _to_keep(rows: Iterable[Listed], headers: dict[str, _Header], limit: float, keep: int) -> set[str]:
    jobs: dict[str, list[Listed]] = {}
    stay: set[str] = set()
    for row in rows:
        if row.modified >= limit:
            stay.add(row.key)
        if job := headers[row.key].job:
            jobs.setdefault(job, []).append(row)
    for mine in jobs.values():
        stay.update(row.key for row in sorted(mine, key=_age, reverse=True)[:keep])
    return stay.union(*(headers[key].needs for key in stay))


def _age(row: Listed) -> tuple[tuple[int, ...], float, str]:
    return age_in(row.key) or (), row.modified, row.key


def _read_headers(store: ListingStore, rows: dict[str, Listed], headers: dict[str, _Header]) -> None:
    for key in rows.keys() - headers.keys():
        try:
            headers[key] = _told(_header(store, Found(key)))
        except StoreMissingError:
            headers[key] = _Header("", frozenset())
        except BundleError:  # nobody can use it
            headers[key] = _Header("", frozenset())


def _header(store: ListingStore, found: Found) -> dict[str, Any]:
    """What an archive says first.

    :raises BundleError: it is no archive of ours.
    """
    data, wanted = b"", _FIRST_LOOK
    while True:
        more = store.read(found, len(data), wanted - len(data))
        is_whole = len(data) + len(more) < wanted
        data += more
        header = parse_header(data)
        if not isinstance(header, Short):
            return header
        if is_whole or header.needed > _LONGEST_LOOK:
            raise BundleError("the archive is cut off, or its header is too long")
        wanted = min(max(header.needed, 4 * len(data)), _LONGEST_LOOK)


def _told(header: dict[str, Any]) -> _Header:
    """Every key that any record names, whatever else it says: a later version's records may say more."""
    job = header.get("job")
    needs: set[str] = set()
    todo: list[Any] = [header.get("records")]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            archive = value.get("archive")
            if isinstance(archive, dict) and isinstance(archive.get("key"), str):
                needs.add(archive["key"])
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
    return _Header(job if isinstance(job, str) else "", frozenset(needs))
