"""Files into a zip that is made while it is sent: nothing is seeked, nothing is kept but the piece at hand."""

from __future__ import annotations

import os
import stat
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.artifact_messages import check_path
from checkpoint_action.toolkit.errors import InputError, ToolkitError
from checkpoint_action.toolkit.exchange import CHUNK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["ZipEntry", "read_file", "zip_entries", "zip_pieces"]

_ZIP64_FROM = 1024**3  # half of what the old format takes: a file may grow while it is read
_LEVEL = "compress_level" if sys.version_info >= (3, 13) else "_compresslevel"


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file, or an empty folder, and its path in the zip."""

    source: Path
    path: str
    folder: bool


def zip_entries(files: Iterable[str | os.PathLike[str]], root: str | os.PathLike[str]) -> list[ZipEntry]:
    """What ``files`` become in a zip whose top is the folder ``root``, in their order.

    A link to a file becomes the file. A folder stands for itself alone, not for what is in it.

    :raises InputError: a file is missing, not below ``root``, neither file nor folder, or has a name that no
        artifact takes.
    """
    top = _absolute(root)
    if not top.is_dir():
        raise InputError(f"the root directory of an artifact is no folder: {root}")
    entries: dict[str, ZipEntry] = {}
    for file in files:
        source = _absolute(file)
        try:
            path = source.relative_to(top).as_posix()
        except ValueError:
            raise InputError(f"{file} is not below the root directory {root}") from None
        try:
            mode = source.stat().st_mode
            folder = stat.S_ISDIR(source.lstat().st_mode)
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror or error}") from error
        if not folder and not stat.S_ISREG(mode):
            raise InputError(f"{file} is no regular file")
        if folder and path == ".":
            continue
        check_path(path)
        entries.setdefault(path, ZipEntry(source, path, folder))
    return list(entries.values())


def zip_pieces(entries: Iterable[ZipEntry], *, level: int = 6, zip64_from: int = _ZIP64_FROM) -> Iterator[bytes]:
    """The bytes of a zip of ``entries``, piece by piece, while their files are read.

    Times and permission bits are kept as zips keep them: to two seconds, and where the reader looks for them.
    Contents are always deflated, with level 0 too: only so can a reader that gets the zip as a stream find their ends.

    :param level: 0 (as they are) to 9.
    :param zip64_from: bytes of a file from which its sizes are written in 64 bits. A smaller one may grow to less than
        twice that while it is read.
    :raises ToolkitError: a file cannot be read, or grows more.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        for entry in entries:
            try:
                info = zipfile.ZipInfo.from_file(entry.source, entry.path, strict_timestamps=False)
                if entry.folder:
                    archive.writestr(info, b"")
                    continue
                info.compress_type = zipfile.ZIP_DEFLATED
                setattr(info, _LEVEL, level)
                wide, size = info.file_size >= zip64_from, 0
                with entry.source.open("rb") as file, archive.open(info, "w", force_zip64=wide) as target:
                    while piece := file.read(CHUNK):
                        size += len(piece)
                        if not wide and size >= 2 * zip64_from:
                            raise ToolkitError(f"{entry.source} grew too much while it was read")
                        target.write(piece)
                        yield from sink.take()
            except OSError as error:
                raise ToolkitError(f"cannot read {entry.source}: {error.strerror or error}") from error
    yield from sink.take()


def read_file(path: Path) -> Iterator[bytes]:
    """The bytes of a file, piece by piece.

    :raises ToolkitError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            while piece := file.read(CHUNK):
                yield piece
    except OSError as error:
        raise ToolkitError(f"cannot read {path}: {error.strerror or error}") from error


def _absolute(path: str | os.PathLike[str]) -> Path:
    """The path without ``..``, and with its links left as they are."""
    return Path(os.path.normpath(Path(path).absolute()))


class _Sink:
    """What a zip is written to: it can neither seek nor tell, so that the zip is made in one pass."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""

    def take(self) -> Iterator[bytes]:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        yield from pieces
