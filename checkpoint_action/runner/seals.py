"""The outer form of the two files of a job's state: checksums, and what the one says in the form of the other.

Imports next to nothing, as ``status`` looks no further where all is well.
"""

from __future__ import annotations

import json
import zlib

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHECKSUM", "CRC", "FORMAT", "dump", "journal_of", "line", "unseal"]

FORMAT = 1
"""Number of the layout of both files; described in docs/state.md."""

CHECKSUM = b'"checksum": "'
"""What stands before the checksum at the end of a snapshot."""

CRC = b'{"crc":"'
"""What each line of a journal begins with."""


_ENCODER = json.JSONEncoder(separators=(",", ":"))


def dump(value: object) -> bytes:
    """A value as JSON in its shortest form."""
    return _ENCODER.encode(value).encode()


def unseal(data: bytes) -> tuple[bytes, bytes, bool]:
    """The body of a snapshot, what follows the word for its checksum, and whether the two fit."""
    body, mark, rest = data.rpartition(CHECKSUM)
    return body, rest, bool(mark) and rest[:8] == b"%08x" % zlib.crc32(body)


def line(sequence: int, rest: Mapping[str, object]) -> bytes:
    """A journal line: JSON that begins with the CRC-32 of all that follows it."""
    return _with_sum(dump({"format": FORMAT, "seq": sequence, **rest})[1:])


def journal_of(sequence: int, job: str, data: bytes) -> bytes:
    """The journal that says what a snapshot says, made of the snapshot's own text: faster than from its records.

    :param data: the snapshot. Of a file laid out in another way than ours, this makes something that is no journal.
    """
    rows = data.partition(b'"steps": {\n')[2].rpartition(b"\n},\n")[0]
    opening = b'"format":%d,"seq":%d,"record":' % (FORMAT, sequence)
    bodies = [opening + row.partition(b'": ')[2] + b"}" for row in rows.split(b",\n")] if rows else []
    return line(sequence, {"job": job} if job else {}) + b"".join(map(_with_sum, bodies))


def _with_sum(body: bytes) -> bytes:
    return b'%b%08x",%b\n' % (CRC, zlib.crc32(body), body)
