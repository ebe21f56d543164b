"""The few tar members that an archive may hold, written and read one block at a time."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from checkpoint_action.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checkpoint_action.store.frames import FrameReader

__all__ = ["BLOCK", "END", "Member", "member_header", "members", "padding"]

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
"""What ends a tar stream."""

LONGEST_NAME = 1 << 16
TYPES: dict[bytes, Literal["file", "dir", "link"]] = {
    tarfile.REGTYPE: "file",
    tarfile.AREGTYPE: "file",
    tarfile.DIRTYPE: "dir",
    tarfile.SYMTYPE: "link",
}
FLAGS = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


@dataclass(frozen=True, slots=True)
class Member:
    """One member: what its header says of it."""

    name: str
    type: Literal["file", "dir", "link"]
    size: int = 0
    target: str = ""


def member_header(member: Member, *, mode: int = 0o644, mtime: int = 0) -> bytes:
    """The GNU tar header of ``member``; names become bytes as they are (UTF-8 and surrogate escapes)."""
    info = tarfile.TarInfo(member.name)
    info.type = FLAGS[member.type]
    info.size = member.size
    info.linkname = member.target
    info.mode = mode
    info.mtime = mtime
    try:
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    except (ValueError, OverflowError) as error:  # UnicodeEncodeError is a ValueError
        raise BundleError(f"{member.name!r} does not fit into a tar header: {error}") from error


def padding(size: int) -> int:
    """Bytes between the end of a member of ``size`` bytes and the next header."""
    return -size % BLOCK


def members(stream: FrameReader) -> Iterator[Member]:
    """Each member of ``stream``. Whoever takes a file reads its content *and* its padding before asking for the next.

    Anything but plain files, folders and links (devices, pipes, hard links, sparse files …) is a ``BundleError``.
    """
    while info := _next_header(stream):
        long: dict[bytes, str] = {}
        while info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            if info.type in long:
                raise BundleError("a member of the archive has two long names")
            long[info.type] = _long_name(stream, info.size)
            following = _next_header(stream)
            if following is None:
                raise BundleError("the archive ends in the middle of a member")
            info = following
        yield _member(info, long)


def _member(info: tarfile.TarInfo, long: dict[bytes, str]) -> Member:
    name = long.get(tarfile.GNUTYPE_LONGNAME, info.name)
    kind = TYPES.get(info.type)
    if kind is None:
        raise BundleError(f"member {name!r} is neither a file nor a folder nor a link")
    if info.size < 0 or (kind != "file" and info.size):
        raise BundleError(f"member {name!r} has an impossible size")
    target = long.get(tarfile.GNUTYPE_LONGLINK, info.linkname) if kind == "link" else ""
    if kind == "dir" and name.endswith("/"):
        name = name[:-1]
    return Member(name, kind, info.size, target)


def _next_header(stream: FrameReader) -> tarfile.TarInfo | None:
    start = stream.read(BLOCK)
    if not start:
        return None
    block = start + stream.read_exactly(BLOCK - len(start))
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise BundleError(f"the archive holds a damaged tar header: {error}") from error


def _long_name(stream: FrameReader, size: int) -> str:
    if not 0 < size <= LONGEST_NAME:
        raise BundleError("a member of the archive has an over-long name")
    data = stream.read_exactly(size + padding(size))[:size]
    data = data.removesuffix(b"\0")
    if b"\0" in data:
        raise BundleError("a member of the archive has a NUL in its name")
    return data.decode("utf-8", "surrogateescape")
