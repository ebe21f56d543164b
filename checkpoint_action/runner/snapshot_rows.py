"""A job's state read row by row, as there may be many: no more of its two files is held than what they say."""

from __future__ import annotations

import stat
from contextlib import ExitStack
from hashlib import sha256
from typing import IO, TYPE_CHECKING, NamedTuple

from checkpoint_action.runner.seals import Rows
from checkpoint_action.runner.statefile import Snapshot
from checkpoint_action.store.codec import record_of_many

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Digested", "Pair", "digest_of_file", "read_pair"]

_PIECE = 1 << 18


class Pair(NamedTuple):
    """A snapshot, and whether the journal beside it says the same.

    :param digests: of what the two held; of a journal that says something else, the second tells nothing.
    """

    snapshot: Snapshot
    settled: bool
    digests: tuple[bytes, bytes]


class Digested:
    """A file with a digest of what was read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = sha256()

    def readline(self) -> bytes:
        """The next line."""
        data = self._file.readline()
        self._digest.update(data)
        return data

    def read(self, size: int = -1) -> bytes:
        """The next bytes, or all that are left."""
        data = self._file.read(size)
        self._digest.update(data)
        return data

    def digest(self) -> bytes:
        """The digest of all that was read so far."""
        return self._digest.digest()


def read_pair(snapshot: Path, journal: Path) -> Pair | None:
    """What the two files say, where the snapshot is whole and laid out as we write it; else nothing.

    Whoever gets nothing looks closer, and says what is wrong.
    """
    try:
        with ExitStack() as files:
            first = Digested(files.enter_context(_opened(snapshot)))
            second = Digested(files.enter_context(_opened(journal))) if journal.exists() else None
            rows = Rows(first, second)
            known: dict[str, str] = {}
            records = {step: record_of_many(value, known, step) for step, value in rows}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    read = Snapshot(rows.sequence, records, rows.job)
    return Pair(read, rows.settled, (first.digest(), b"" if second is None else second.digest()))


def _opened(path: Path) -> IO[bytes]:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe in its place would keep us for ever
        raise OSError("is no file")
    return path.open("rb")


def digest_of_file(path: Path) -> bytes:
    """A digest of what a file holds; empty where there is none.

    :raises OSError: it cannot be read.
    """
    digest = sha256()
    try:
        with _opened(path) as file:
            while data := file.read(_PIECE):
                digest.update(data)
    except FileNotFoundError:
        return b""
    return digest.digest()
