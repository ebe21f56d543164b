"""Finding a program as the system does, only faster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["program_in"]


def program_in(folders: Iterable[str], name: str) -> str | None:
    """The first file of a name that may be executed; ``None`` where there is none, or only the system can tell.

    The system looks by trying to start it in one folder after the other, which takes several times as long.

    :param folders: those of ``PATH``.
    """
    for folder in folders:
        if not folder.startswith(os.sep):  # relative to the folder that the command runs in
            return None
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113  # for speed
            return path
    return None
