"""Layers and what is known of them as one file, and back.

An archive is a row of Zstandard frames that together form one valid tar stream, so ``tar --zstd -xf`` opens it: first
the member ``checkpoint.json`` (the header) in a frame of its own, then for each layer a note with its name (a skippable
frame) and the frames of its members ``layers/<layer>/<path>``, then a frame with the end of the tar stream. A reader
learns everything from the first frame and passes over the layers that it does not want.
"""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import BundleError
from checkpoint_action.store import zstd
from checkpoint_action.store.atomic import replacing
from checkpoint_action.store.bundle_pack import pack_layer
from checkpoint_action.store.bundle_unpack import unpack_layer
from checkpoint_action.store.frames import CutOffError, content, frame_at, frames
from checkpoint_action.store.tarstream import BLOCK, member_header, padding, size_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

__all__ = [
    "END_FRAME",
    "FORMAT",
    "HEADER",
    "LONGEST_HEADER",
    "Short",
    "header_frame",
    "pack_layer",
    "parse_header",
    "read_header",
    "unpack_layer",
    "write_archive",
]

FORMAT = 1
HEADER = "checkpoint.json"
LONGEST_HEADER = 64 << 20
END_FRAME = b"\x28\xb5\x2f\xfd\x60\x00\x03\x03\x20\x00\x00"
"""The last frame of every archive: the end of a tar stream, 1024 zeros, as one block of one byte repeated."""

COPY = 1 << 20


def header_frame(header: Mapping[str, Any]) -> bytes:
    """The first frame of an archive. With layers that :func:`pack_layer` wrote and :data:`END_FRAME` it is complete.

    :param header: a JSON object; the format's number is added to it.
    """
    text = json.dumps({"format": FORMAT} | dict(header) | {"format": FORMAT}, ensure_ascii=True, separators=(",", ":"))
    data = text.encode("ascii")
    return zstd.compress(member_header(HEADER, "file", size=len(data)) + data + bytes(padding(len(data))))


def write_archive(header: Mapping[str, Any], layer_files: Sequence[Path], target: Path) -> None:
    """Join ``header`` and the files that :func:`pack_layer` wrote into the archive ``target``, complete or not there.

    :param header: a JSON object; the format's number is added to it.
    """
    try:
        with replacing(target, durable=True) as file:
            file.write(header_frame(header))
            for path in layer_files:
                with path.open("rb") as layer:
                    if [row.note is not None for row in frames(layer)].count(True) != 1:
                        raise BundleError(f"{path.name} is not a packed layer")
                    layer.seek(0)
                    shutil.copyfileobj(layer, file, COPY)
            file.write(END_FRAME)
    except OSError as error:
        raise BundleError(f"cannot write the archive {target.name}: {error}") from error


def read_header(archive: Path, limit: int = LONGEST_HEADER) -> dict[str, Any]:
    """The header of ``archive``; only its first frame is read. Anything unexpected is a ``BundleError``.

    :param limit: bytes that a header may have.
    """
    try:
        with archive.open("rb") as file:
            return _header(file, limit)
    except OSError as error:
        raise BundleError(f"cannot read the archive {archive.name}: {error}") from error


@dataclass(frozen=True, slots=True)
class Short:
    """The first bytes of an archive are too few for its header.

    :param needed: bytes from its beginning that there must be at least; more may turn out to be needed then.
    """

    needed: int


def parse_header(data: bytes, limit: int = LONGEST_HEADER) -> dict[str, Any] | Short:
    """What :func:`read_header` gives, from the first bytes of an archive; whatever follows the header is not looked at.

    :param limit: bytes that a header may have.
    :returns: a :class:`Short` where the bytes end before the header does.
    :raises BundleError: it is no archive of ours, whatever may follow.
    """
    if not data:
        return Short(1)
    try:
        return _header(io.BytesIO(data), limit)
    except CutOffError as error:
        return Short(error.needed)


def _header(file: BinaryIO, limit: int) -> dict[str, Any]:
    end = file.seek(0, io.SEEK_END)
    if not end:
        raise BundleError("the archive is empty")
    data = _header_text(content(file, frame_at(file, 0, end), 2 * BLOCK + limit), limit)
    try:
        header = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"the archive's header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise BundleError("the archive's header is not a JSON object")
    number = header.get("format")
    if type(number) is not int or number != FORMAT:
        raise BundleError(f"the archive has format {number!r:.40}, and this version reads format {FORMAT}")
    return header


def _header_text(stream: bytes, limit: int) -> bytes:
    size = size_in(stream[:BLOCK])
    if size < 0 or stream[:BLOCK] != member_header(HEADER, "file", size=size):
        raise BundleError(f"the archive does not start with {HEADER}")
    if size > limit:
        raise BundleError(f"the archive's header has {size} bytes, more than the {limit} allowed")
    if len(stream) != BLOCK + size + padding(size):
        raise BundleError("the archive's header has not the size that it says")
    return stream[BLOCK : BLOCK + size]
