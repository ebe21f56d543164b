"""A long stream as pieces of some MiB that threads compress or decompress side by side, in little memory."""

from __future__ import annotations

import os
import sys
from collections import deque
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.errors import BundleError
from checkpoint_action.store import zstd
from checkpoint_action.store.frames import raw
from checkpoint_action.store.memory import keep_large_blocks
from checkpoint_action.store.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from checkpoint_action.store.frames import Frame

__all__ = ["LONGEST_PIECE", "PIECE", "PieceReader", "PieceWriter"]

PIECE = 2 << 20
"""Bytes of a piece that we write: as far as the compressor looks back at most."""

LONGEST_PIECE = 4 << 20
"""Bytes of a piece that we read."""

AT_ONCE = 1 << 19
"""Bytes read at once, so that hashing them begins while more is read."""


class _Piece:
    """Room for a piece, and what has to end before it may be filled again."""

    def __init__(self) -> None:
        self.room = memoryview(bytearray(PIECE))
        self.size = 0
        self.hashes: deque[Future[None]] = deque()
        self.frame: Future[bytes] = Future()


class PieceWriter:
    """Writes a stream to a file as frames. Used as a context manager; leaving it ends its threads.

    :param file: unbuffered.
    :param first: bytes that go in front.
    :param grown: told how many bytes the file has, each time that it has more.
    """

    def __init__(self, file: BinaryIO, first: bytes, grown: Callable[[int], None] | None) -> None:
        keep_large_blocks()
        self._file = file
        self._grown = grown
        self._written = 0
        self._workers = Workers()
        self._hasher = Workers(1)  # a digest takes its bytes in order
        self._packers: SimpleQueue[Callable[[bytes | memoryview], bytes]] = SimpleQueue()
        for _ in range(self._workers.width):
            self._packers.put(zstd.compressor())
        self._busy: deque[_Piece] = deque()
        self._piece = _Piece()
        self._append(first)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._workers.__exit__(kind, error, trace)
        finally:
            self._hasher.__exit__(kind, error, trace)

    def write(self, data: bytes) -> None:
        """Take some bytes of the stream."""
        piece = self._piece
        end = piece.size + len(data)
        if end < PIECE:  # nearly always
            piece.room[piece.size : end] = data
            piece.size = end
            return
        fits = PIECE - piece.size
        piece.room[piece.size :] = data[:fits]
        piece.size = PIECE
        self._pass_on()
        if len(data) > fits:
            self.write(data[fits:])

    def read_from(self, number: int, size: int, update: Callable[[memoryview], None]) -> int:
        """Take at most ``size`` bytes (above 0) of the stream from an open file; how many it was, 0 at the file's end.

        :param update: takes them too, in their order, in another thread.
        """
        piece = self._piece
        end = min(piece.size + size, piece.size + AT_ONCE, PIECE)
        part = piece.room[piece.size : end]
        got = _read_into(number, part)
        if got:
            piece.hashes.append(self._hasher.start(update, part[:got]))
            piece.size += got
            if piece.size == PIECE:
                self._pass_on()
        return got

    def hash(self, check: Callable[[], None]) -> None:
        """Make a call after all that was hashed so far; what it raises comes out of a later call here."""
        self._piece.hashes.append(self._hasher.start(check))

    def finish(self) -> None:
        """Have everything in the file."""
        if self._piece.size:
            self._compress(self._piece)
        else:
            _settle(self._piece)
        while self._busy:
            self._write_oldest()

    def _pass_on(self) -> None:
        """Have the full piece compressed, and go on with an empty one."""
        self._compress(self._piece)
        self._piece = self._write_oldest() if len(self._busy) > self._workers.width + 1 else _Piece()

    def _compress(self, piece: _Piece) -> None:
        part = piece.room[: piece.size]

        def work() -> bytes:
            packer = self._packers.get()
            try:
                return packer(part)
            finally:
                self._packers.put(packer)

        piece.frame = self._workers.start(work)
        self._busy.append(piece)

    def _write_oldest(self) -> _Piece:
        """Write the oldest piece when it is ready; it is empty then."""
        piece = self._busy.popleft()
        frame = piece.frame.result()
        _settle(piece)  # nothing of what is not as it must be is told to anybody
        self._append(frame)
        piece.size = 0
        return piece

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._written += len(data)
        if self._grown is not None:
            self._grown(self._written)


def _settle(piece: _Piece) -> None:
    """Wait until the piece is hashed, and raise what that has raised."""
    while piece.hashes:
        piece.hashes.popleft().result()


def _read_into(number: int, part: memoryview) -> int:
    if sys.platform != "win32":
        return os.readv(number, [part])
    else:  # noqa: RET505 - the type checker follows this form
        data = os.read(number, len(part))
        part[: len(data)] = data
        return len(data)


class PieceReader:
    """What some frames of a file hold as one stream, decompressed a little ahead of whoever reads it.

    :param file: open and seekable; nobody else may move it while the reader is in use.
    :param rows: the frames. One that holds more than :data:`LONGEST_PIECE` is a ``BundleError`` when its turn comes.
    :param workers: what decompresses.
    """

    def __init__(self, file: BinaryIO, rows: Sequence[Frame], workers: Workers) -> None:
        keep_large_blocks()
        self._file = file
        self._rows = deque(rows)
        self._workers = workers
        self._ahead: deque[Future[bytes]] = deque()
        self._piece = memoryview(b"")

    def take(self, size: int) -> memoryview:
        """Exactly ``size`` bytes, few of them."""
        if size <= len(self._piece):
            data = self._piece[:size]
            self._piece = self._piece[size:]
            return data
        return memoryview(b"".join(self.parts(size)))

    def parts(self, size: int) -> Iterator[memoryview]:
        """Exactly ``size`` bytes, piece by piece."""
        while size:
            if not self._piece and not self._next():
                raise BundleError("the archive's layer ends too early")
            data = self._piece[:size]
            self._piece = self._piece[size:]
            size -= len(data)
            yield data

    def ended(self) -> bool:
        """Whether the stream has no more bytes."""
        return not self._piece and not self._next()

    def _next(self) -> bool:
        """Go on to the next piece that has something in it, if there is one."""
        while not self._piece:
            while self._rows and len(self._ahead) <= self._workers.width:
                frame = self._rows.popleft()
                self._ahead.append(
                    self._workers.start(zstd.decompress, raw(self._file, frame, LONGEST_PIECE), frame.content)
                )
            if not self._ahead:
                return False
            self._piece = memoryview(self._ahead.popleft().result())
        return True
