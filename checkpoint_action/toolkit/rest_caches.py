"""The Actions caches of a repository seen from outside: list them, delete them, ask how full they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from checkpoint_action.toolkit.errors import InputError, ProtocolError

if TYPE_CHECKING:
    from checkpoint_action.toolkit.rest import RestClient

__all__ = ["CacheItem", "CacheUsage", "cache_usage", "delete_cache", "delete_caches", "list_caches"]

_CACHES = "actions/caches"


@dataclass(frozen=True, slots=True)
class CacheItem:
    """A cache entry as GitHub lists it.

    :param ref: the scope it was written in, as ``refs/heads/main`` or ``refs/pull/1/merge``.
    :param size: bytes.
    :param created_at: RFC 3339, as told; likewise ``last_accessed_at``.
    """

    id: int
    key: str
    ref: str
    version: str
    size: int
    created_at: str
    last_accessed_at: str


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """How full a repository's cache is; GitHub counts it anew every five minutes or so.

    :param size: bytes.
    """

    size: int
    count: int


def list_caches(
    rest: RestClient,
    *,
    key: str = "",
    ref: str = "",
    sort: Literal["created_at", "last_accessed_at", "size_in_bytes"] = "created_at",
) -> list[CacheItem]:
    """The entries whose key begins with ``key``, of ``ref`` or of all refs: newest, last used or largest first.

    At most 1000. Needs ``actions: read``.

    :raises ToolkitError: as :meth:`.RestClient.get`.
    """
    query = {"key": key, "ref": ref, "sort": sort, "direction": "desc"}
    items = [_item(data) for data in rest.pages(_CACHES, "actions_caches", query, label="list caches")]
    return [item for item in items if item.key.startswith(key) and (not ref or item.ref == ref)]


def delete_cache(rest: RestClient, number: int) -> bool:
    """Delete one entry by its number; ``False`` when it is not there, or no more. Needs ``actions: write``.

    :raises ToolkitError: as :meth:`.RestClient.get`.
    """
    return rest.delete(f"{_CACHES}/{quote(str(number), safe='')}", label="delete cache")


def delete_caches(rest: RestClient, *, key: str, ref: str = "") -> list[CacheItem]:
    """Delete all entries whose key begins with ``key``, and return those that are gone by it.

    The interface deletes only by whole key or by number, so they are listed first, up to 1000 of them.

    :param ref: delete in this scope only.
    :raises InputError: ``key`` is empty: that would be all of them.
    :raises ToolkitError: as :meth:`.RestClient.get`; some may be deleted by then.
    """
    if not key:
        raise InputError("deleting caches needs the beginning of a key")
    return [item for item in list_caches(rest, key=key, ref=ref) if delete_cache(rest, item.id)]


def cache_usage(rest: RestClient) -> CacheUsage:
    """How full the cache is. Needs ``actions: read``.

    :raises ToolkitError: as :meth:`.RestClient.get`.
    """
    data = rest.get("actions/cache/usage", label="cache usage")
    size, count = data.get("active_caches_size_in_bytes"), data.get("active_caches_count")
    if not isinstance(size, int) or not isinstance(count, int):
        raise ProtocolError("cache usage answered without its numbers")
    return CacheUsage(size, count)


def _item(data: dict[str, object]) -> CacheItem:
    number, size = data.get("id"), data.get("size_in_bytes")
    if not isinstance(number, int) or not data.get("key"):
        raise ProtocolError("list caches answered an entry without its id or key")
    return CacheItem(
        id=number,
        key=str(data["key"]),
        ref=str(data.get("ref") or ""),
        version=str(data.get("version") or ""),
        size=size if isinstance(size, int) else 0,
        created_at=str(data.get("created_at") or ""),
        last_accessed_at=str(data.get("last_accessed_at") or ""),
    )
