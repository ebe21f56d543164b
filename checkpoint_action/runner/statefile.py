"""The two files of a job's state as bytes: a snapshot for everything, a journal line for each transition."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import Kind, StateError
from checkpoint_action.model import Record, Status
from checkpoint_action.runner import seals
from checkpoint_action.runner.seals import CHECKSUM, CRC, FORMAT, dump
from checkpoint_action.store.codec import record_from_json, record_of_many, record_to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from checkpoint_action.runner.seals import Lines

__all__ = [
    "FORMAT",
    "DamagedError",
    "JournalReader",
    "Snapshot",
    "forgetting_line",
    "journal_line",
    "read_snapshot",
    "snapshot_pieces",
    "write_snapshot",
]

_SIGNS = (CRC, b'"format":', b'"seq":', b'"record":')
"""What each journal line has once, so that lines whose ends are gone can still be counted."""
_SECTOR = 512
"""Bytes that a disk writes all or none of; larger sectors are multiples of it."""
_HEAD = re.compile(re.escape(CRC) + b'[0-9a-f]{8}",')
_MOST_TRIED = 10_000
"""Beginnings of lines within a damaged line that turn out to be none: what follows so many is given up, as each costs
as much as there is before it."""
_PLAIN = bytes(range(32, 127))
"""The bytes that we write."""


class DamagedError(Exception):
    """Bytes that are not what was once written."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All records as of a sequence number."""

    sequence: int
    records: Mapping[str, Record]
    job: str = field(default="", compare=False)


def write_snapshot(job: str, snapshot: Snapshot, order: tuple[str, Sequence[str]] | None = None) -> bytes:
    """The snapshot file: JSON, one record a line, closed by a checksum of all before it.

    :param order: the mark of the job file, and the ids of its steps; no part of the state.
    """
    return b"".join(snapshot_pieces(job, snapshot, order))


def snapshot_pieces(job: str, snapshot: Snapshot, order: tuple[str, Sequence[str]] | None = None) -> Iterator[bytes]:
    """What :func:`write_snapshot` gives, piece by piece: there may be many records."""
    total = 0
    for piece in _snapshot_body(job, snapshot, order):
        total = zlib.crc32(piece, total)
        yield piece
    yield CHECKSUM + b'%08x"\n}\n' % total


def _snapshot_body(job: str, snapshot: Snapshot, order: tuple[str, Sequence[str]] | None) -> Iterator[bytes]:
    yield b'{\n"format": %d,\n"job": %s,\n"sequence": %d,\n' % (FORMAT, dump(job), snapshot.sequence)
    if order:
        yield b'"job_file": %s,\n"order": %s,\n' % (dump(order[0]), dump(order[1]))
    yield b'"steps": {'
    between = b"\n"
    for step, record in snapshot.records.items():
        yield between + dump(step) + b": " + dump(record_to_json(record))
        between = b",\n"
    yield b"\n},\n"


def read_snapshot(data: bytes, name: str) -> Snapshot:
    """What :func:`write_snapshot` wrote.

    :param name: the file's name, for messages.
    :raises DamagedError: it is cut short, altered or something else.
    :raises StateError: a newer version wrote it.
    """
    try:
        value = json.loads(data)
        number = value["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedError("not a whole JSON document") from None
    body, rest, fits = seals.unseal(data)
    if type(number) is not int or number != FORMAT:
        _check_format(FORMAT if _is_ours(body, rest, number) else number, name)
    if not fits:
        raise DamagedError("its checksum does not fit")
    try:
        records = {step: record_from_json(record) for step, record in value["steps"].items()}
        return Snapshot(int(value["sequence"]), records, str(value["job"]))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DamagedError(str(error)) from None


def _is_ours(body: bytes, rest: bytes, number: object) -> bool:
    """Whether a snapshot is of our format but for an altered format number."""
    mended = body.replace(b'"format": %s' % dump(number), b'"format": %d' % FORMAT, 1)
    return rest[:8] == b"%08x" % zlib.crc32(mended)


def _check_format(number: object, name: str) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise DamagedError("its format number is no number")
    if number > FORMAT:
        raise StateError(
            f"{name} was written by a newer checkpoint-run (format {number}, this one knows {FORMAT}); "
            "upgrade, or choose another --state-dir",
            Kind.STATE_NEWER,
        )


def journal_line(sequence: int, record: Record | None, job: str = "") -> bytes:
    """One journal line: JSON that begins with the CRC-32 of all that follows it. No record: the opening line.

    :param job: the job's name, for the opening line.
    """
    rest: dict[str, Any] = {}
    if job:
        rest["job"] = job
    if record is not None:
        rest["record"] = record_to_json(record)
    return seals.line(sequence, rest)


def forgetting_line(sequence: int, steps: Collection[str]) -> bytes:
    """One journal line: from here on nothing is recorded of these steps."""
    return seals.line(sequence, {"forgotten": sorted(steps)})


@dataclass(frozen=True, slots=True)
class _Said:
    """What one line says."""

    sequence: int
    record: Record | None
    forgotten: tuple[str, ...]


class JournalReader:
    """Replays a journal over a snapshot.

    A line that was cut short was never acknowledged, so nothing is lost with it. A whole line that does not fit its
    checksum was: where it said that a step ended, the step's start line stands before it and the step counts as
    interrupted. Where it said that a step started or was forgotten, its twin stands beside it (these are written twice,
    since taking a step for done that was running again is the one mistake not to make). Only where several neighbouring
    lines are damaged can a start be lost with its twin; then no older record is trusted until a later line renews it:
    its step counts as one that was running.

    :ivar records: the state after the last line.
    :ivar sequence: the highest number seen.
    :ivar damaged: whole lines that were not usable.
    :ivar job: the job's name as the opening line tells it, or an empty text.
    :ivar torn: whether the last line was cut short.
    """

    def __init__(self, base: Snapshot | None, name: str) -> None:
        self._name = name
        self._floor = base.sequence if base else -1
        self.records: dict[str, Record] = dict(base.records) if base else {}
        self.sequence = max(self._floor, 0)
        self.damaged = 0
        self.job = ""
        self.torn = False
        self._suspects: set[str] = set()
        self._in_a_row = 0
        self._known: dict[str, str] = {}

    def read_from(self, file: Lines) -> None:
        """Replay a journal file from its beginning, line by line up to the first that is not whole: it may be long.

        :raises StateError: a newer version wrote it.
        """
        position = 0
        while (line := file.readline()).endswith(b"\n") and (said := self._parse(line[:-1])) is not None:
            self._take(said, 0)
            position += len(line)
        self.read(line + file.read(), position)

    def read(self, data: bytes, position: int = 0) -> None:
        """Replay a journal file's bytes, or what is left of them after lines that were whole.

        :param position: where in the file they begin.
        :raises StateError: a newer version wrote it.
        """
        whole = self._without_torn_append(data, position)
        *lines, last = whole.split(b"\n")
        for line in lines:
            for value, stretch in self._pieces(line):
                self._take(value, _damage(stretch) if value is None else 0)
        last = last.rstrip(b"\0")
        self.torn = bool(last) or len(whole) < len(data.rstrip(b"\0"))
        pieces = list(self._pieces(last))
        for number, (value, stretch) in enumerate(pieces, 1):
            self.torn = value is None
            if self.torn and number == len(pieces) and self._in_a_row + _count_lines(stretch) <= 1:
                break  # only what nothing follows was cut short; anything else was once whole
            self._take(value, _count_lines(stretch))
        for step in self._suspects:
            record = self.records[step]
            if record.status is Status.DONE:
                reason = "the journal is damaged where a later run of this step may have stood"
                self.records[step] = replace(record, status=Status.RUNNING, error=reason)

    def _without_torn_append(self, data: bytes, position: int) -> bytes:
        """A journal without what a loss of power has left of the last append: some sectors, and NULs for the others.

        An append begins when the one before it is on the disk, so only the last one can be like that (the end of a step
        and the start of the next one, where they go to the disk together); nothing that it
        says was acknowledged. A line of it that is whole counts. Damage of any other form, also a NUL that a flipped
        bit has made, stays for :meth:`read` to judge.
        """
        data = data.rstrip(b"\0")
        hole = data.find(b"\0")
        if hole < 0:
            return data
        begin = data.rfind(b"\n", 0, hole) + 1
        tail = data[begin:]
        top = position + begin
        holes = ((top + match.start(), top + match.end()) for match in re.finditer(b"\0+", tail))
        if not all((start == top or start % _SECTOR == 0) and end % _SECTOR == 0 for start, end in holes):
            return data
        whole = [line for line in tail.split(b"\n") if self._parse(line) is not None]
        numbers = {int(number) for number in re.findall(rb'"seq":(\d{1,18}),', tail)}
        if whole and (len(tail) - 2 * len(whole[0]) in (1, 2) or _follows_an_end(tail, whole[0])):
            return data[:begin] + whole[0] + b"\n"  # the second of two equal lines, or both after an end
        ends = tail.count(b"\n")
        is_one = (len(numbers) <= 1 and ends <= 2) or (
            len(numbers) <= 2 and ends <= 3 and max(numbers, default=0) - min(numbers, default=0) <= 1
        )
        return data[:begin] if is_one and not whole else data

    def _pieces(self, line: bytes) -> Iterator[tuple[_Said | None, bytes]]:
        """A line, read; of a damaged one the whole lines in it (the ends between them are lost) and what else is there.

        A single byte beside a whole line is its end, altered.
        """
        if (whole := self._parse(line)) is not None:
            yield whole, line
            return
        begin = at = tried = 0
        text = line.decode("latin-1")
        while (at := line.find(CRC, at)) >= 0 and tried < _MOST_TRIED:
            inner = line[at : _end_of_object(text, at)] if _HEAD.match(line, at) else b""
            value = self._parse(inner)
            if value is None:
                tried += bool(_HEAD.match(line, at))
                at += len(CRC)
                continue
            if at - begin > 1:
                yield None, line[begin:at]
            yield value, inner
            begin = at = at + len(inner)
        if len(line) - begin > 1:
            yield None, line[begin:]

    def _take(self, value: _Said | None, lines: int) -> None:
        """One piece: a line as read, or something that was so many lines."""
        if value is not None:
            self._in_a_row = 0
            self._apply(value)
            return
        self.damaged += lines
        self._in_a_row += lines
        if self._in_a_row > 1:
            self._suspects = set(self.records)

    def _apply(self, said: _Said) -> None:
        if said.sequence <= self._floor:
            # Older than the snapshot: whatever was damaged before this line is in the snapshot whole.
            self._suspects.clear()
            self.damaged = 0
            return
        self.sequence = max(self.sequence, said.sequence)
        if said.record is not None:
            self.records[said.record.step] = said.record
            self._suspects.discard(said.record.step)
        for step in said.forgotten:
            self.records.pop(step, None)
            self._suspects.discard(step)

    def _parse(self, line: bytes) -> _Said | None:
        crc, body = line[len(CRC) : len(CRC) + 8], line[len(CRC) + 10 :]
        if not line.startswith(CRC) or crc != b"%08x" % zlib.crc32(body):
            return None
        try:
            value = json.loads(b"{" + body)
            _check_format(value["format"], self._name)
            self.job = str(value.get("job", self.job))
            record = record_of_many(value["record"], self._known) if "record" in value else None
            forgotten = tuple(str(step) for step in value.get("forgotten", ()))
            return _Said(int(value["seq"]), record, forgotten)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, DamagedError):
            return None


def _end_of_object(text: str, start: int) -> int:
    """Where the JSON document ends that begins at ``start``; the same place where there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return start


def _follows_an_end(tail: bytes, start: bytes) -> bool:
    """Whether what is left of one append is a torn line, and then a start with what there is of its twin.

    The end of a step may go to the disk with the start of the next one.
    """
    before, _, after = tail.partition(start)
    said = re.search(rb'"seq":(\d{1,18}),"record":\{"step":"[^"]*","status":"running"', start)
    numbers = {int(number) for number in re.findall(rb'"seq":(\d{1,18}),', before)}
    return (
        said is not None
        and before.count(b"\n") <= 1
        and numbers <= {int(said[1]) - 1}
        and len(after) <= len(start) + 2
        and after.count(b"\n") <= 2
    )


def _damage(stretch: bytes) -> int:
    """How many lines a damaged stretch is taken for."""
    return 2 if _is_overwritten(stretch) else _count_lines(stretch)


def _count_lines(stretch: bytes) -> int:
    """How many lines a damaged stretch was."""
    return max(1, *(stretch.count(sign) for sign in _SIGNS))


def _is_overwritten(stretch: bytes) -> bool:
    """Whether more than a bit or two differs from the plain text that we write: then it may have been any lines."""
    return len(stretch.translate(None, _PLAIN)) > 4
