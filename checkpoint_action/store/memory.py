"""Memory for blocks of some MiB that come and go."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache

__all__ = ["keep_large_blocks"]

LARGE = 16 << 20
"""Bytes: above what the threads that unpack or pack have between them at once, on two cores."""


@cache
def keep_large_blocks() -> None:
    """Have the C library use the memory of large blocks again, for the rest of this process.

    glibc gives what was freed back to the system beyond a bound, and the system fills every page with zeros when it is
    asked for it again. The bound is twice the largest block that it has seen freed: so it is shown one. That block is
    never written to and so takes no memory. Other C libraries see one needless call.
    """
    if sys.platform == "linux":
        with suppress(MemoryError):  # where there is so little, memory goes back to the system
            bytes(LARGE)
