"""Where the paths that people write lead."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["place_of"]


def place_of(folder: Path, name: str) -> str:
    """The absolute path that a name means for a command in a folder, without ``.`` and ``..``.

    What follows a ``..`` behind a link lies beside where the link leads, as the system has it; else links stay.
    """
    joined = os.path.join(folder, name)
    plain = os.path.normpath(joined)
    parts = joined.split(os.sep) if os.sep == "/" else joined.replace("/", os.sep).split(os.sep)
    if os.pardir not in parts:
        return plain
    last = len(parts) - parts[::-1].index(os.pardir)
    above = os.sep.join(parts[:last])
    real = os.path.realpath(above)
    if real == os.path.realpath(os.path.normpath(above)):
        return plain
    return os.path.normpath(os.path.join(real, *parts[last:]))
