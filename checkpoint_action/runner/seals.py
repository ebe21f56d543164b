"""The outer form of the two files of a job's state: checksums, and the rows of the one beside the lines of the other.

Imports next to nothing, as ``status`` looks no further where all is well.
"""

from __future__ import annotations

import json
import zlib

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    class Lines(Protocol):
        """As much of a file as is read here."""

        def readline(self) -> bytes: ...
        def read(self, size: int = -1, /) -> bytes: ...


__all__ = ["CHECKSUM", "CRC", "FORMAT", "Lines", "Rows", "dump", "line", "unseal"]

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


class Rows:
    """The rows of a snapshot that is laid out as we write it, one by one: there may be many.

    Whoever reads them believes none before the last: only then is it known whether the checksum fits.

    :param snapshot: at its beginning.
    :param journal: beside it, at its beginning; none is one that says something else.
    :ivar head: what stands above the rows, by name, each as its JSON text.
    :ivar settled: after the last row, whether the journal says the same and no more.
    :raises ValueError: it is laid out in another way, or damaged.
    """

    def __init__(self, snapshot: Lines, journal: Lines | None) -> None:
        self._snapshot, self._journal = snapshot, journal
        self._sum = 0
        self.head: dict[str, bytes] = {}
        if self._line() != b"{\n":
            raise ValueError("no snapshot")
        while (top := self._line()) != b'"steps": {\n':
            name, colon, value = top.partition(b'": ')
            if not colon or not name.startswith(b'"') or not value.endswith(b",\n"):
                raise ValueError("another layout")
            self.head[name[1:].decode()] = value[:-2]
        if self.head["format"] != b"%d" % FORMAT:
            raise ValueError("another format")
        self.sequence = _value_of(self.head["sequence"], int)
        self.job = _value_of(self.head["job"], str)
        self.settled = journal is not None
        self._compare(line(self.sequence, {"job": self.job} if self.job else {}))

    def _line(self) -> bytes:
        data = self._snapshot.readline()
        self._sum = zlib.crc32(data, self._sum)
        return data

    def _compare(self, wanted: bytes) -> None:
        if self.settled and self._journal is not None:
            self.settled = self._journal.readline() == wanted

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Each step with its record as a JSON value.

        :raises ValueError: it is laid out in another way, or damaged.
        """
        opening = b'"format":%d,"seq":%d,"record":' % (FORMAT, self.sequence)
        more = True
        while (row := self._line()) != b"},\n":
            if not more or not row.isascii():
                raise ValueError("another layout")
            more = row.endswith(b",\n")
            text = row[: -2 if more else -1]
            self._compare(_with_sum(opening + text.partition(b'": ')[2] + b"}"))
            yield from json.loads(b"{%b}" % text).items()
        sum_before = self._sum
        if self._snapshot.read(len(CHECKSUM) + 64) != CHECKSUM + b'%08x"\n}\n' % sum_before:
            raise ValueError("damaged")
        self._compare(b"")


def _value_of(text: bytes, kind: type) -> Any:
    value = json.loads(text)
    if type(value) is not kind:
        raise ValueError("another layout")
    return value


def _with_sum(body: bytes) -> bytes:
    return b'%b%08x",%b\n' % (CRC, zlib.crc32(body), body)
