"""Lines of our own on a stream; imports next to nothing, as every start needs it."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

from checkpoint_action.report.words import one_line

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["say", "write_all"]


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor that another program may have set to non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])


def say(stream: TextIO, text: str, before: str = "") -> None:
    """Print a line that every terminal can show; one that has gone away is no error.

    :param before: what to print before it, as it is.
    """
    text = one_line(text)
    encoding = (stream.encoding or "ascii").lower().replace("-", "")
    if encoding != "utf8":
        text = text.replace("→", "->").encode(encoding, "replace").decode(encoding, "replace")
    text = before + text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"
    try:
        stream.flush()
        if sys.platform == "win32" or not _has_descriptor(stream):
            stream.write(text)
            stream.flush()
        else:
            write_all(stream.fileno(), text.encode(encoding))
    except (OSError, ValueError):
        pass


def _has_descriptor(stream: TextIO) -> bool:
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False
