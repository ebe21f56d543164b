"""The bytes of a state: what was once recorded is read back, or known to be lost."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import StateError
from checkpoint_action.model import ArchiveRef, Entry, Layer, Record, Status
from checkpoint_action.runner.seals import CHECKSUM, CRC
from checkpoint_action.runner.statefile import (
    FORMAT,
    DamagedError,
    JournalReader,
    Snapshot,
    journal_line,
    read_snapshot,
    write_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

calm = settings(max_examples=50, deadline=None)


def record(step: str = "a", status: Status = Status.DONE, tries: int = 1, **more: Any) -> Record:
    return Record(step, status, "f" * 64, "make", {"command": "0" * 64}, tries=tries, **more)


FULL = Record(
    "a",
    Status.DONE,
    "f" * 64,
    'printf "\x00\u00e9\udcff\n"',
    {"env A": "1", "seq": "2"},
    exit_code=0,
    tries=3,
    started=1_700_000_000.25,
    duration=0.5,
    error="e",
    layer=Layer((Entry("a\udcff", "file", 0o644, 5, 1, "0" * 64),), ("gone",), {"gone": "dir"}),
    result="r",
    log="a.log",
    archive=ArchiveRef("key", "layer"),
)

names = st.sampled_from(["a", "b", "c.d", "E-1"])
records = st.builds(
    record,
    names,
    st.sampled_from(Status),
    st.integers(0, 9),
    error=st.text(max_size=5),
    log=st.text(st.sampled_from('"crc:{}\n\\\0\udcff')),
)
snapshots = st.builds(
    Snapshot, st.integers(0, 99), st.lists(records, max_size=4).map(lambda many: {one.step: one for one in many})
)


SAID = ("records", "sequence", "damaged", "job", "torn")


def replay(data: bytes, base: Snapshot | None = None) -> JournalReader:
    reader, other = JournalReader(base, "journal"), JournalReader(base, "journal")
    reader.read(data)
    other.read_from(io.BytesIO(data))
    assert [getattr(other, name) for name in SAID] == [getattr(reader, name) for name in SAID]
    return reader


@calm
@given(snapshots)
def test_a_snapshot_is_read_as_it_was_written(snapshot: Snapshot) -> None:
    assert read_snapshot(write_snapshot("demo", snapshot), "file") == snapshot


def test_every_field_of_a_record_survives_both_files() -> None:
    snapshot = Snapshot(7, {"a": FULL})
    assert read_snapshot(write_snapshot("demo", snapshot), "file") == snapshot
    assert replay(journal_line(1, FULL)).records == {"a": FULL}


def test_a_snapshot_is_json_with_one_record_a_line() -> None:
    data = write_snapshot("demo", Snapshot(7, {"a": record("a"), "b": record("b")}))
    value = json.loads(data)
    assert list(value) == ["format", "job", "sequence", "steps", "checksum"]
    assert (value["format"], value["job"], value["sequence"]) == (FORMAT, "demo", 7)
    assert [line[:4] for line in data.splitlines() if b'"step"' in line] == [b'"a":', b'"b":']


def test_a_journal_line_is_json_on_one_line() -> None:
    line = journal_line(3, FULL)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert json.loads(line)["seq"] == 3


@calm
@given(snapshots, st.data())
def test_a_snapshot_cut_short_or_altered_is_never_taken_for_whole(snapshot: Snapshot, data: st.DataObject) -> None:
    whole = write_snapshot("demo", snapshot)
    if data.draw(st.booleans()):
        altered = whole[: data.draw(st.integers(0, len(whole) - 3))]  # the last line's end may go
    else:
        bits = data.draw(st.lists(st.integers(0, len(whole) * 8 - 1), min_size=1, max_size=3, unique=True))
        altered = flipped(whole, bits)
    with contextlib.suppress(DamagedError):
        assert read_snapshot(altered, "file") == snapshot  # whitespace at the end was hit, say


def flipped(data: bytes, bits: list[int]) -> bytes:
    changed = bytearray(data)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("data", [b"", b"\0" * 300, b"{}", b"[]", b"null", b"{", b'{"format": true}', b'{"format": 0}'])
def test_what_is_no_snapshot_is_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError):
        read_snapshot(data, "file")


def test_deep_nesting_is_damage_and_no_crash() -> None:
    with pytest.raises(DamagedError):
        read_snapshot(b"[" * 200_000, "file")


def test_a_newer_snapshot_is_refused_whatever_its_layout() -> None:
    newer = json.dumps({"format": FORMAT + 1, "else": []}).encode()
    with pytest.raises(StateError, match=r"my-file was written by a newer checkpoint-run \(format 2.*--state-dir") as e:
        read_snapshot(newer, "my-file")
    assert e.value.exit_code == 2


def test_a_flipped_format_number_is_damage_and_not_a_newer_version() -> None:
    whole = write_snapshot("demo", Snapshot(7, {"a": record()}))
    for bit in range(8):
        altered = bytearray(whole)
        altered[whole.index(b"1,\n")] ^= 1 << bit
        with pytest.raises(DamagedError):
            read_snapshot(bytes(altered), "file")


def test_a_newer_journal_line_is_refused() -> None:
    body = b'"format":2,"seq":1}'
    with pytest.raises(StateError, match="newer"):
        replay(b'{"crc":"%08x",' % zlib.crc32(body) + body + b"\n")


def test_lines_at_or_below_the_snapshot_are_known_already() -> None:
    base = Snapshot(5, {"a": record("a", tries=5)})
    lines = journal_line(5, record("a", tries=4)) + journal_line(6, record("b"))
    found = replay(lines, base)
    assert found.records == {"a": record("a", tries=5), "b": record("b")}
    assert found.sequence == 6


def start(step: str, sequence: int) -> bytes:
    return journal_line(sequence, record(step, Status.RUNNING)) * 2


def finish(step: str, sequence: int) -> bytes:
    return journal_line(sequence, record(step, tries=sequence))


def spoil(line: bytes) -> bytes:
    return line.replace(b"make", b"fake")


def test_a_line_cut_short_costs_itself_only() -> None:
    whole = start("a", 1) + finish("a", 2) + start("b", 3)
    last = finish("b", 4)
    for length in range(len(last) - 1):
        found = replay(whole + last[:length])
        assert found.records == {"a": record("a", tries=2), "b": record("b", Status.RUNNING)}
        assert found.damaged == 0
        assert found.torn == (length > 0)


@pytest.mark.parametrize("nuls", [1, 7, 4096])
def test_a_tail_of_zeros_costs_what_it_covers_only(nuls: int) -> None:
    whole = start("a", 1) + finish("a", 2) + start("b", 3)
    found = replay(whole + finish("b", 4)[:20] + b"\0" * nuls)
    assert found.records["a"] == record("a", tries=2)
    assert found.damaged == 0
    assert replay(whole + b"\0" * nuls).torn is False


def test_a_damaged_end_makes_its_step_interrupted_and_costs_no_other() -> None:
    found = replay(start("a", 1) + finish("a", 2) + start("b", 3) + spoil(finish("b", 4)) + start("c", 5))
    assert found.records["a"].status is Status.DONE
    assert found.records["b"].status is Status.RUNNING
    assert found.damaged == 1


def test_one_damaged_start_is_made_up_for_by_its_twin() -> None:
    base = Snapshot(0, {"a": record("a")})
    first, second = start("a", 1).splitlines(keepends=True)
    for lines in (spoil(first) + second, first + spoil(second)):
        assert replay(lines, base).records["a"].status is Status.RUNNING


OLD = Snapshot(0, {"a": record("a"), "b": record("b")})


def distrusted(data: bytes) -> bool:
    """Whether the older record of a step that was started again is no longer taken for done."""
    return replay(data, OLD).records["a"].status is not Status.DONE


def test_where_a_start_may_be_lost_with_its_twin_no_older_record_is_trusted() -> None:
    found = replay(spoil(start("a", 1)), OLD)
    assert found.records["a"].status is Status.RUNNING
    assert found.records["b"].status is Status.RUNNING
    assert "damaged" in found.records["a"].error


def test_a_later_line_renews_a_record() -> None:
    found = replay(spoil(start("a", 1)) + finish("a", 2), OLD)
    assert found.records["a"] == record("a", tries=2)
    assert found.records["b"].status is Status.RUNNING


def test_a_line_end_that_became_another_byte_hides_no_start() -> None:
    twins = start("a", 1)
    for at in (len(twins) // 2 - 1, len(twins) - 1):
        for bit in range(8):
            assert distrusted(flipped(twins, [at * 8 + bit]))
            assert distrusted(flipped(twins, [at * 8 + bit]) + start("b", 2) + finish("b", 3))


def test_a_line_end_lost_after_an_end_costs_no_line_that_is_whole() -> None:
    lines = finish("a", 1) + finish("b", 2) + start("c", 3)
    at = len(finish("a", 1)) - 1
    found = replay(flipped(lines, [at * 8]), OLD)
    assert found.records == {"a": record("a", tries=1), "b": record("b", tries=2), "c": record("c", Status.RUNNING)}
    assert found.damaged == 0


def test_both_line_ends_of_a_start_gone_hide_no_start() -> None:
    twins = bytearray(start("a", 1))
    twins[len(twins) // 2 - 1] = twins[-1] = ord("*")
    assert distrusted(bytes(twins))
    twins[10] ^= 1
    twins[len(twins) // 2 + 10] ^= 1
    assert distrusted(bytes(twins))


def test_both_line_ends_of_a_start_gone_hide_no_start_whose_twin_is_damaged() -> None:
    done = journal_line(1, record(tries=1))
    start = bytearray(journal_line(2, record("a", Status.RUNNING)) * 2)
    start[0] ^= 1
    start[len(start) // 2 - 1] ^= 1
    start[-1] ^= 1
    assert replay(done + bytes(start)).records["a"].status is Status.RUNNING


@pytest.mark.parametrize("filler", [b"\0", b"\xff", b"\x17"])
def test_a_block_written_over_in_the_middle_hides_no_start(filler: bytes) -> None:
    twins = start("a", 1)
    lines = finish("b", 1) + twins + finish("b", 3)
    begin = len(finish("b", 1)) - 5
    altered = lines[:begin] + filler * (len(twins) + 10) + lines[begin + len(twins) + 10 :]
    assert distrusted(altered)
    assert distrusted(altered + finish("b", 9))


def lost_sectors(before: bytes, appended: bytes) -> Iterator[bytes]:
    """What is there after a loss of power: some sectors of what was appended, zeros for the others."""
    whole = before + appended
    sectors = range(len(before) // 512, -(-len(whole) // 512))
    for lost in itertools.product((False, True), repeat=len(sectors)):
        torn = bytearray(whole)
        for sector in itertools.compress(sectors, lost):
            first, last = max(512 * sector, len(before)), min(512 * sector + 512, len(whole))
            torn[first:last] = bytes(last - first)
        yield bytes(torn)


@pytest.mark.parametrize("room", [0, 5000])
@pytest.mark.parametrize("shift", [0, 1, 300, 511])
@pytest.mark.parametrize("status", [Status.RUNNING, Status.DONE])
def test_sectors_of_the_last_append_that_did_not_get_to_the_disk_cost_it_alone(
    status: Status, shift: int, room: int
) -> None:
    before = finish("a", 1) + journal_line(2, record("b", log="x" * shift))
    one = journal_line(3, record("c", status, log="y" * 700))
    appended = one * (2 if status is Status.RUNNING else 1)
    told = set()
    for data in lost_sectors(before, appended):
        found = replay(data + bytes(room), OLD)
        assert found.records["a"] == record("a", tries=1)
        assert found.records["b"].status is Status.DONE
        assert found.damaged == 0
        told.add("c" in found.records)
    assert told == {True, False}


@pytest.mark.parametrize("place", [511, 512, 700])
def test_a_byte_that_became_zero_is_no_lost_sector(place: int) -> None:
    twins = journal_line(1, record("a", Status.RUNNING, log="z" * 700)) * 2
    altered = bytearray(twins)
    altered[place] = altered[place + len(twins) // 2] = 0
    assert distrusted(bytes(altered))


def test_damage_before_what_the_snapshot_knows_is_no_matter() -> None:
    base = Snapshot(5, {"a": record("a")})
    found = replay(spoil(start("a", 1)) + journal_line(5, record("a")) + start("b", 6), base)
    assert found.records == {"a": record("a"), "b": record("b", Status.RUNNING)}
    assert found.damaged == 0


@pytest.mark.parametrize("number", ["1e999", "-Infinity", "NaN", "[" * 900 + "1" + "]" * 900])
def test_a_number_that_none_can_be_is_damage_though_the_checksum_fits(number: str) -> None:
    body = write_snapshot("j", Snapshot(3, {})).rpartition(CHECKSUM)[0].replace(b": 3", b": " + number.encode())
    assert number.encode() in body
    with pytest.raises(DamagedError):
        read_snapshot(body + CHECKSUM + b'%08x"\n}\n' % zlib.crc32(body), "s")
    rest = b'"format":1,"seq":%b}' % number.encode()
    reader = JournalReader(None, "j")
    reader.read(b'%b%08x",%b\n' % (CRC, zlib.crc32(rest), rest))
    assert (reader.damaged, reader.records) == (1, {})


def test_a_line_in_the_journal_that_is_nested_as_deep_as_it_goes_is_damage() -> None:
    rest = b'"format":1,"seq":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    reader = JournalReader(None, "j")
    reader.read(b'%b%08x",%b\n' % (CRC, zlib.crc32(rest), rest))
    assert reader.damaged == 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("piece", [CRC, CRC + b'00000000",', CRC + b'00000000","x":{'])
def test_a_damaged_line_of_any_length_is_read_in_time_that_goes_with_it(piece: bytes) -> None:
    whole = journal_line(1, None, "j")[:-1]
    reader = JournalReader(None, "j")
    reader.read(piece * 150_000 + whole + b"\n")
    assert reader.damaged


def test_a_number_of_thousands_of_digits_beside_lost_sectors_is_damage() -> None:
    reader = JournalReader(None, "j")
    reader.read(b"x\n" + bytes(510) + b'"seq":' + b"9" * 5000 + b",")
    assert reader.records == {}
