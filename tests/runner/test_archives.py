"""Looking at archives: as little of them as tells the state."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError
from checkpoint_action.model import Action, Layer, Reason
from checkpoint_action.runner import archives, uploads
from checkpoint_action.store.bundle import LONGEST_HEADER, header_frame
from checkpoint_action.store.codec import record_to_json
from tests.runner.machines import KEYS, Machine, keep_each, writing
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.store.base import Found

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them")

RESTORED = (Action.RESTORE, Reason.RESTORED)
LARGE = 2 << 20


class CountingStore(MemoryStore):
    """Notes how much is read.

    :ivar asked: first byte and number of bytes of each read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, int]] = []

    def read(self, found: Found, start: int, length: int) -> bytes:
        self.asked.append((start, length))
        return super().read(found, start, length)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_APART", 0.0)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def other(tmp_path: Path, store: CountingStore) -> Machine:
    return Machine(tmp_path / "other", store)


def test_a_large_archive_is_only_begun_to_learn_the_state_and_fetched_when_it_is_restored(
    tmp_path: Path, store: CountingStore, other: Machine
) -> None:
    one = Machine(tmp_path / "one", store)
    one.run(one.step("a"), lambda root: (root / "a").write_bytes(os.urandom(LARGE)))
    one.checkpoints.finish(60)
    records = other.checkpoints.learn(["a"])
    assert store.asked == [(0, 256 << 10)]
    assert "fetch" not in store.calls
    assert os.listdir(other.archives) == []
    other.checkpoints.restore(records["a"], lambda _path: ())
    assert store.calls.count("fetch") == 1
    assert (other.root / "a").read_bytes() == (one.root / "a").read_bytes()


@pytest.mark.parametrize(
    ("log", "here"),
    [
        (".checkpoint-run-j.logs/a.log", ".checkpoint-run-j.logs/a.log"),
        ("/home/runner/work/_temp/x.logs/a.log", "a.log"),
        ("/etc/passwd", "passwd"),
        ("../../.ssh/id_ed25519", "id_ed25519"),
        ("D:\\a\\_temp\\logs\\a.log", "a.log"),
        ("C:a.log", "" if os.name == "nt" else "C:a.log"),
        ("..", ""),
        ("/", ""),
        ("", ""),
    ],
)
def test_a_log_of_another_machine_is_no_other_file_here(
    tmp_path: Path, store: CountingStore, other: Machine, log: str, here: str
) -> None:
    """Reports and `logs` show what lies where a record says, and a record may come from anybody with the store."""
    one = Machine(tmp_path / "one", store)
    record = replace(one.run(one.step("a"), writing("a", "a")), log=log)
    header = {"job": KEYS.job, "records": {"a": record_to_json(record)}}
    assert archives._state_of(header, KEYS.job, KEYS.prefix).records["a"].log == here


def test_a_small_archive_is_there_with_the_first_look(tmp_path: Path, store: CountingStore, other: Machine) -> None:
    one = Machine(tmp_path / "one", store)
    keep_each(one, "a")
    assert other.resume(other.step("a")) == [RESTORED]
    assert [name for name in store.calls if name in {"read", "fetch"}] == ["read"]


def test_a_long_header_is_read_on_where_the_first_look_ended(
    tmp_path: Path, store: CountingStore, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_FIRST_LOOK", 100)
    one = Machine(tmp_path / "one", store)
    keep_each(one, "a", "b")
    one_more = Machine(tmp_path / "three", store)
    assert sorted(other.checkpoints.learn(["a", "b"])) == ["a", "b"]
    assert len(store.asked) > 1
    ends = [0, *(start + length for start, length in store.asked)]
    assert [start for start, _ in store.asked] == ends[:-1], "no byte is read twice"
    assert len(store.asked) < 10
    assert one_more.resume(one_more.step("a"), one_more.step("b")) == [RESTORED, RESTORED]


def test_a_header_that_never_ends_is_a_miss_and_read_no_further_than_one_may_be(
    store: CountingStore, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_LONGEST_LOOK", 1 << 20)
    raw_block = (3 << 20 << 3).to_bytes(8, "little")[:3]  # one that is said to have more than is there
    frame = b"\x28\xb5\x2f\xfd\xe0" + (3 << 20).to_bytes(8, "little")
    store.entries[KEYS.new("a", 1)] = frame + raw_block + bytes(5 << 20)
    store.entries[KEYS.new("b", 2)] = frame + b"\x00\x00\x10" * 1 + bytes(5 << 20)
    assert other.checkpoints.learn(["a", "b"]) == {}
    assert len(other.warnings) == 1
    assert sum(length for _, length in store.asked) <= 2 << 20


def test_a_header_longer_than_allowed_is_a_miss(store: CountingStore, other: Machine) -> None:
    store.entries[KEYS.new("a", 1)] = header_frame({"job": "x" * (LONGEST_HEADER + 1)})
    assert other.checkpoints.learn(["a"]) == {}
    assert f"more than the {LONGEST_HEADER} allowed" in other.warnings[0]


def test_an_archive_that_ends_within_its_header_is_a_miss(tmp_path: Path, store: CountingStore, other: Machine) -> None:
    one = Machine(tmp_path / "one", store)
    keep_each(one, "a")
    key, whole = next(iter(store.entries.items()))
    store.entries[key] = whole[:60]
    assert other.checkpoints.learn(["a"]) == {}
    assert f"{key} is not usable (the archive is cut off); starting afresh" in other.warnings[0]


def test_a_store_that_has_nothing_of_the_job_is_told_with_its_reach(store: CountingStore, other: Machine) -> None:
    store.reach = "this job can read entries of refs/heads/main"
    assert other.checkpoints.learn(["a"]) == {}
    assert other.missed == ["this job can read entries of refs/heads/main"]
    assert other.warnings == []


def test_nothing_is_told_of_a_reach_where_there_is_a_checkpoint_or_the_store_fails(
    tmp_path: Path, store: CountingStore, other: Machine
) -> None:
    one = Machine(tmp_path / "one", store)
    one.run(one.step("a"), writing("a", "a"))
    one.checkpoints.finish(60)
    other.checkpoints.learn(["a"])
    store.refuse["find"] = StoreError("memory: 503")
    failing = Machine(tmp_path / "failing", store)
    failing.checkpoints.learn(["a"])
    assert other.missed == failing.missed == []


@pytest.mark.parametrize("limit", [0, 5, 11])
def test_a_step_that_leaves_more_than_the_limit_is_done_but_not_kept(
    tmp_path: Path, store: CountingStore, limit: int
) -> None:
    one = Machine(tmp_path / "one", store, max_size=limit, required=True)
    one.run(one.step("a"), lambda root: [(root / "small").write_text("abcd"), (root / "big").write_text("12345678")])
    one.run(one.step("empty"), writing("nothing", ""))
    one.checkpoints.finish(60)
    [warning] = one.warnings
    assert warning == (
        "step 'a' is done but not kept for other machines: it left 12 bytes, and the limit (max-size) is "
        f"{limit}; the largest file is big with 8"
    )
    assert one.kept == [("empty",)]


def test_a_step_within_the_limit_is_kept(tmp_path: Path, store: CountingStore, other: Machine) -> None:
    one = Machine(tmp_path / "one", store, max_size=12)
    one.run(one.step("a"), lambda root: [(root / "small").write_text("abcd"), (root / "big").write_text("12345678")])
    one.checkpoints.finish(60)
    assert other.resume(other.step("a")) == [RESTORED]
    assert one.warnings == []


def test_what_another_machine_kept_of_a_step_is_not_handed_on_once_it_left_too_much(
    tmp_path: Path, store: CountingStore, other: Machine
) -> None:
    one = Machine(tmp_path / "one", store)
    keep_each(one, "a")
    again = Machine(tmp_path / "again", store, max_size=3)
    again.checkpoints.learn(["a"])
    again.run(again.step("a"), writing("a", "more than that"))
    again.run(again.step("b"), writing("b", "b"))
    again.checkpoints.finish(60)
    records = other.checkpoints.learn(["a", "b"])
    assert sorted(records) == ["b"]
    assert records["b"].layer != Layer()
