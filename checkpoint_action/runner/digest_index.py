"""Digests kept from run to run, so that ``--verify stat`` need not read again what has not changed since."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from checkpoint_action.runner.durable import replace_file
from checkpoint_action.runner.hashing import ContentDigests, LocalClock, never, stamp_of
from checkpoint_action.runner.scan import OURS
from checkpoint_action.store.folders import check_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["FORMAT", "FolderClock", "kept_digests", "read_index", "write_index"]

FORMAT = 1
"""Number of the layout of the file; described in docs/state.md."""

_TICK = 0.02  # seconds; twice the longest tick of a kernel's clock
_PAUSE = 0.001


def read_index(path: Path) -> dict[str, str]:
    """What an index knows: by path, a file's stamp followed by its digest.

    An index that is not there, damaged or of another format knows nothing.
    """
    try:
        check_owner(path.parent, [path])
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe in its place would keep us for ever
            return {}
        head, _, body = path.read_bytes().partition(b"\n")
        if head != _head(body):
            return {}
        fields = os.fsdecode(body).split("\0")
    except (OSError, ValueError):
        return {}
    return dict(zip(fields[:-1:2], fields[1::2], strict=True))


def write_index(path: Path, known: Mapping[str, str]) -> None:
    """Put an index in the place of the one that was there, readable by its owner only.

    :raises OSError: it cannot be written.
    """
    body = os.fsencode("".join(f"{name}\0{said}\0" for name, said in known.items()))
    replace_file(path, _head(body) + b"\n" + body)


def _head(body: bytes) -> bytes:
    return b"checkpoint-run index %d %s" % (FORMAT, hashlib.sha256(body).hexdigest().encode())


@contextmanager
def kept_digests(
    path: Path, cancelled: Callable[[], bool] = never, *, lost: Callable[[str], None]
) -> Iterator[ContentDigests]:
    """Digests that begin with what an index knows; what they know in the end becomes the index, however the block ends.

    :param path: the index. The caller holds the job's lock.
    :param cancelled: for :class:`ContentDigests`.
    :param lost: told when it cannot be written, which is no error: all is read again then.
    """
    known = read_index(path)
    before = dict(known)
    with FolderClock(path.parent) as clock:
        digests = ContentDigests(cancelled, known=known, clock=clock)
        try:
            yield digests
        finally:
            found = {**_still_so(known, digests.seen), **digests.seen}
            if found != before:
                try:
                    write_index(path, found)
                except OSError as error:
                    lost(f"cannot write {path}: {error.strerror}; the next run reads all files again")


def _still_so(known: Mapping[str, str], seen: Mapping[str, str]) -> dict[str, str]:
    """What is known of files that this run did not come to look at, as far as they are as they were."""
    found = {}
    for path, said in known.items():
        if path not in seen:
            with suppress(OSError, ValueError):
                if said.startswith(stamp_of(os.lstat(path))):
                    found[path] = said
    return found


class FolderClock:
    """The clock by which a file system dates changes, read off a nameless file of ours in one of its folders.

    A change never gets an earlier time than an earlier change to another file of the file system got, whatever clock
    that is, how far it is from ours and how coarse it is. So a file that is older than our own file was at its last
    change cannot change any more without its times telling. Files of other file systems go by :class:`LocalClock`.

    :param folder: must be writable, or all files go by :class:`LocalClock`.
    """

    def __init__(self, folder: Path) -> None:
        self._otherwise = LocalClock()
        self._file: IO[bytes] | None = None
        self._device = 0
        self._now = 0
        self._patient = True
        if os.utime in os.supports_fd:
            import tempfile  # noqa: PLC0415  # only what a run needs

            with suppress(OSError):
                file = tempfile.TemporaryFile(dir=folder, prefix=OURS, buffering=0)  # noqa: SIM115  # closed in __exit__
                self._file, self._device = file, os.fstat(file.fileno()).st_dev

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def passed(self, info: os.stat_result) -> bool:
        """Whether any change from now on gives the file other times than ``info`` has.

        Where that only takes the clock's next tick, wait for it: it is much shorter than reading the file again later.
        """
        if self._file is None or info.st_dev != self._device:
            return self._otherwise.passed(info)
        newest = max(info.st_mtime_ns, info.st_ctime_ns)
        if newest < self._now:
            return True
        try:
            self._now = self._ask(newest, self._file.fileno())
        except OSError:
            return False
        return newest < self._now

    def _ask(self, newest: int, fd: int) -> int:
        """What time it is now, or after the next tick where that makes it later than ``newest``."""
        first = now = _touched(fd)
        if newest >= now:
            now = _touched(fd)  # some kernels count finely, but only from the second look within a tick on
        if self._patient and 0 <= newest - now < _TICK * 1e9:
            end = time.monotonic() + _TICK
            last = False
            while newest >= now and not last:
                last = time.monotonic() >= end  # looked at before the wait, so that there is one after all of the tick
                time.sleep(_PAUSE)
                now = _touched(fd)
            self._patient = newest < now or now > first  # else the clock is coarser than a tick, and no wait helps
        return now


def _touched(fd: int) -> int:
    """Have a file changed now, and see what time that is, in nanoseconds."""
    os.utime(fd)
    info = os.fstat(fd)
    return min(info.st_mtime_ns, info.st_ctime_ns)
