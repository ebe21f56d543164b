"""Archives made by hand."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

from checkpoint_action.store import zstd
from checkpoint_action.store.frames import note

if TYPE_CHECKING:
    from pathlib import Path

END = bytes(1024)


def frame(data: bytes) -> bytes:
    return zstd.compress(data)


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
    info.mode = {tarfile.DIRTYPE: 0o755, tarfile.SYMTYPE: 0o777}.get(kind, 0o644)
    return info, content


HEADER = frame(tar_of(member("checkpoint.json", b'{"format":1}', prefix="")))


BUILD = note(b"layer build")


def made(folder: Path, *pieces: bytes, end: bytes = END) -> Path:
    """An archive whose layer ``build`` has these pieces of a tar stream."""
    path = folder / "archive"
    path.write_bytes(HEADER + BUILD + b"".join(frame(piece) for piece in pieces) + frame(end))
    return path
