"""Two stores as one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import BundleError, StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.store.base import FilePart, Found, PieceStore, Store
from checkpoint_action.store.fallback import FallbackStore
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

KEYS = KeyScheme("run7", "job", "7", "1")
OLD, NEW, NEWEST = (f"{KEYS.prefix}build-7-{attempt}-000003-0123abcd" for attempt in (1, 2, 10))
PREFIX = KEYS.prefix
DOWN = StoreError("first: answered 503")
DENIED = StoreDeniedError("first: cache write denied")
GONE = StoreMissingError("first: gone")


class PieceMemory(MemoryStore):
    """Takes entries in pieces too.

    :ivar left: how blocks ended: with the name of an error, or none.
    """

    reach = ""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.left: list[str] = []

    def read(self, found: Found, start: int, length: int) -> bytes:
        self._called("read")
        if found.key not in self.entries:
            raise StoreMissingError(f"{found.key} is not there")
        return self.entries[found.key][start : start + length]

    @contextmanager
    def begin(self, key: str) -> Iterator[PieceMemory.Entry]:
        self._called("begin")
        try:
            yield PieceMemory.Entry(self, key)
        except BaseException as error:
            self.left.append(type(error).__name__)
            raise
        self.left.append("")

    class Entry:
        def __init__(self, store: PieceMemory, key: str) -> None:
            self._store = store
            self._key = key

        def put(self, body: bytes | FilePart) -> bytes:
            self._store._called("put")
            return body.path.read_bytes() if isinstance(body, FilePart) else body

        def finish(self, parts: Iterable[bytes]) -> None:
            self._store._called("finish")
            self._store.entries[self._key] = b"".join(parts)


class Pair:
    """Two stores in memory and one over both.

    :ivar told: what a person was told.
    """

    def __init__(self, source: Path) -> None:
        self.source = source
        self.first, self.second = PieceMemory("first"), PieceMemory("second")
        self.told: list[str] = []

    def store(self, *, read_only: bool = False) -> FallbackStore:
        return FallbackStore(self.first, self.second, order=KEYS.origin, moved=self.told.append, read_only=read_only)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    source = tmp_path / "source"
    source.write_bytes(b"content")
    return Pair(source)


def test_while_the_first_works_nothing_goes_to_the_second(pair: Pair, tmp_path: Path) -> None:
    store = pair.store()
    store.save(OLD, pair.source)
    assert store.find(PREFIX) == Found(OLD)
    store.fetch(Found(OLD), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"content"
    assert (list(pair.first.entries), pair.second.calls, store.name, pair.told) == ([OLD], ["find"], "first", [])


@pytest.mark.parametrize(("in_first", "in_second"), [(OLD, NEWEST), (NEWEST, OLD), (NEW, NEWEST), (NEWEST, NEW)])
def test_the_newer_of_both_is_found_and_fetched_from_where_it_is(
    pair: Pair, tmp_path: Path, in_first: str, in_second: str
) -> None:
    pair.first.entries[in_first] = b"of the first"
    pair.second.entries[in_second] = b"of the second"
    store = pair.store()
    found = store.find(PREFIX)
    assert found == Found(NEWEST)
    store.fetch(found, tmp_path / "target")
    wanted = b"of the first" if in_first == NEWEST else b"of the second"
    assert (tmp_path / "target").read_bytes() == wanted
    assert (pair.first.calls + pair.second.calls).count("fetch") == 1


def test_a_key_that_tells_nothing_is_older_than_any_that_does(pair: Pair) -> None:
    pair.first.entries[f"{PREFIX}zzz"] = b"x"
    pair.second.entries[OLD] = b"x"
    assert pair.store().find(PREFIX) == Found(OLD)


def test_an_archive_of_which_only_the_key_is_known_is_looked_for_in_both(pair: Pair, tmp_path: Path) -> None:
    pair.second.entries[OLD] = b"x"
    store = pair.store()
    store.fetch(Found(OLD), tmp_path / "target")
    store.fetch(Found(OLD), tmp_path / "target")
    assert pair.first.calls.count("fetch") == 1, "where it is is remembered"
    with pytest.raises(StoreMissingError, match=NEW):
        store.fetch(Found(NEW), tmp_path / "target")
    assert pair.told == []


@pytest.mark.parametrize("error", [DENIED, DOWN])
def test_what_the_first_does_not_take_goes_to_the_second_from_then_on_and_is_said_once(
    pair: Pair, tmp_path: Path, error: StoreError
) -> None:
    pair.first.entries[OLD] = b"old"
    pair.first.refuse["save"] = error
    store = pair.store()
    for key in (NEW, NEWEST):
        store.save(key, pair.source)
    assert (list(pair.second.entries), store.name) == ([NEW, NEWEST], "second")
    assert pair.first.calls == ["save"]
    assert pair.told == [f"{error.told}; keeping steps in second instead"]
    store.fetch(Found(OLD), tmp_path / "target")  # it is read all the same
    assert (tmp_path / "target").read_bytes() == b"old"


def test_a_first_that_is_known_to_take_nothing_is_not_tried(pair: Pair) -> None:
    pair.first.entries[OLD] = b"old"
    store = pair.store(read_only=True)
    assert store.name == "second"
    store.save(NEW, pair.source)
    assert (pair.first.calls, list(pair.second.entries), pair.told) == ([], [NEW], [])
    assert store.find(PREFIX) == Found(NEW)


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ((DENIED, StoreDeniedError("second: no")), StoreDeniedError),
        ((DENIED, StoreError("second: no")), StoreError),
        ((DOWN, StoreDeniedError("second: no")), StoreError),
    ],
)
def test_when_neither_takes_it_one_error_says_why(
    pair: Pair, errors: tuple[StoreError, StoreError], kind: type[StoreError]
) -> None:
    pair.first.refuse["save"], pair.second.refuse["save"] = errors
    with pytest.raises(kind, match=f"^{errors[0]}; second: no$") as caught:
        pair.store().save(NEW, pair.source)
    assert type(caught.value) is kind
    assert pair.told == []


def test_a_first_that_cannot_be_asked_is_left_alone_and_that_is_said_once(pair: Pair, tmp_path: Path) -> None:
    pair.first.refuse = dict.fromkeys(("find", "fetch", "save"), DOWN)
    pair.second.entries[OLD] = b"x"
    store = pair.store()
    assert store.find(PREFIX) == Found(OLD)
    store.fetch(Found(OLD), tmp_path / "target")
    store.save(NEW, pair.source)
    with pytest.raises(StoreMissingError):
        store.fetch(Found(NEWEST), tmp_path / "target")
    assert (pair.first.calls, list(pair.second.entries)) == (["find"], [OLD, NEW])
    assert pair.told == [f"{DOWN.told}; using second alone"]


def test_a_second_that_cannot_be_asked_does_not_hide_what_the_first_has(pair: Pair, tmp_path: Path) -> None:
    pair.second.refuse["find"] = StoreError("second: no")
    pair.first.entries[OLD] = b"x"
    store = pair.store()
    assert store.find(PREFIX) == Found(OLD)
    store.save(NEW, pair.source)
    assert list(pair.first.entries) == [OLD, NEW]
    assert pair.told == ["CPR501: second: no; using first alone"]


def test_a_second_that_fails_to_be_read_still_takes_what_the_first_is_known_not_to(pair: Pair) -> None:
    pair.second.refuse["find"] = StoreError("second: no")
    store = pair.store(read_only=True)
    assert store.find(PREFIX) is None
    store.save(NEW, pair.source)
    assert list(pair.second.entries) == [NEW]


def test_when_neither_can_be_asked_one_error_says_why(pair: Pair) -> None:
    pair.first.refuse["find"], pair.second.refuse["find"] = DOWN, StoreError("second: no")
    with pytest.raises(StoreError, match=f"^{DOWN}; second: no$"):
        pair.store().find(PREFIX)
    assert pair.told == []


def test_a_failure_while_an_archive_comes_costs_that_archive_and_not_both_stores(pair: Pair, tmp_path: Path) -> None:
    pair.first.entries[OLD] = b"x"
    pair.second.entries[NEW] = b"y"
    pair.first.refuse["fetch"] = DOWN
    store = pair.store()
    assert store.find(PREFIX) == Found(NEW)
    with pytest.raises(StoreMissingError, match="503"):
        store.fetch(Found(OLD), tmp_path / "target")
    store.fetch(Found(NEW), tmp_path / "target")
    assert pair.told == [f"{DOWN.told}; using second alone"]
    pair.second.refuse["fetch"] = StoreError("second: no")
    with pytest.raises(StoreError, match="second: no") as caught:
        store.fetch(Found(NEW), tmp_path / "target")
    assert not isinstance(caught.value, StoreMissingError)


@pytest.mark.parametrize("error", [GONE, BundleError("first: damaged")])
def test_an_entry_that_is_gone_or_damaged_is_no_fault_of_the_store(
    pair: Pair, tmp_path: Path, error: StoreError
) -> None:
    pair.first.entries[OLD] = b"x"
    pair.first.refuse["fetch"] = error
    store = pair.store()
    with pytest.raises(type(error)):
        store.fetch(Found(OLD), tmp_path / "target")
    assert pair.told == []
    assert store.find(PREFIX) == Found(OLD)


def test_both_are_asked_at_the_same_time(pair: Pair) -> None:
    pair.first.hang = {"find"}
    pair.first.gate.clear()
    pair.second.entries[OLD] = b"x"
    ask: Callable[[str], Found | None] = pair.second.find

    def answer(prefix: str) -> Found | None:
        pair.first.gate.set()  # the first only answers once the second is asked
        return ask(prefix)

    pair.second.find = answer  # type: ignore[method-assign]
    assert pair.store().find(PREFIX) == Found(OLD)


def test_a_fault_in_our_own_code_is_not_hidden(pair: Pair) -> None:
    pair.second.refuse["find"] = AssertionError()
    with pytest.raises(AssertionError):
        pair.store().find(PREFIX)


def hand_over(store: FallbackStore, key: str, source: Path) -> None:
    with store.begin(key) as entry:
        layer = entry.put(FilePart(source, 0, 7))
        entry.finish([entry.put(b"header, "), layer])


def test_it_is_a_store_that_takes_pieces(pair: Pair) -> None:
    store: Store = pair.store()
    assert isinstance(store, PieceStore)


def test_an_archive_in_pieces_goes_to_the_first(pair: Pair) -> None:
    store = pair.store()
    hand_over(store, OLD, pair.source)
    assert (pair.first.entries, pair.second.calls, pair.told) == ({OLD: b"header, content"}, [], [])
    assert store.read(Found(OLD), 8, 3) == b"con"
    assert pair.second.calls == []


@pytest.mark.parametrize("when", ["begin", "put", "finish"])
def test_pieces_that_the_first_refuses_are_handed_over_again_to_the_second(pair: Pair, when: str) -> None:
    pair.first.refuse[when] = DENIED
    store = pair.store()
    hand_over(store, OLD, pair.source)
    assert (pair.first.entries, pair.second.entries) == ({}, {OLD: b"header, content"})
    assert pair.first.left == ([] if when == "begin" else ["StoreDeniedError"])
    assert pair.second.left == [""]
    hand_over(store, NEW, pair.source)
    assert pair.first.calls.count("begin") == 1
    assert pair.told == [f"{DENIED.told}; keeping steps in second instead"]


@pytest.mark.parametrize("when", ["begin", "put", "finish"])
def test_pieces_that_neither_takes_are_one_error(pair: Pair, when: str) -> None:
    pair.first.refuse[when], pair.second.refuse[when] = DOWN, StoreError("second: no")
    with pytest.raises(StoreError, match=f"^{DOWN}; second: no$"):
        hand_over(pair.store(), OLD, pair.source)
    assert (pair.first.entries, pair.second.entries, pair.told) == ({}, {}, [])


def test_a_block_that_is_left_without_an_end_leaves_nothing_and_moves_nothing(pair: Pair) -> None:
    store = pair.store()
    with pytest.raises(ZeroDivisionError), store.begin(OLD) as entry:
        entry.finish([entry.put(b"x")][1 // 0 :])
    with store.begin(NEW) as entry:
        entry.put(b"x")
    assert (pair.first.left, pair.first.entries, store.name) == (["ZeroDivisionError", ""], {}, "first")


@pytest.mark.parametrize("when", ["save", "begin", "put", "finish"])
def test_one_taken_key_is_told_and_a_second_in_a_row_is_a_refusal(pair: Pair, when: str) -> None:
    store = pair.store()

    def keep(key: str) -> None:
        if when == "save":
            store.save(key, pair.source)
        else:
            hand_over(store, key, pair.source)

    pair.first.refuse[when] = StoreTakenError("first: taken")
    with pytest.raises(StoreTakenError):
        keep(OLD)
    assert (pair.second.calls, pair.told) == ([], [])
    pair.first.refuse.clear()
    keep(NEW)
    pair.first.refuse[when] = StoreTakenError("first: taken")
    with pytest.raises(StoreTakenError):
        keep(NEWEST)
    keep(f"{NEWEST[:-1]}e")
    assert (list(pair.first.entries), list(pair.second.entries)) == ([NEW], [f"{NEWEST[:-1]}e"])
    assert pair.told == ["CPR504: first: taken; keeping steps in second instead"]
