"""Archives made by hand."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

from checkpoint_action.store import zstd

if TYPE_CHECKING:
    from pathlib import Path

END = bytes(1024)


def frame(data: bytes) -> bytes:
    packer = zstd.compressor(len(data))
    return packer.compress(data) + packer.flush()


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Members without the end of the tar stream."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
        return stream.getvalue()[: tar.offset]


def member(
    path: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE, target: str = "", prefix: str = "layers/build/"
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(prefix + path)
    info.type, info.size, info.linkname = kind, len(content), target
    return info, content


HEADER = frame(tar_of(member("checkpoint.json", b'{"format":1}', prefix="")))


def made(folder: Path, *layers: bytes, end: bytes = END) -> Path:
    """An archive of these tar streams."""
    path = folder / "archive"
    path.write_bytes(HEADER + b"".join(frame(layer) for layer in layers) + frame(end))
    return path
