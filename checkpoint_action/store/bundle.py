"""Layers and what is known of them as one file, and back.

An archive is a row of Zstandard frames that together form one valid tar stream, so ``tar --zstd -xf`` opens it: first
the member ``checkpoint.json`` (the header), then a frame for each layer with its members ``layers/<layer>/<path>``,
then the end of the tar stream. A reader learns everything from the first frame and skips the layers it does not want.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import BundleError
from checkpoint_action.store import zstd
from checkpoint_action.store.atomic import replacing
from checkpoint_action.store.bundle_pack import pack_layer
from checkpoint_action.store.bundle_unpack import unpack_layer
from checkpoint_action.store.frames import FrameReader, frames
from checkpoint_action.store.tarstream import END, Member, member_header, members, padding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["FORMAT", "HEADER", "pack_layer", "read_header", "unpack_layer", "write_archive"]

FORMAT = 1
HEADER = "checkpoint.json"
LONGEST_HEADER = 64 << 20
COPY = 1 << 20


def write_archive(header: Mapping[str, Any], layer_files: Sequence[Path], target: Path) -> None:
    """Join ``header`` and the frames that :func:`pack_layer` wrote into the archive ``target``, complete or not there.

    :param header: a JSON object; the format's number is added to it.
    """
    text = json.dumps({"format": FORMAT} | dict(header) | {"format": FORMAT}, ensure_ascii=True, separators=(",", ":"))
    data = text.encode("ascii")
    first = member_header(Member(HEADER, "file", len(data))) + data + bytes(padding(len(data)))
    try:
        with replacing(target, durable=True) as file:
            file.write(_frame(first))
            for path in layer_files:
                with path.open("rb") as layer:
                    if len(list(frames(layer))) != 1:
                        raise BundleError(f"{path.name} is not a packed layer")
                    layer.seek(0)
                    shutil.copyfileobj(layer, file, COPY)
            file.write(_frame(END))
    except OSError as error:
        raise BundleError(f"cannot write the archive {target.name}: {error}") from error


def read_header(archive: Path, limit: int = LONGEST_HEADER) -> dict[str, Any]:
    """The header of ``archive``; only its first frame is read. Anything unexpected is a ``BundleError``.

    :param limit: bytes that a header may have.
    """
    try:
        with archive.open("rb") as file:
            frame = next(frames(file), None)
            if frame is None:
                raise BundleError("the archive is empty")
            data = _header_text(FrameReader(file, frame), limit)
    except OSError as error:
        raise BundleError(f"cannot read the archive {archive.name}: {error}") from error
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


def _header_text(stream: FrameReader, limit: int) -> bytes:
    member = next(members(stream), None)
    if member is None or member.name != HEADER or member.type != "file":
        raise BundleError(f"the archive does not start with {HEADER}")
    if member.size > limit:
        raise BundleError(f"the archive's header has {member.size} bytes, more than the {limit} allowed")
    data = stream.read_exactly(member.size + padding(member.size))[: member.size]
    if stream.read(1):
        raise BundleError("the archive's header is followed by something in its own frame")
    return data


def _frame(data: bytes) -> bytes:
    packer = zstd.compressor(len(data))
    return packer.compress(data) + packer.flush()
