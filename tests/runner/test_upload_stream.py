"""Large layers that go up while they are packed, and in pieces."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import BundleError, StoreError, StoreTakenError
from checkpoint_action.model import Status
from checkpoint_action.runner import sending, uploads
from tests.runner.desk import KEYS, PATIENCE, Desk
from tests.runner.memory_store import MemoryPieceStore, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20
LARGE = 12 * MIB


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_APART", 0.0)
    monkeypatch.setattr(sending, "ONE_BODY", 3 * MIB)
    monkeypatch.setattr(sending, "SLICE_SIZE", MIB)


@pytest.fixture
def store() -> Iterator[MemoryPieceStore]:
    made = MemoryPieceStore()
    yield made
    made.gate.set()


@pytest.fixture
def desk(tmp_path: Path, store: MemoryPieceStore) -> Desk:
    return Desk(tmp_path, store)


class Watched:
    """Waits, while a large layer is packed, until something else has happened."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event
        self.came = False

    def __call__(self, size: int) -> None:
        if size > sending.ONE_BODY:
            self.came = self.event.wait(PATIENCE)


def test_a_large_layer_goes_up_while_it_is_packed_and_its_header_last(desk: Desk, store: MemoryPieceStore) -> None:
    parcel = desk.bare("a", LARGE)
    watched = Watched(store.came)
    desk.pack(parcel, watched)
    assert watched.came
    desk.uploads.finish(PATIENCE)
    [key] = store.begun
    assert list(store.entries) == [key]
    assert desk.records()["a"]["archive"] == {"key": key, "layer": parcel.name}
    assert desk.restored("a", parcel.record.layer) == (desk.folder / "root-a/f").read_bytes()
    sizes = store.pieces[key]
    assert all(size >= MIB for size in sizes[:-3]), "only a layer's end, the archive's and the header may be small"
    assert "save" not in store.calls
    assert desk.kept == [(("a",), ())]
    assert (desk.warnings, desk.left()) == ([], [])


def test_a_small_layer_is_one_body_as_ever(desk: Desk, store: MemoryPieceStore) -> None:
    desk.pack(desk.bare("a", MIB))
    desk.uploads.finish(PATIENCE)
    assert store.calls == ["save"]
    assert desk.left() == []


def test_packing_never_waits_for_the_store(desk: Desk, store: MemoryPieceStore) -> None:
    parcel = desk.bare("a", LARGE)
    store.gate.clear()
    desk.pack(parcel, Watched(store.uploading))  # it returns though no piece gets through
    assert store.pieces == {store.begun[0]: []}
    store.gate.set()
    desk.uploads.finish(PATIENCE)
    assert desk.restored("a", parcel.record.layer) == (desk.folder / "root-a/f").read_bytes()


def test_what_finishes_meanwhile_goes_up_with_it_and_a_few_small_ones_are_one_piece(
    desk: Desk, store: MemoryPieceStore
) -> None:
    large, others = desk.bare("large", LARGE), [desk.parcel(name) for name in "abc"]

    def told(size: int) -> None:
        if size > sending.ONE_BODY and others:
            assert store.uploading.wait(PATIENCE)
            while others:
                desk.uploads.put(others.pop())

    store.gate.clear()
    desk.pack(large, told)
    store.gate.set()
    desk.uploads.finish(PATIENCE)
    [key] = store.entries
    assert {step: record["archive"]["key"] for step, record in desk.records().items()} == dict.fromkeys(
        ["large", "a", "b", "c"], key
    )
    assert sum(size < MIB for size in store.pieces[key]) <= 3
    assert sorted(desk.kept[0][0]) == ["a", "b", "c", "large"]
    assert desk.left() == []


def test_what_is_packed_goes_first_and_nothing_is_lost(desk: Desk, store: MemoryPieceStore) -> None:
    store.gate.clear()
    desk.pack(desk.bare("small", 100))
    assert store.uploading.wait(PATIENCE)
    layers = {}
    for name in ("x", "y"):
        parcel = desk.bare(name, LARGE)
        layers[name] = parcel.record.layer
        desk.pack(parcel)
    assert store.begun == []
    store.gate.set()
    desk.uploads.finish(PATIENCE)
    assert len(store.entries) == 2, "what gathers goes up together, in pieces where it is large"
    assert len(store.begun) == 1
    for name, layer in layers.items():
        assert desk.restored(name, layer) == (desk.folder / f"root-{name}/f").read_bytes()


def test_a_layer_that_fails_in_the_middle_leaves_nothing_visible_and_the_next_archive_has_a_new_key(
    desk: Desk, store: MemoryPieceStore
) -> None:
    parcel, waiting = desk.bare("a", LARGE), desk.parcel("b")

    def told(size: int) -> None:
        if size > sending.ONE_BODY:
            assert store.came.wait(PATIENCE)
            desk.uploads.put(waiting)
            raise BundleError("f changed before it was packed")

    with pytest.raises(BundleError, match="f changed"):
        desk.pack(parcel, told)
    desk.uploads.finish(PATIENCE)
    [(given_up, why)] = store.ended
    assert why is not None
    [key] = store.entries
    assert key != given_up
    assert sorted(desk.records()) == ["b"]
    assert (desk.kept, desk.warnings, desk.left()) == ([(("b",), ())], [], [])


def test_a_piece_that_fails_since_packing_has_is_no_fault_of_the_stores(desk: Desk, store: MemoryPieceStore) -> None:
    """The file is gone before the queue is told."""
    parcel = desk.bare("a", LARGE)
    failed = threading.Event()
    put = store.put

    def cannot_read(key: str, size: int) -> None:
        put(key, size)
        failed.set()
        raise StoreError("memory: cannot read a.layer")

    store.put = cannot_read  # type: ignore[method-assign]

    def told(size: int) -> None:
        if size > sending.ONE_BODY:
            assert failed.wait(PATIENCE)
            raise BundleError("f changed before it was packed")

    with pytest.raises(BundleError):
        desk.pack(parcel, told)
    store.put = put  # type: ignore[method-assign]
    desk.uploads.put(desk.parcel("b"))
    desk.uploads.finish(PATIENCE)
    assert sorted(desk.records()) == ["b"]
    assert desk.warnings == []


def test_a_store_that_fails_while_a_layer_is_packed_is_said_once_and_packing_ends_well(
    desk: Desk, store: MemoryPieceStore
) -> None:
    store.refuse["put"] = StoreError("memory: 503")
    desk.pack(desk.bare("a", LARGE), Watched(store.uploading))
    desk.uploads.finish(PATIENCE)
    desk.uploads._worker.join(PATIENCE)
    assert len(desk.warnings) == 1
    assert desk.warnings[0].startswith("CPR501: memory: 503; going on without the store")
    assert (store.entries, desk.kept, desk.left()) == ({}, [], [])


@pytest.mark.parametrize("where", ["begin", "finish"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_taken_key_is_replaced_once_on_this_way_too(
    desk: Desk, store: MemoryPieceStore, where: str, times: int
) -> None:
    called, left = store._called, [times]

    def count(name: str) -> None:
        called(name)
        if name == where and left[0]:
            left[0] -= 1
            raise StoreTakenError("memory: it is taken")

    store._called = count  # type: ignore[method-assign]
    parcel = desk.bare("a", LARGE)
    desk.pack(parcel)
    desk.uploads.put(desk.parcel("b"))
    desk.uploads.finish(PATIENCE)
    if times == 1:
        assert desk.restored("a", parcel.record.layer) == (desk.folder / "root-a/f").read_bytes()
        assert sorted(desk.records()) == ["a", "b"]
        assert desk.warnings == []
    else:
        desk.uploads._worker.join(PATIENCE)
        assert store.entries == {}
        assert len(desk.warnings) == 1
    assert desk.left() == []


def test_the_end_of_the_run_gives_up_what_does_not_get_through(desk: Desk, store: MemoryPieceStore) -> None:
    store.gate.clear()
    desk.pack(desk.bare("a", LARGE), Watched(store.uploading))
    desk.uploads.finish(0.0)
    assert desk.warnings == ["memory: not stored within 0 s, so another machine does it again: a"]
    store.gate.set()
    desk.uploads._worker.join(PATIENCE)
    assert not desk.uploads._worker.is_alive()
    assert len(store.ended) == 1
    assert len(desk.warnings) == 1


def test_a_stop_shortens_the_wait_for_it(desk: Desk, store: MemoryPieceStore) -> None:
    store.gate.clear()
    desk.pack(desk.bare("a", LARGE), Watched(store.uploading))
    desk.stopping.set()
    desk.uploads.finish(PATIENCE, 0.0)
    assert "another machine does it again: a" in desk.warnings[0]


def test_a_store_that_is_required_and_fails_meanwhile_is_an_error_at_the_end(
    tmp_path: Path, store: MemoryPieceStore
) -> None:
    desk = Desk(tmp_path, store, required=True)
    store.refuse["put"] = StoreError("memory: 503")
    desk.pack(desk.bare("a", LARGE), Watched(store.uploading))
    with pytest.raises(StoreError, match="not everything was stored"):
        desk.uploads.finish(PATIENCE)


def test_a_large_archive_of_a_store_that_takes_files_alone_is_one_file_in_the_end(tmp_path: Path) -> None:
    store = MemoryStore()
    desk = Desk(tmp_path, store)
    parcel = desk.bare("a", LARGE)
    desk.pack(parcel)
    desk.uploads.finish(PATIENCE)
    assert store.calls == ["save"]
    assert desk.restored("a", parcel.record.layer) == (desk.folder / "root-a/f").read_bytes()
    assert desk.left() == []


def test_no_archive_is_joined_on_the_disk_where_the_store_takes_pieces(desk: Desk, store: MemoryPieceStore) -> None:
    sizes: list[int] = []
    put = store.put

    def look(key: str, size: int) -> None:
        put(key, size)
        sizes.append(sum(path.stat().st_size for path in desk.folder.iterdir() if path.is_file()))

    store.put = look  # type: ignore[method-assign]
    desk.pack(desk.bare("a", LARGE))
    desk.uploads.finish(PATIENCE)
    assert LARGE < max(sizes) < LARGE + MIB


def test_many_large_and_small_layers_that_are_packed_at_once_all_arrive(desk: Desk, store: MemoryPieceStore) -> None:
    parcels = [desk.bare(f"s{number}", (5 * MIB, 100)[number % 2]) for number in range(8)]
    threads = [threading.Thread(target=desk.pack, args=(parcel,)) for parcel in parcels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    desk.uploads.finish(PATIENCE)
    for parcel in parcels:
        step = parcel.record.step
        assert desk.restored(step, parcel.record.layer) == (desk.folder / f"root-{step}/f").read_bytes()
    assert all(record["status"] == Status.DONE.value for record in desk.records().values())
    assert all(KEYS.origin(key) for key in store.entries)
    assert (desk.warnings, desk.left()) == ([], [])
