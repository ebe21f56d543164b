"""The Zstandard frames of a file: found without decompressing them, and decompressed one at a time within a bound.

A frame of content is one as RFC 8878, 3.1.1 has it that says how many bytes it holds. A note is a skippable frame
(3.1.2), which every reader of Zstandard passes over: a text of ours beside the content.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.errors import BundleError
from checkpoint_action.store import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CutOffError", "Frame", "content", "frame_at", "frames", "note", "raw"]

MAGIC = b"\x28\xb5\x2f\xfd"
NOTE_MAGIC = b"\x5c\x2a\x4d\x18"
LONGEST_NOTE = 1 << 12
RLE, RESERVED = 1, 3
CHECKSUM_SIZE = 4


class CutOffError(BundleError):
    """The bytes end inside a frame.

    :ivar needed: how many from their beginning there must be at least.
    """

    def __init__(self, needed: int) -> None:
        super().__init__("the archive is cut off")
        self.needed = needed


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a frame lies in its file.

    :param size: bytes that it takes there.
    :param content: bytes that it holds decompressed, as it says itself; 0 for a note.
    :param note: what a note says, ``None`` for a frame of content.
    """

    offset: int
    size: int
    content: int
    note: bytes | None = None


def note(text: bytes) -> bytes:
    """A note as it stands in a file."""
    return NOTE_MAGIC + len(text).to_bytes(4, "little") + text


def frames(file: BinaryIO) -> Iterator[Frame]:
    """Each frame of ``file`` in order. A file that ends inside a frame, or holds anything else, is a ``BundleError``.

    Only the frames' own framing is read, so a frame nobody asks for costs next to nothing.
    """
    end = file.seek(0, io.SEEK_END)
    offset = 0
    while offset < end:
        frame = frame_at(file, offset, end)
        yield frame
        offset += frame.size


def frame_at(file: BinaryIO, offset: int, end: int) -> Frame:
    """The frame that begins at ``offset``.

    :param end: how many bytes the file has.
    :raises CutOffError: it does not end within them.
    :raises BundleError: it is no frame, or of a kind that we do not write.
    """
    magic = _exactly(file, offset, 4)
    if magic == NOTE_MAGIC:
        return _note_at(file, offset)
    if magic != MAGIC:
        raise BundleError("the archive holds something that is not a Zstandard frame")
    descriptor = _exactly(file, offset + 4, 1)[0]
    single_segment = descriptor >> 5 & 1
    if descriptor & 0b1011:  # a dictionary, or the reserved bit
        raise BundleError("the archive holds a Zstandard frame of an unknown kind")
    size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    if not size_bytes:
        raise BundleError("the archive holds a Zstandard frame that does not say its size")
    position = offset + 5 + (1 - single_segment)
    content = int.from_bytes(_exactly(file, position, size_bytes), "little") + (256 if size_bytes == 2 else 0)
    position += size_bytes
    last = False
    while not last:
        header = int.from_bytes(_exactly(file, position, 3), "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == RESERVED:
            raise BundleError("the archive holds a damaged Zstandard block")
        position += 3 + (1 if kind == RLE else size)
    position += CHECKSUM_SIZE if descriptor >> 2 & 1 else 0
    if position > end:
        raise CutOffError(position)
    return Frame(offset, position - offset, content)


def _note_at(file: BinaryIO, offset: int) -> Frame:
    size = int.from_bytes(_exactly(file, offset + 4, 4), "little")
    if size > LONGEST_NOTE:
        raise BundleError("the archive holds a note that is too long")
    return Frame(offset, 8 + size, 0, _exactly(file, offset + 8, size))


def _exactly(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    data = file.read(size)
    if len(data) != size:
        raise CutOffError(offset + size)
    return data


def raw(file: BinaryIO, frame: Frame, limit: int) -> bytes:
    """A frame of content as it stands in the file.

    :param limit: bytes that it may hold decompressed.
    :raises BundleError: it is a note, or says that it holds more.
    """
    if frame.note is not None:
        raise BundleError("the archive has a note where there must be content")
    if frame.content > limit:
        raise BundleError(f"the archive has a Zstandard frame of {frame.content} bytes, more than the {limit} allowed")
    return _exactly(file, frame.offset, frame.size)


def content(file: BinaryIO, frame: Frame, limit: int) -> bytes:
    """What a frame of content holds; ``limit`` as for :func:`raw`."""
    return zstd.decompress(raw(file, frame, limit), frame.content)
