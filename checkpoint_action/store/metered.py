"""A store that tells how much goes to it and comes from it, for whoever watches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checkpoint_action.store.base import FilePart, ListingLook, PieceStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from checkpoint_action.store.base import Found, Pieces, Store

__all__ = ["Moved", "metered"]


@dataclass(frozen=True, slots=True)
class Moved:
    """How far a transfer is.

    :param up: whether it goes to the store.
    :param size: bytes that have moved.
    :param total: bytes in all, where that is known.
    :param ended: whether it is over, well or not.
    """

    up: bool
    key: str
    size: int = 0
    total: int | None = None
    ended: bool = False


def metered(store: Store, told: Callable[[Moved], None]) -> Store:
    """The same store, watched; it can what the other can, and no more.

    :param told: gets how far each transfer is, from whatever thread.
    """
    kinds: dict[tuple[bool, bool], type[_Metered]] = {
        (False, False): _Metered,
        (True, False): _MeteredListing,
        (False, True): _MeteredPieces,
        (True, True): _MeteredBoth,
    }
    return kinds[isinstance(store, ListingLook), isinstance(store, PieceStore)](store, told)


class _Metered:
    def __init__(self, store: Store, told: Callable[[Moved], None]) -> None:
        self._store = store
        self._told = told

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def reach(self) -> str:
        return self._store.reach

    def find(self, prefix: str) -> Found | None:
        return self._store.find(prefix)

    def save(self, key: str, source: Path) -> None:
        size = source.stat().st_size
        with self._telling(up=True, key=key, total=size):
            self._store.save(key, source)

    def fetch(self, found: Found, target: Path) -> None:
        with self._telling(up=False, key=found.key):
            self._store.fetch(found, target)

    def read(self, found: Found, start: int, length: int) -> bytes:
        with self._telling(up=False, key=found.key):
            return self._store.read(found, start, length)

    @contextmanager
    def _telling(self, *, up: bool, key: str, total: int | None = None) -> Iterator[None]:
        self._told(Moved(up, key, 0, total))
        try:
            yield
        finally:
            self._told(Moved(up, key, total or 0, total, ended=True))


class _MeteredListing(_Metered):
    def find_each(self, prefixes: Sequence[str]) -> list[Found | None]:
        assert isinstance(self._store, ListingLook)  # noqa: S101  # it is made for no other
        return self._store.find_each(prefixes)


class _MeteredPieces(_Metered):
    @contextmanager
    def begin(self, key: str) -> Iterator[Pieces]:
        assert isinstance(self._store, PieceStore)  # noqa: S101  # it is made for no other
        with self._telling(up=True, key=key), self._store.begin(key) as pieces:
            yield _MeteredEntry(pieces, lambda size: self._told(Moved(up=True, key=key, size=size)))


class _MeteredBoth(_MeteredListing, _MeteredPieces):
    pass


class _MeteredEntry:
    def __init__(self, pieces: Pieces, told: Callable[[int], None]) -> None:
        self._pieces = pieces
        self._told = told
        self._size = 0

    def put(self, body: bytes | FilePart) -> Any:
        part = self._pieces.put(body)
        self._size += body.length if isinstance(body, FilePart) else len(body)
        self._told(self._size)
        return part

    def finish(self, parts: Iterable[Any]) -> None:
        self._pieces.finish(parts)
