"""A log as it grows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from checkpoint_action.report.log_file import opened_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["follow_log"]

_CHUNK = 1 << 18
_PAUSE = 0.2  # seconds between looks


def follow_log(
    path: Path,
    write: Callable[[bytes], None],
    running: Callable[[], bool],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Hand on a log from its beginning until its step no longer runs. Another try begins the log anew.

    :param running: whether more may come; asked after each look that found nothing.
    :raises OSError: it cannot be read.
    """
    with opened_log(path) as file:
        while True:
            more = running()  # before the look, or what comes between the two would be missed
            if path.stat().st_size < file.tell():
                file.seek(0)
            found = False
            while data := file.read(_CHUNK):
                write(data)
                found = True
            if not found and not more:
                return
            if not found:
                sleep(_PAUSE)
