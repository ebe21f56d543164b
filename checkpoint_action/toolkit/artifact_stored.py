"""A zip of one file that is kept as it is: what stands before and behind it, and where it begins.

Its sizes and checksum stand in front, so that a reader of a stream finds the end, and all in between is the file
itself, so that a part of it can be read without the rest.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from checkpoint_action.toolkit.errors import ProtocolError

__all__ = ["HEAD_LENGTH", "StoredEntry", "entry_at", "stored_zip"]

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_WIDE = struct.Struct("<2H2Q")
_WIDE_END = struct.Struct("<4sQ2H2L4Q")
_WIDE_LOCATOR = struct.Struct("<4sLQL")
_WIDE_FROM = 0xFFFF0000  # what stands behind the file begins after its end, and must be told in 32 bits too
_WIDE_FIELD = 0xFFFFFFFF
_EPOCH = (0, 0x21)  # 1980-01-01 00:00:00, the first moment that a zip can tell
_MODE = 0o100644 << 16
_PLAIN, _ZIP64 = 20, 45
_ON_UNIX = 3 << 8

HEAD_LENGTH = 256
"""Bytes at the beginning of a zip of ours that hold all that stands before the file."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """Where a file lies in a zip.

    :param offset: bytes before it.
    :param size: its own bytes.
    """

    offset: int
    size: int


def stored_zip(name: str, size: int, crc: int, *, wide_from: int = _WIDE_FROM) -> tuple[bytes, bytes]:
    """What stands before and behind the one file of a zip.

    :param name: ASCII, at most 100 characters.
    :param size: bytes of the file.
    :param crc: its CRC-32.
    :param wide_from: bytes from which lengths are written in 64 bits.
    """
    label = name.encode("ascii")
    wide = size >= wide_from
    told = _WIDE_FIELD if wide else size
    extra = _WIDE.pack(1, 16, size, size) if wide else b""
    version = _ZIP64 if wide else _PLAIN
    common = (version, 0, 0, *_EPOCH, crc, told, told, len(label), len(extra))
    head = _LOCAL.pack(b"PK\x03\x04", *common) + label + extra
    central = _CENTRAL.pack(b"PK\x01\x02", _ON_UNIX | version, *common, 0, 0, 0, _MODE, 0) + label + extra
    at = len(head) + size
    end = b""
    if wide:
        end = _WIDE_END.pack(b"PK\x06\x06", 44, _ON_UNIX | version, version, 0, 0, 1, 1, len(central), at)
        end += _WIDE_LOCATOR.pack(b"PK\x06\x07", 0, at + len(central), 1)
    end += _END.pack(b"PK\x05\x06", 0, 0, 1, 1, len(central), _WIDE_FIELD if wide else at, 0)
    return head, central + end


def entry_at(start: bytes) -> StoredEntry:
    """Where the first file of a zip lies, told from the zip's first :data:`HEAD_LENGTH` bytes.

    :raises ProtocolError: it is no zip, or the file is not kept as it is.
    """
    if len(start) < _LOCAL.size or start[:4] != b"PK\x03\x04":
        raise ProtocolError("the artifact is no zip")
    _sign, _version, flags, method, _time, _date, _crc, size, whole, label, extra = _LOCAL.unpack_from(start)
    offset = _LOCAL.size + label + extra
    if flags & 0x9 or method != 0 or size != whole or offset > len(start):
        raise ProtocolError("the artifact's file is packed in another way")
    if size == _WIDE_FIELD:
        size = _wide_size(start[_LOCAL.size + label : offset])
    return StoredEntry(offset, size)


def _wide_size(extra: bytes) -> int:
    if len(extra) < _WIDE.size or _WIDE.unpack_from(extra)[:2] != (1, 16):
        raise ProtocolError("the artifact's zip does not tell how long its file is")
    return int(_WIDE.unpack_from(extra)[2])
