"""A step's log, opened to be read."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["opened_log"]


@contextmanager
def opened_log(path: Path, *, through_links: bool = True) -> Iterator[BinaryIO]:
    """A log to be read; what stands in its place, by a step or as it was asked for, must not keep us waiting.

    :param through_links: whether it may be a link: not where others get to see what is read.
    :raises OSError: it cannot be opened, or is no regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    if not through_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield file
