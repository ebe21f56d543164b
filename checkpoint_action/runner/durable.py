"""Writing files so that they survive a kill and a power loss, or are not there at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from checkpoint_action.store.folders import sync_folder

__all__ = ["append", "open_append", "replace_file"]

_PRIVATE = 0o600  # commands may hold what is nobody else's business


def replace_file(path: Path, data: bytes) -> None:
    """Put ``data`` in the place of a file in one step.

    :raises OSError: it cannot be written; the old file is then as it was.
    """
    temporary = Path(f"{path}.tmp")  # whoever writes holds the job's lock: one that is there is what a kill left
    temporary.unlink(missing_ok=True)
    try:
        # Nobody else's file, nor what a link there leads to, is written to.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), _PRIVATE)
        try:
            _write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def open_append(path: Path) -> int:
    """A descriptor that appends to an existing file.

    :raises OSError: it cannot be opened.
    """
    return os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))


def append(fd: int, data: bytes) -> None:
    """Append and wait until it is on the disk. What could be written of a failed append is taken back.

    :raises OSError: the disk is full, say.
    """
    size = os.fstat(fd).st_size
    try:
        _write_all(fd, data)
        os.fsync(fd)
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
