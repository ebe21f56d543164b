"""A zip from a stranger into a folder.

Nothing is trusted: no name leads out of the folder, no link is made or followed, nothing grows past its limits, and
nothing is moved into place before all of it has been read and checked.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
import sys
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.errors import ProtocolError
from checkpoint_action.toolkit.exchange import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

__all__ = ["UnpackLimits", "move_in", "safe_path", "unpack"]

_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OverflowError, ValueError)
_IMPOSSIBLE = frozenset({errno.EINVAL, errno.ENAMETOOLONG, errno.EILSEQ})
"""Errors of the system that the zip alone is to blame for: a place in the file, or a name, that there cannot be."""
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_LOCAL_HEADER = 30
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LONGEST_COMMENT = 0xFFFF
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in "123456789¹²³")})


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """How much a zip may become.

    :param size: bytes of all files together. What the disk has no room for is refused besides.
    :param entries: files and folders.
    :param directory: bytes of the zip's list of entries, which is read into memory.
    """

    size: int = 64 * 1024**3
    entries: int = 500_000
    directory: int = 64 * 1024**2


def unpack(
    archive: Path, folder: Path, *, limits: UnpackLimits | None = None, check: Callable[[], None] = lambda: None
) -> tuple[Path, ...]:
    """Unpack the zip ``archive`` into ``folder``, over what is there, and return the files in the zip's order.

    Permission bits are restored, save writing for others than the owner; special bits are dropped.

    :param check: called now and then; what it raises ends the work, with ``folder`` untouched.
    :raises ProtocolError: the zip is damaged, or holds what must not be unpacked. ``folder`` is untouched.
    """
    limits = limits or UnpackLimits()
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder) as name:
        staging = Path(name)
        try:
            with archive.open("rb") as file:
                _check_directory(file, limits)
                with zipfile.ZipFile(file) as opened:
                    entries = _checked(opened, limits, room=shutil.disk_usage(staging).free)
                    for info, path in entries:
                        _extract(opened, info, staging / path, check)
        except _DAMAGE as error:
            raise ProtocolError(f"the artifact's zip is damaged: {error}") from error
        except OSError as error:
            if error.errno not in _IMPOSSIBLE:
                raise
            raise ProtocolError(f"the artifact's zip is damaged: {error.strerror}") from error
        paths = [path for info, path in entries if not info.is_dir()]
        move_in(staging, folder, paths, folders=[path for info, path in entries if info.is_dir()])
    return tuple(folder / path for path in paths)


def move_in(staging: Path, folder: Path, paths: Sequence[Path], *, folders: Sequence[Path] = ()) -> None:
    """Move the files ``paths`` from ``staging`` into ``folder``, over what is there, and make the empty ``folders``.

    :raises ProtocolError: a link or a file stands where a folder must be, or a folder where a file must be.
        Nothing has been moved then.
    """
    parents = dict.fromkeys(parent for path in paths for parent in reversed(path.parents) if parent.name)
    needed = {**parents, **dict.fromkeys(parent for path in folders for parent in (*reversed(path.parents), path))}
    for path in needed:
        if not _is_folder(folder / path, missing=True):
            raise ProtocolError(f"the artifact has a folder where there is something else: {path.as_posix()!r}")
    for path in paths:
        if _is_folder(folder / path, missing=False):
            raise ProtocolError(f"the artifact has a file where there is a folder: {path.as_posix()!r}")
    for path in needed:
        if path.name:
            (folder / path).mkdir(exist_ok=True)
    for path in paths:
        (staging / path).replace(folder / path)


def _check_directory(file: BinaryIO, limits: UnpackLimits) -> None:
    """Refuse a list of entries that is too long to be read: the reader takes it into memory whole."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - _LONGEST_COMMENT - _END.size - _END64_LOCATOR.size)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0:
        raise ProtocolError("the artifact's body is no zip")
    count, length = _END.unpack_from(tail, at)[4:6]
    before = at - _END64_LOCATOR.size
    if before >= 0 and tail[before : before + 4] == b"PK\x06\x07":
        file.seek(_END64_LOCATOR.unpack_from(tail, before)[2])
        record = file.read(_END64.size)
        if record[:4] == b"PK\x06\x06":
            count, length = _END64.unpack(record)[7:9]
    if count > limits.entries or length > limits.directory:
        raise ProtocolError(f"the artifact has more than {limits.entries} files, or a list of them that is too long")


def _checked(archive: zipfile.ZipFile, limits: UnpackLimits, *, room: int) -> list[tuple[zipfile.ZipInfo, Path]]:
    """All entries with their paths, when none of them is out of the ordinary."""
    infos = archive.infolist()
    if len(infos) > limits.entries:
        raise ProtocolError(f"the artifact has more than {limits.entries} files")
    total = sum(info.file_size for info in infos)
    if total > min(limits.size, room):
        raise ProtocolError(f"the artifact would become {total} bytes, more than is allowed or than the disk has room")
    end = archive.start_dir
    for info in sorted(infos, key=lambda info: info.header_offset, reverse=True):
        if info.header_offset + _LOCAL_HEADER + info.compress_size > end:
            raise ProtocolError("the artifact's zip has files that overlap")
        end = info.header_offset
    entries = []
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR} or (kind == stat.S_IFDIR and not info.is_dir()):
            raise ProtocolError(f"the artifact has something that is no file: {info.filename!r}")
        if info.flag_bits & 0x1 or info.compress_type not in _METHODS:
            raise ProtocolError(f"the artifact has a file that is encrypted or packed unusually: {info.filename!r}")
        entries.append((info, safe_path(info.filename)))
    return entries


def safe_path(name: str) -> Path:
    """The relative path that a name in a zip means.

    :raises ProtocolError: it leads elsewhere, or means something special on this system.
    """
    if sys.platform == "win32":
        name = name.replace("\\", "/")
    parts = [part for part in name.split("/") if part not in {"", "."}]
    bad = not parts or name.startswith("/") or ".." in parts or "\0" in name
    if sys.platform == "win32":
        bad = bad or any(
            part[-1] in ". "
            or part.split(".")[0].rstrip().lower() in _DEVICES
            or any(character in '<>:"|?*' or character < " " for character in part)
            for part in parts
        )
    if bad:
        raise ProtocolError(f"the artifact has a file that would land outside of its folder: {name!r}")
    return Path(*parts)


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, check: Callable[[], None]) -> None:
    mode = (info.external_attr >> 16) & 0o755 if info.create_system == 3 else 0
    try:
        if info.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        # Exclusively: no name may come twice, and on some file systems two names are one.
        with archive.open(info) as source, target.open("xb") as file:
            while piece := source.read(CHUNK):
                file.write(piece)
                check()
    except (FileExistsError, NotADirectoryError) as error:
        raise ProtocolError(f"the artifact has two files of one name: {info.filename!r}") from error
    if mode and sys.platform != "win32":
        target.chmod(mode | 0o600)


def _is_folder(path: Path, *, missing: bool) -> bool:
    """Whether ``path`` is a folder, and no link to one.

    :param missing: the answer where there is nothing.
    """
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return missing
