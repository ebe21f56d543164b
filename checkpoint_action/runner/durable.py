"""Writing files so that they survive a kill and a power loss, or are not there at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from checkpoint_action.store.folders import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["replace_file"]

_PRIVATE = 0o600  # commands may hold what is nobody else's business


def replace_file(path: Path, data: bytes | Iterable[bytes], *, sync: bool = True) -> None:
    """Put ``data`` in the place of a file in one step.

    :param data: all of it, or piece by piece.
    :param sync: whether it is on the disk when this returns; else a loss of power may leave part of it.
    :raises OSError: it cannot be written; the old file is then as it was.
    """
    temporary = Path(f"{path}.tmp")  # whoever writes holds the job's lock: one that is there is what a kill left
    temporary.unlink(missing_ok=True)
    try:
        # Nobody else's file, nor what a link there leads to, is written to.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), _PRIVATE)
        with os.fdopen(fd, "wb") as file:
            _write_all(file, [data] if isinstance(data, bytes) else data)
            if sync:
                os.fsync(fd)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        sync_folder(path.parent)


def _write_all(file: IO[bytes], pieces: Iterable[bytes]) -> None:
    file.writelines(pieces)
    file.flush()
