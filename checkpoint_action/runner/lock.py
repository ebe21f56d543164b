"""One run at a time on a job's state: a kernel lock that dies with its holder."""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.errors import LockError, LockHeldError, StateWriteError, kind_of_write
from checkpoint_action.runner.holding import name_holder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["JobLock"]

_POLL = 0.1  # seconds between tries while waiting
_BUSY = {errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN, errno.EDEADLK}
# Never through a link, whose target would be written to.
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_HOLDER_AT = 1  # byte 0 is the lock, the holder's name follows


class JobLock:
    """Holds the lock file of a job.

    What the file says of its holder is for people only: the lock itself is the kernel's, so that a killed run leaves
    nothing to clean up and a reused process id means nothing.

    :param path: the lock file; it stays behind, unlocked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._pid = 0

    def acquire(self, wait: float | None = 0, sleep: Callable[[float], object] = time.sleep) -> None:
        """Take the lock.

        :param wait: seconds to wait for another run to end; ``None`` waits for ever.
        :raises LockHeldError: another run holds it.
        :raises LockError: the folder's file system gives no locks.
        :raises StateWriteError: the lock file cannot be made.
        """
        # At the least as long as somebody's look at the lock takes.
        end = None if wait is None else time.monotonic() + max(wait, _POLL)
        while not self._try():
            if end is not None and time.monotonic() >= end:
                holder = self._holder()
                raise LockHeldError(
                    f"another run holds this job{holder}; wait for it, use --wait-lock, or another --state-dir"
                )
            sleep(_POLL / 2)

    def held(self) -> bool:
        """Whether a run holds the lock now; looks only."""
        try:
            fd = os.open(self._path, os.O_RDWR | _FLAGS)
        except OSError:
            return False
        try:
            _lock(fd)
        except OSError as error:
            return error.errno in _BUSY
        finally:
            os.close(fd)
        return False

    def _try(self) -> bool:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)
        except OSError as error:
            raise StateWriteError(
                f"cannot write {self._path}: {error.strerror}; choose another --state-dir", kind_of_write(error)
            ) from None
        try:
            _lock(fd)
        except OSError as error:
            os.close(fd)
            if error.errno in _BUSY:
                return False
            raise LockError(
                f"the folder of {self._path} gives no locks ({error.strerror}); choose a --state-dir on a local disk"
            ) from None
        if not self._is_current(fd):
            os.close(fd)  # removed between open and lock: whoever comes next would lock another file
            return self._try()
        self._fd, self._pid = fd, os.getpid()
        with suppress(OSError):  # only for people
            name_holder(fd)
        return True

    def _is_current(self, fd: int) -> bool:
        try:
            there, held = self._path.stat(), os.fstat(fd)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)

    def _holder(self) -> str:
        try:
            with self._path.open("rb") as file:
                file.seek(_HOLDER_AT)
                text = file.read(200).decode("ascii", "replace").strip()
        except OSError:
            return ""
        return f" ({text})" if text else ""

    def renew(self) -> None:
        """Take the lock again where somebody has removed its file.

        :raises LockHeldError: another run has taken it meanwhile.
        """
        if self._fd is not None and not self._is_current(self._fd):
            old, self._fd = self._fd, None
            try:
                self.acquire()
            finally:
                os.close(old)

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back.

        A process that has forked from ours and lives on must not hold it any longer, nor give it back for us.

        :param remove: whether the file goes too; safe, as :meth:`acquire` looks again at what it has locked.
        """
        if self._fd is not None:
            if self._pid == os.getpid():
                if remove:
                    with suppress(OSError):
                        self._path.unlink()
                with suppress(OSError):
                    _unlock(self._fd)
            os.close(self._fd)
            self._fd = None


def _lock(fd: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415  # Windows only

        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415  # not on Windows

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(fd: int) -> None:
    if sys.platform != "win32":  # there the end of the descriptor is that of the lock
        import fcntl  # noqa: PLC0415  # not on Windows

        fcntl.flock(fd, fcntl.LOCK_UN)
