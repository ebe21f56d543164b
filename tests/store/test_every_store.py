"""What holds for every store with a URL."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.model import Action, Reason
from checkpoint_action.runner import uploads
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.store.base import FilePart, Found, PieceStore
from checkpoint_action.store.object_reading import PART
from checkpoint_action.store.objects import ONE_BODY
from checkpoint_action.store.prune import prune
from checkpoint_action.store.urls import store_for
from tests.runner.machines import Machine, writing
from tests.store.contender import is_whole
from tests.store.places import KINDS, Place, make_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.store.layout import ListingStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
KEYS = KeyScheme("run7", job_slug("build", 1), "7", "1")
LARGE = ONE_BODY + PART + 12_345
# 60 shows more than the short form that runs each time.
SECONDS = float(os.environ.get("CHECKPOINT_CONTEND_SECONDS", "4"))
ignores_conditions = "rclone's server ignores If-None-Match"


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = make_place(request.param, request, tmp_path)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def store(place: Place) -> ListingStore:
    return store_for(place.url)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"an archive" * 1000)
    return path


def keys_of(store: ListingStore, prefix: str = "") -> set[str]:
    return {row.key for row in store.entries(prefix)}


@pytest.mark.parametrize("size", [1, 10_000, ONE_BODY, LARGE])
def test_an_archive_is_kept_found_fetched_and_read_in_parts(store: ListingStore, source: Path, size: int) -> None:
    content = os.urandom(size)
    source.write_bytes(content)
    assert store.find(KEYS.prefix) is None
    assert store.entries() == []
    key = KEYS.new("build", 3)
    store.save(key, source)
    found = store.find(KEYS.prefix)
    assert found is not None
    assert found.key == key
    target = source.with_name("target")
    store.fetch(found, target)
    assert target.read_bytes() == content
    assert store.read(found, 0, size + 100) == content
    assert store.read(found, size // 2, 5) == content[size // 2 :][:5]
    assert store.read(found, size, 5) == b""
    assert store.read(found, size + 7, 5) == b""
    assert store.read(found, 0, 0) == b""
    (row,) = store.entries()
    assert (row.key, row.size) == (key, size)
    assert store.find(key) == found


def test_the_newest_of_a_prefix_is_found_whatever_came_last(place: Place, source: Path) -> None:
    store = store_for(place.url, order=KEYS.origin)
    older = KeyScheme("run7", KEYS.job, "7", "2").new("build", 900)
    newer = KeyScheme("run7", KEYS.job, "7", "10").new("test", 5)
    for key in (newer, older, KeyScheme("run8", KEYS.job, "8", "1").new("test", 1)):
        store.save(key, source)
    assert store.find(KEYS.prefix) == Found(newer)
    assert store.find(KEYS.of_step("build")) == Found(older)
    assert store.find(KEYS.prefix.upper()) == Found(newer)
    assert store.find(KEYS.prefix[:-3]) == Found(newer)
    assert store.find("cpr1-run8") is not None
    missing = KeyScheme("run7", job_slug("build", 2), "7", "1").prefix
    assert store.find(missing) is None
    prefixes = [KEYS.of_step("build"), KEYS.prefix.upper(), missing, "cpr1-run8", KEYS.prefix[:-3]]
    assert store.find_each(prefixes) == [store.find(prefix) for prefix in prefixes]
    assert store.find_each([KEYS.of_step("build"), KEYS.of_step("test")]) == [Found(older), Found(newer)]
    assert store.find_each([missing]) == [None]


def test_where_nothing_else_is_said_the_greater_number_is_the_newer(store: ListingStore, source: Path) -> None:
    """It is made from the time; the runs of two systems are in no order."""
    there = KeyScheme("content", KEYS.job, "900", "3").new("a", 1)
    here = KeyScheme("content", KEYS.job, "local", "1").new("b", 2)
    for key in (here, there):
        store.save(key, source)
    assert store.find("cpr1-content-") == Found(here)


@pytest.mark.parametrize("size", [10_000, LARGE])
@pytest.mark.parametrize("first_size", [9_000, LARGE])
def test_a_key_that_is_taken_keeps_what_it_holds(
    place: Place, store: ListingStore, source: Path, size: int, first_size: int
) -> None:
    if place.kind == "rclone":
        pytest.skip(ignores_conditions)
    first = os.urandom(first_size)
    source.write_bytes(first)
    key = KEYS.new("build", 1)
    store.save(key, source)
    source.write_bytes(os.urandom(size))
    with pytest.raises(StoreTakenError):
        store.save(key, source)
    assert store.read(Found(key), 0, first_size + 1) == first


@pytest.mark.parametrize("size", [100, LARGE])
def test_of_many_who_want_one_key_one_gets_it(place: Place, store: ListingStore, tmp_path: Path, size: int) -> None:
    if place.kind == "rclone":
        pytest.skip(ignores_conditions)
    key = KEYS.new("build", 1)
    contents = {number: bytes([number]) * size for number in range(4)}
    won: list[int] = []
    lost: list[int] = []
    gate = threading.Barrier(len(contents))

    def work(number: int) -> None:
        source = tmp_path / f"source-{number}"
        source.write_bytes(contents[number])
        gate.wait(60)
        try:
            store.save(key, source)
            won.append(number)
        except StoreTakenError:
            lost.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert len(lost) == len(contents) - 1
    assert store.read(Found(key), 0, size + 1) == contents[won[0]]


@pytest.mark.parametrize("size", [10_000, LARGE])
def test_pieces_come_in_any_order_and_make_one_entry(store: ListingStore, source: Path, size: int) -> None:
    assert isinstance(store, PieceStore)
    content = os.urandom(size)
    source.write_bytes(b"#" * 10 + content)
    key = KEYS.new("build", 1)
    with store.begin(key) as entry:
        layer = entry.put(FilePart(source, 10, size))
        entry.put(b"of no use")
        header = entry.put(b"header")
        assert keys_of(store) == set()
        entry.finish([header, layer])
    assert store.read(Found(key), 0, size + 100) == b"header" + content


def test_what_is_not_finished_is_not_there(store: ListingStore, source: Path) -> None:
    assert isinstance(store, PieceStore)
    with suppress(ZeroDivisionError), store.begin(KEYS.new("build", 1)) as entry:
        entry.put(b"some")
        raise ZeroDivisionError
    with store.begin(KEYS.new("build", 1)) as entry:
        entry.put(b"some")
    assert store.entries() == []


@pytest.mark.parametrize("size", [10_000, LARGE])
def test_a_file_that_becomes_shorter_on_its_way_leaves_nothing(store: ListingStore, source: Path, size: int) -> None:
    assert isinstance(store, PieceStore)
    source.write_bytes(bytes(size - 1))
    key = KEYS.new("build", 1)
    with pytest.raises(StoreError, match="shorter"), store.begin(key) as entry:
        entry.finish([entry.put(FilePart(source, 0, size))])
    assert store.entries() == []
    source.write_bytes(b"all")
    store.save(key, source)  # nor does it hold the key
    assert store.read(Found(key), 0, 10) == b"all"


def test_an_entry_that_is_gone_is_missing(store: ListingStore, source: Path) -> None:
    key, other = KEYS.new("build", 1), KEYS.new("build", 2)
    store.save(key, source)
    store.save(other, source)
    store.delete(key)
    store.delete(key)
    target = source.with_name("target")
    with pytest.raises(StoreMissingError):
        store.fetch(Found(key), target)
    with pytest.raises(StoreMissingError):
        store.read(Found(key), 0, 10)
    assert not target.exists()
    assert keys_of(store) == {other}
    store.delete(other)
    assert store.find(KEYS.prefix) is None


def test_what_is_wrong_with_files_of_this_machine_is_not_taken_for_a_missing_entry(
    store: ListingStore, source: Path
) -> None:
    key = KEYS.new("build", 1)
    store.save(key, source)
    calls: list[Callable[[], object]] = [
        lambda: store.save(KEYS.new("build", 2), source.with_name("not there")),
        lambda: store.fetch(Found(key), source / "in" / "no folder"),
    ]
    for call in calls:
        with pytest.raises(StoreError) as caught:
            call()
        assert not isinstance(caught.value, StoreMissingError)
    assert keys_of(store) == {key}


@pytest.mark.parametrize("key", ["", "../outside", "a/b", ".hidden", "Upper", "a b", "a\nb", "ä"])
def test_what_cannot_be_a_key_is_refused(store: ListingStore, source: Path, key: str) -> None:
    for call in (lambda: store.save(key, source), lambda: store.read(Found(key), 0, 1), lambda: store.delete(key)):
        with pytest.raises(StoreError, match="cannot be a key"):
            call()


def test_keys_as_long_as_they_get(store: ListingStore, source: Path) -> None:
    scheme = KeyScheme("commit" + "a" * 40, job_slug("j" * 100, 1), "9" * 18, "999")
    key = scheme.new("s" * 100, 10**17)
    store.save(key, source)
    assert store.find(scheme.of_step_in_run("s" * 100)) == Found(key)


def test_steps_of_one_machine_are_restored_on_another_also_after_pruning(
    store: ListingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_APART", 0.0)
    one, other = Machine(tmp_path / "one", store), Machine(tmp_path / "other", store)
    names = ("first", "second", "large")
    for name in names[:2]:
        count = len(one.kept)
        one.run(one.step(name), writing(name, name))
        deadline = time.monotonic() + 60
        while len(one.kept) == count:
            assert time.monotonic() < deadline, one.warnings
            time.sleep(0.005)
    content = os.urandom(ONE_BODY + PART)
    one.run(one.step("large"), lambda root: (root / "large").write_bytes(content))
    one.checkpoints.finish(120)
    assert one.warnings == []
    assert len(keys_of(store)) == 3
    prune(store, older_than=-3600, keep=1, now=time.time())  # however young: all that the newest needs stays
    assert len(keys_of(store)) == 3
    assert other.resume(*map(other.step, names)) == [(Action.RESTORE, Reason.RESTORED)] * 3
    assert other.warnings == []
    assert (other.root / "first").read_text() == "first"
    assert (other.root / "large").read_bytes() == content


def test_processes_that_write_find_and_prune_at_once_lose_nothing(place: Place, store: ListingStore) -> None:
    # Where the server ignores conditions, a key that several want could be removed and made again.
    manner = "apart" if place.kind == "rclone" else "contested"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.contender", place.url, str(SECONDS), str(number), manner],
            cwd=ROOT,
            env={**os.environ, **place.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(8)
    ]
    told: dict[str, list[list[str]]] = {}
    faults: list[str] = []
    for process in processes:
        out, err = process.communicate(timeout=SECONDS + 300)
        if process.returncode:
            faults.append(err.decode())
        for line in out.decode().splitlines():
            word, *rest = line.split()
            told.setdefault(word, []).append(rest)
    assert not faults, faults[0]

    def said(*words: str) -> list[str]:
        return [rest[0] for word in words for rest in told.get(word, [])]

    there, pruned = keys_of(store), set(said("pruned"))
    assert len(said("root")) == 8
    assert pruned, "nothing was pruned, so this has shown little"
    assert said("lost") or place.kind == "rclone", "nobody met anybody, so this has shown little"
    assert set(said("root")) <= there  # the newest of each job needs it
    contested = set(said("won"))
    assert set(said("root", "wrote")) - pruned == there - contested
    assert contested - pruned == there & contested - pruned
    assert set(said("lost")) <= contested
    assert set(said("missed")) <= pruned
    if place.kind != "rclone":
        assert [key for key, wins in Counter(said("won")).items() if wins > 1 and key not in pruned] == []
    for key in there:
        content = store.read(Found(key), 0, 1 << 30)
        assert is_whole(content), key
