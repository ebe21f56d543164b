"""What every store can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["FilePart", "Found", "ListingLook", "PieceStore", "Pieces", "Store", "StreamStore"]


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that a store holds.

    :param key: its complete key.
    :param locator: whatever the store needs to fetch it; empty when the key is enough.
    """

    key: str
    locator: str = ""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file, read when it is sent, so that memory stays flat.

    :param offset: first byte.
    :param length: number of bytes.
    """

    path: Path
    offset: int
    length: int


class Store(Protocol):
    """A place that keeps archives under keys that are never used twice.

    Every method is bounded in time and raises :class:`~checkpoint_action.errors.StoreError` (or its
    :class:`~checkpoint_action.errors.StoreDeniedError`) when the store cannot do what is asked; nothing else. A call
    may come from any thread.
    """

    @property
    def name(self) -> str:
        """What people call it, for messages."""
        ...

    @property
    def reach(self) -> str:
        """Whose entries are read and where they are written, in words, for whoever wonders about a miss; or empty."""
        ...

    def find(self, prefix: str) -> Found | None:
        """The newest entry whose key starts with ``prefix`` (or equals it), or ``None``."""
        ...

    def save(self, key: str, source: Path) -> None:
        """Keep the content of the file ``source`` under ``key``, all or nothing.

        :raises StoreTakenError: another key will do.
        """
        ...

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: the entry is gone.
        """
        ...

    def read(self, found: Found, start: int, length: int) -> bytes:
        """``length`` bytes of the entry's content, from byte ``start`` on; fewer only where it ends before.

        :raises StoreMissingError: the entry is gone.
        """
        ...


@runtime_checkable
class ListingLook(Protocol):
    """A store that finds the newest entries of several prefixes in one look at what it holds."""

    def find_each(self, prefixes: Sequence[str]) -> list[Found | None]:
        """For each prefix what :meth:`Store.find` gives."""
        ...


@runtime_checkable
class StreamStore(Protocol):
    """A store that may send an entry from its first byte on, whatever part of it is asked for."""

    def stream(self, found: Found, start: int, take: Callable[[bytes], object]) -> bool:
        """Have the entry's content from byte ``start`` on, as it comes, where reading it by parts would cost more.

        :param take: gets it bit by bit, from another thread; what it raises ends the call.
        :returns: whether all of it has been taken; ``False`` where parts are as good, and nothing was.
        :raises StoreMissingError: the entry is gone.
        """
        ...


class Pieces(Protocol):
    """An entry that is being handed over; it raises what a store does."""

    def put(self, body: bytes | FilePart) -> Any:
        """Hand a piece over; a name for it. A file must stay as it is until :meth:`finish` has returned."""
        ...

    def finish(self, parts: Iterable[Any]) -> None:
        """Make the entry of the pieces with these names, in this order, and visible."""
        ...


@runtime_checkable
class PieceStore(Protocol):
    """A store that takes an entry piece by piece, as the pieces are ready.

    Any other store does so through :func:`~checkpoint_action.store.gathered.begin`.
    """

    def begin(self, key: str) -> AbstractContextManager[Pieces]:
        """Keep under ``key`` what is handed over in the block. Without ``finish`` there is nothing under it.

        :raises StoreTakenError: another key will do.
        """
        ...
