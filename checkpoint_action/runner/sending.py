"""One archive on its way up: as one body where it is small, else in pieces, without another copy of it on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import StoreError
from checkpoint_action.runner.parcels import remove
from checkpoint_action.store.base import FilePart
from checkpoint_action.store.bundle import END_FRAME, header_frame, write_archive
from checkpoint_action.store.gathered import begin, copy_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from checkpoint_action.store.base import Store

__all__ = ["ONE_BODY", "SLICE_SIZE", "send_in_pieces", "send_joined"]

ONE_BODY = 32 << 20
"""Bytes of layers up to which an archive goes up as one body: what the Actions cache takes in one request of ours."""

SLICE_SIZE = 8 << 20
"""Bytes that are worth a request of their own."""


def send_joined(store: Store, key: str, header: Mapping[str, Any], files: Sequence[Path], spool: Path) -> int:
    """Have an archive go up as one file; its bytes.

    :param files: packed layers.
    :param spool: where to put the archive meanwhile.
    :raises StoreError: it does not arrive.
    """
    try:
        write_archive(header, files, spool)
        store.save(key, spool)
        return spool.stat().st_size
    except OSError as error:
        raise StoreError(f"cannot write the archive: {error}") from error
    finally:
        remove((spool,))


def send_in_pieces(
    store: Store,
    key: str,
    spool: Path,
    *,
    early: Iterable[FilePart] = (),
    rest: Callable[[], tuple[Mapping[str, Any], Sequence[Path]]],
) -> int:
    """Have an archive go up in pieces, its header last; its bytes.

    :param spool: where to put what is gathered meanwhile.
    :param early: parts of one packed layer, in order; each is sent as soon as it is given.
    :param rest: gives the header and the other packed layers, once all of ``early`` is on its way.
    :raises StoreError: it does not arrive; then nothing of it is there.
    """
    tail = spool.with_name(f"{spool.name}.tail")
    size = 0
    try:
        with begin(store, key, spool) as pieces:
            parts = []
            for part in early:
                parts.append(pieces.put(part))
                size += part.length
            header, files = rest()
            small = []
            for file in files:
                whole = FilePart(file, 0, file.stat().st_size)
                if whole.length < SLICE_SIZE:
                    small.append(whole)
                    continue
                parts.append(pieces.put(whole))
                size += whole.length
            with tail.open("wb") as joined:
                for part in small:
                    copy_part(part, joined)
                joined.write(END_FRAME)
                length = joined.tell()
            parts.append(pieces.put(FilePart(tail, 0, length)))
            first = header_frame(header)
            pieces.finish([pieces.put(first), *parts])
            return len(first) + size + length
    except OSError as error:
        raise StoreError(f"cannot write the archive: {error}") from error
    finally:
        remove((tail,))
