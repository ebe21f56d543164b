"""Entries handed over piece by piece, for any store: one that takes files alone gets a file at the end."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.store.base import FilePart, PieceStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import BinaryIO

    from checkpoint_action.store.base import Pieces, Store

__all__ = ["GatheredPieces", "begin", "copy_part"]

_AT_ONCE = 1 << 20


def begin(store: Store, key: str, spool: Path) -> AbstractContextManager[Pieces]:
    """Keep under ``key`` what is handed over in the block; see :class:`~checkpoint_action.store.base.PieceStore`.

    :param spool: a file that is not there; a store that takes files alone gets it, and it is removed.
    :raises StoreTakenError: another key will do.
    """
    return store.begin(key) if isinstance(store, PieceStore) else _gathering(store, key, spool)


class GatheredPieces:
    """An entry that is being handed over, kept here until all of it is there.

    :param send: sends the pieces in their final order.
    """

    def __init__(self, send: Callable[[Sequence[bytes | FilePart]], None]) -> None:
        self._send = send
        self._pieces: list[bytes | FilePart] = []

    def put(self, body: bytes | FilePart) -> int:
        """Hand a piece over; its number. A file must stay as it is until :meth:`finish` has returned."""
        self._pieces.append(body)
        return len(self._pieces) - 1

    def finish(self, parts: Iterable[int]) -> None:
        """Make the entry of ``parts``, in this order, and visible."""
        self._send([self._pieces[part] for part in parts])


@contextmanager
def _gathering(store: Store, key: str, spool: Path) -> Iterator[Pieces]:
    yield _Gathered(store, key, spool)


class _Gathered:
    def __init__(self, store: Store, key: str, spool: Path) -> None:
        self._store = store
        self._key = key
        self._spool = spool
        self._pieces: list[bytes | FilePart] = []

    def put(self, body: bytes | FilePart) -> int:
        self._pieces.append(body)
        return len(self._pieces) - 1

    def finish(self, parts: Iterable[int]) -> None:
        try:
            with self._spool.open("wb") as file:
                for number in parts:
                    piece = self._pieces[number]
                    if isinstance(piece, FilePart):
                        copy_part(piece, file)
                    else:
                        file.write(piece)
            self._store.save(self._key, self._spool)
        except OSError as error:
            raise StoreError(f"cannot write the archive: {error}") from error
        finally:
            with suppress(OSError):
                self._spool.unlink()


def copy_part(part: FilePart, target: BinaryIO) -> None:
    """Write a part of a file to an open one.

    :raises OSError: the file has no such part any more.
    """
    with part.path.open("rb") as source:
        source.seek(part.offset)
        left = part.length
        while left:
            data = source.read(min(left, _AT_ONCE))
            if not data:
                raise OSError(f"{part.path} became shorter")
            target.write(data)
            left -= len(data)
