"""Looking at archives: as little of them as tells the state."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, Reason
from checkpoint_action.runner import archives, uploads
from checkpoint_action.store.bundle import LONGEST_HEADER, header_frame
from tests.runner.machines import KEYS, Machine, keep_each
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
