"""The few tar members that an archive may hold, as bytes.

There is one way only to write each of them, so reading is comparing with what must be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["BLOCK", "END", "member_header", "padding", "size_in"]

BLOCK = 512
END = bytes(2 * BLOCK)
"""What ends a tar stream."""

NAME = 100  # bytes of a name that a header has room for
SIZE = slice(124, 136)
FLAGS = {"file": b"0", "dir": b"5", "link": b"2"}
LONG_NAME, LONG_TARGET = b"L", b"K"
MARK = b"ustar  \0"  # GNU's kind of tar
NOBODY = b"0000000\0" * 2  # owner and group
OCTAL = 8**11
FIXED_SUM = sum(MARK) + 8 * ord(" ")  # the sum's own field counts as spaces
REST = MARK.ljust(BLOCK - 257, b"\0")


def member_header(
    name: str,
    kind: Literal["file", "dir", "link"],
    *,
    size: int = 0,
    target: str = "",
    mode: int = 0o644,
    mtime: int = 0,
) -> bytes:
    """The GNU tar header of a member; names become bytes as they are (UTF-8 and surrogate escapes).

    :param size: bytes of a file's content.
    :param target: what a link points at.
    :param mtime: whole seconds since the epoch.
    """
    try:
        raw_name = name.encode("utf-8", "surrogateescape")
        raw_target = target.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BundleError(f"{name!r} does not fit into a tar header: {error}") from error
    if kind == "dir":
        raw_name += b"/"
    block = _block(raw_name, FLAGS[kind], (mode, size, mtime), raw_target)
    if len(raw_target) > NAME:
        block = _long(raw_target, LONG_TARGET) + block
    return _long(raw_name, LONG_NAME) + block if len(raw_name) > NAME else block


def _block(name: bytes, flag: bytes, said: tuple[int, int, int], target: bytes) -> bytes:
    name, target = name[:NAME], target[:NAME]
    mode, size, mtime = said
    numbers = b"%07o\0%b%b%b" % (mode, NOBODY, _number(size), _number(mtime))
    total = FIXED_SUM + sum(name) + sum(numbers) + flag[0] + sum(target)
    return b"%b%b%06o\0 %b%b%b" % (name.ljust(NAME, b"\0"), numbers, total, flag, target.ljust(NAME, b"\0"), REST)


def _number(value: int) -> bytes:
    if 0 <= value < OCTAL:
        return b"%011o\0" % value
    return (b"\x80" if value >= 0 else b"\xff") + value.to_bytes(11, "big", signed=True)


def _long(text: bytes, flag: bytes) -> bytes:
    data = text + b"\0"
    return _block(b"././@LongLink", flag, (0, len(data), 0), b"") + data + bytes(padding(len(data)))


def padding(size: int) -> int:
    """Bytes between the end of a member of ``size`` bytes and the next header."""
    return -size % BLOCK


def size_in(header: bytes) -> int:
    """The size that a file's header tells; -1 where it tells none."""
    try:
        return int(header[SIZE].rstrip(b"\0"), 8)
    except ValueError:
        return -1
