"""A state is read row by row to the same end as in one piece, or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.runner.snapshot_rows import digest_of_file, read_pair
from checkpoint_action.runner.statefile import DamagedError, Snapshot, journal_line, read_snapshot, write_snapshot
from tests.runner.test_statefile import calm, record, snapshots

ORDER = ("mark", ["a", "b"])
TWO = Snapshot(3, {"a": record("a"), "b": record("b", error='\x00\udcff, ",\n')}, "demo")


def journal_of(snapshot: Snapshot) -> bytes:
    lines = [journal_line(snapshot.sequence, one) for one in snapshot.records.values()]
    return journal_line(snapshot.sequence, None, "demo") + b"".join(lines)


def read(snapshot: bytes, journal: bytes | None) -> tuple[Snapshot, bool] | None:
    with TemporaryDirectory() as name:
        first, second = Path(name, "snapshot"), Path(name, "journal")
        first.write_bytes(snapshot)
        if journal is not None:
            second.write_bytes(journal)
        pair = read_pair(first, second)
        if pair is None:
            return None
        if pair.settled:
            assert pair.digests == (digest_of_file(first), digest_of_file(second))
        assert pair.digests[0] == digest_of_file(first)
        return pair.snapshot, pair.settled


@calm
@given(snapshots, st.sampled_from([None, ORDER]))
def test_rows_say_what_the_whole_says(snapshot: Snapshot, order: tuple[str, list[str]] | None) -> None:
    text = write_snapshot("demo", snapshot, order)
    assert read(text, journal_of(snapshot)) == (read_snapshot(text, "file"), True)


@calm
@given(snapshots, st.data())
def test_damage_is_never_read_as_something_else(snapshot: Snapshot, data: st.DataObject) -> None:
    text = bytearray(write_snapshot("demo", snapshot, ORDER))
    text[data.draw(st.integers(0, len(text) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = read(bytes(text), None)
    if found is not None:
        assert found[0] == read_snapshot(bytes(text), "file") == snapshot


def test_every_cut_is_left_to_who_looks_closer() -> None:
    text = write_snapshot("demo", TWO)
    for length in range(len(text)):
        assert read(text[:length], journal_of(TWO)) is None
    assert read(text + b" ", None) is None


def test_another_layout_is_left_to_who_looks_closer() -> None:
    text = write_snapshot("demo", TWO)
    assert read(text.replace(b"\n", b"", 1), None) is None
    assert read(text.replace(b",\n", b",\n\n", 1), None) is None
    with pytest.raises(DamagedError):
        read_snapshot(text.replace(b"\n", b"", 1), "file")


@pytest.mark.parametrize("journal", [None, b"", b"x", journal_of(TWO)[:-1], journal_of(TWO) + b"x"])
def test_a_journal_that_says_less_or_more_is_not_settled(journal: bytes | None) -> None:
    found = read(write_snapshot("demo", TWO), journal)
    assert found is not None
    assert found == (TWO, False)


def test_what_is_no_file_is_left_to_who_looks_closer(tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    assert read_pair(tmp_path / "snapshot", tmp_path / "journal") is None
    assert read_pair(tmp_path / "none", tmp_path / "journal") is None
    assert digest_of_file(tmp_path / "none") == b""


def test_texts_that_are_alike_are_the_same_text() -> None:
    """So a state of many steps takes a third less room: what a step leaves is a part of each that needs it."""
    parts = {"command": "0" * 64, "needs a": "f" * 64}
    many = {name: replace(record(name), result="f" * 64, parts=parts) for name in ("a", "b")}
    found = read(write_snapshot("demo", Snapshot(1, many)), None)
    assert found is not None
    one, other = found[0].records["a"], found[0].records["b"]
    assert one == many["a"]
    assert one.parts["command"] is other.parts["command"]
    assert one.fingerprint is one.result is other.parts["needs a"]
    assert next(iter(one.parts)) is next(iter(other.parts))
