"""The Zstandard frames of a file: found without decompressing them, read one at a time and never beyond a bound."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.errors import BundleError
from checkpoint_action.store import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Frame", "FrameReader", "frames"]

MAGIC = b"\x28\xb5\x2f\xfd"
CHUNK = 1 << 17
RLE, RESERVED = 1, 3


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a frame lies in its file."""

    offset: int
    size: int


def frames(file: BinaryIO) -> Iterator[Frame]:
    """Each frame of ``file`` in order. A file that ends inside a frame, or holds anything else, is a ``BundleError``.

    Only the frames' own framing is read (RFC 8878, 3.1.1), so a frame nobody asks for costs next to nothing.
    """
    end = file.seek(0, io.SEEK_END)
    offset = 0
    while offset < end:
        size = _frame_size(file, offset)
        if offset + size > end:
            raise BundleError("the archive is cut off")
        yield Frame(offset, size)
        offset += size


def _frame_size(file: BinaryIO, offset: int) -> int:
    file.seek(offset)
    if _exactly(file, 4) != MAGIC:
        raise BundleError("the archive holds something that is not a Zstandard frame")
    descriptor = _exactly(file, 1)[0]
    single_segment = descriptor >> 5 & 1
    if descriptor & 0b1011:  # a dictionary, or the reserved bit
        raise BundleError("the archive holds a Zstandard frame of an unknown kind")
    content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    position = offset + 5 + (1 - single_segment) + content_size
    last = False
    while not last:
        file.seek(position)
        header = int.from_bytes(_exactly(file, 3), "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == RESERVED:
            raise BundleError("the archive holds a damaged Zstandard block")
        position += 3 + (1 if kind == RLE else size)
    checksum = 4 if descriptor >> 2 & 1 else 0
    return position + checksum - offset


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise BundleError("the archive is cut off")
    return data


class FrameReader:
    """The content of one frame as a stream that is decompressed only as far as it is read.

    :param file: the archive, open and seekable; nobody else may move it while the reader is in use.
    """

    def __init__(self, file: BinaryIO, frame: Frame) -> None:
        self._file = file
        self._position = frame.offset
        self._end = frame.offset + frame.size
        self._zstd = zstd.decompressor()
        self._failure = zstd.failure()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes (above 0); empty only at the frame's end, once its checksum has been verified."""
        while not self._zstd.eof:
            data = b""
            if self._zstd.needs_input:
                self._file.seek(self._position)
                data = self._file.read(min(CHUNK, self._end - self._position))
                if not data:
                    raise BundleError("the archive is cut off")
                self._position += len(data)
            try:
                output = self._zstd.decompress(data, size)
            except self._failure as error:
                raise BundleError(f"the archive is damaged: {error}") from error
            if output:
                return output
        return b""

    def read_exactly(self, size: int) -> bytes:
        """``size`` bytes; a frame that has fewer is a ``BundleError``."""
        pieces = []
        while size > 0:
            piece = self.read(size)
            if not piece:
                raise BundleError("the archive ends in the middle of a member")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)
