"""Folders for a while."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TemporaryFolder"]


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A new folder, which goes with all that is in it as far as that can be removed; what stays is no error.

    :param prefix: what its name begins with.
    :param folder: where it lies; without it, where temporary files lie.
    :raises OSError: it cannot be made.
    """

    def __init__(self, prefix: str, folder: Path | None = None) -> None:
        super().__init__(prefix=prefix, dir=folder, ignore_cleanup_errors=True)

    def cleanup(self) -> None:
        """Remove it."""
        try:
            super().cleanup()
        except (OSError, RecursionError):  # of the modes that it changes on its way, which it does not ignore
            shutil.rmtree(self.name, ignore_errors=True)
