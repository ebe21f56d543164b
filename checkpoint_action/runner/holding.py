"""A job's lock as a glance at it needs it: :mod:`.lock` waits and explains, and takes longer to load."""

from __future__ import annotations

import os
import sys

__all__ = ["hold", "is_held", "name_holder"]

_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def is_held(path: str) -> bool:
    """Whether a run is on.

    :param path: the job's lock file.
    :raises OSError: there is none, or it cannot be looked at.
    """
    fd = hold(path)
    if fd is not None:
        os.close(fd)
    return fd is None


def hold(path: str) -> int | None:
    """Take the lock for as long as the descriptor that is given is open; ``None`` where it is held.

    :param path: the job's lock file.
    :raises OSError: there is none, or it cannot be looked at.
    """
    if sys.platform == "win32":
        return None
    import fcntl  # noqa: PLC0415  # not on Windows

    fd = os.open(path, _FLAGS)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def name_holder(fd: int) -> None:
    """Have the lock file say who holds it, for people only.

    Windows locks a byte range against reading too: the first byte is the lock, the name follows.

    :raises OSError: it cannot be written.
    """
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, f" process {os.getpid()}".encode())
