"""Archives that are fetched part by part, and go on where they broke off."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreMissingError
from checkpoint_action.store.base import Found
from checkpoint_action.store.folder import FolderStore
from checkpoint_action.store.resuming import ResumingStore

if TYPE_CHECKING:
    from pathlib import Path

KEY = "cpr1-run7-build-0123456789abcdef-a-7-1-000001-01234567"
CONTENT = os.urandom(100_003)


class Line(FolderStore):
    """A store whose reads are counted, and fail where that is wanted.

    :ivar reads: where reads began.
    :ivar good: reads that succeed before the others fail.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[int] = []
        self.good = 10_000
        self.error = StoreError("the line broke")

    def read(self, found: Found, start: int, length: int) -> bytes:
        self.reads.append(start)
        if len(self.reads) > self.good:
            raise self.error
        return super().read(found, start, length)


@pytest.fixture
def line(tmp_path: Path) -> Line:
    line = Line(tmp_path / "store")
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    line.save(KEY, source)
    return line


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkpoint_action.store.resuming._LONGEST_PAUSE", 0.0)


def resuming(line: Line, tmp_path: Path, least: int = 1000, most: int = 8000) -> ResumingStore:
    return ResumingStore(line, tmp_path / "fetched", least=least, most=most)


@pytest.mark.parametrize("least", [1, 1000, 100_002, 100_003, 100_004, 1 << 20])
def test_all_of_it_arrives_whatever_the_parts(line: Line, tmp_path: Path, least: int) -> None:
    store = resuming(line, tmp_path, least=least, most=max(least, 8192))
    store.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert store.read(Found(KEY), 5, 7) == CONTENT[5:12]


def test_what_has_come_is_not_fetched_again_by_the_next_process(line: Line, tmp_path: Path) -> None:
    line.good = 8
    with pytest.raises(StoreError, match="the line broke"):
        resuming(line, tmp_path).fetch(Found(KEY), tmp_path / "target")
    (part,) = (tmp_path / "fetched").glob("*.part")
    there = part.stat().st_size
    assert 0 < there < len(CONTENT)
    assert part.read_bytes() == CONTENT[:there]
    line.reads, line.good = [], 10_000
    sizes: list[int] = []
    store = ResumingStore(line, tmp_path / "fetched", told=lambda _key, size: sizes.append(size), least=1000, most=8000)
    store.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert min(line.reads) == there
    assert (sizes[0], sizes[-1]) == (there, len(CONTENT))
    assert sizes == sorted(sizes)


def test_a_whole_archive_is_not_asked_for_again(line: Line, tmp_path: Path) -> None:
    resuming(line, tmp_path).fetch(Found(KEY), tmp_path / "target")
    line.reads = []
    store = resuming(line, tmp_path)
    assert store.at_hand(KEY) is not None
    store.fetch(Found(KEY), tmp_path / "again")
    assert line.reads == []
    assert (tmp_path / "again").read_bytes() == CONTENT
    store.drop(KEY)
    assert store.at_hand(KEY) is None
    store.fetch(Found(KEY), tmp_path / "again")
    assert line.reads != []
    store.forget()
    assert not (tmp_path / "fetched").exists()


def test_a_line_that_breaks_now_and_then_is_gone_on_with(line: Line, tmp_path: Path) -> None:
    whole = line.read

    def shaky(found: Found, start: int, length: int) -> bytes:
        if len(line.reads) % 5 == 3:
            line.reads.append(start)
            raise StoreError("a pause")
        return whole(found, start, length)

    line.read = shaky  # type: ignore[method-assign]  # only some of its reads fail
    resuming(line, tmp_path).fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT


@pytest.mark.parametrize("error", [StoreMissingError("gone"), StoreDeniedError("no")])
def test_what_no_other_try_can_mend_is_not_tried_again(line: Line, tmp_path: Path, error: StoreError) -> None:
    line.good, line.error = 0, error
    with pytest.raises(type(error)):
        resuming(line, tmp_path).fetch(Found(KEY), tmp_path / "target")
    assert len(line.reads) == 1
    assert not (tmp_path / "target").exists()


def test_a_folder_that_cannot_be_made_is_a_fault_of_the_fetch(line: Line, tmp_path: Path) -> None:
    (tmp_path / "fetched").write_text("in the way")
    with pytest.raises(StoreError, match="cannot keep what is fetched"):
        resuming(line, tmp_path).fetch(Found(KEY), tmp_path / "target")


def test_what_was_begun_beside_is_waited_for_and_not_fetched_twice(line: Line, tmp_path: Path) -> None:
    store = resuming(line, tmp_path)
    store.begin_fetch(Found(KEY))
    store.begin_fetch(Found(KEY))
    store.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert len(line.reads) == len(set(line.reads))


def test_where_the_system_gives_no_thread_an_archive_is_fetched_when_it_is_wanted(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store = resuming(line, tmp_path)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", none)
        store.begin_fetch(Found(KEY))
    assert line.reads == []
    store.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT


def test_what_was_begun_beside_and_failed_is_tried_again_when_it_is_wanted(line: Line, tmp_path: Path) -> None:
    store = resuming(line, tmp_path)
    line.good, line.error = 3, StoreDeniedError("not yet")
    store.begin_fetch(Found(KEY))
    store._begun[KEY].join()
    assert len(line.reads) > 3
    line.reads, line.good = [], 10_000
    store.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert min(line.reads) > 0  # it went on behind what had come


def test_the_rest_is_the_stores_own(line: Line, tmp_path: Path) -> None:
    store = resuming(line, tmp_path)
    assert (store.name, store.reach) == (line.name, line.reach)
    assert store.find("cpr1-") == Found(KEY)
    assert store.find_each(["cpr1-", "x"]) == [Found(KEY), None]
    (tmp_path / "more").write_bytes(b"more")
    store.save(KEY + "1", tmp_path / "more")
    assert line.find(KEY + "1") == Found(KEY + "1")
