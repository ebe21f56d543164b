"""What has to be done to a folder for its names to last."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["sync_folder"]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the platform lets us.

    Windows has no way to do it and orders its metadata itself; some network file systems refuse, though the rename
    itself has worked.
    """
    if sys.platform == "win32":
        return
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
