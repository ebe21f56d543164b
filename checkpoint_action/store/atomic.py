"""A file that is there complete or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.store.folders import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(target: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write that becomes ``target`` when the block ends well, and vanishes when it does not.

    :param durable: reach the disk before the name does, and make the name reach it too.
    """
    number, name = tempfile.mkstemp(prefix=".cpr-", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    if durable:
        sync_folder(target.parent)
