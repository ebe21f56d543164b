"""The queue of uploads while anything may go wrong at any call of the store, and with any layer."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import BundleError, StoreDeniedError, StoreError, StoreTakenError
from checkpoint_action.runner import sending, uploads
from tests.runner.desk import PATIENCE, Desk
from tests.runner.memory_store import MemoryPieceStore, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checkpoint_action.runner.parcels import Parcel

KIB = 1 << 10
ERRORS: list[Exception] = [
    StoreError("memory: 503"),
    StoreDeniedError("memory: 403"),
    StoreTakenError("memory: taken"),
    RuntimeError("a bug"),
]


@pytest.fixture(autouse=True)
def small_sizes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uploads, "_APART", 0.0)
        patch.setattr(sending, "ONE_BODY", 100 * KIB)
        patch.setattr(sending, "SLICE_SIZE", 30 * KIB)
        yield


def fail_at(store: MemoryStore, faults: dict[int, Exception]) -> None:
    """Have calls fail, by their number."""
    called, lock, count = store._called, threading.Lock(), [0]

    def call(name: str) -> None:
        with lock:
            number, count[0] = count[0], count[0] + 1
        called(name)
        if number in faults:
            raise faults[number]

    store._called = call  # type: ignore[method-assign]


def pack(desk: Desk, parcel: Parcel, fails_at: int) -> bool:
    """Pack a layer, which fails once so much of it is there; whether it did not."""

    def told(size: int) -> None:
        if size > fails_at:
            raise BundleError("f changed before it was packed")

    try:
        desk.pack(parcel, told)
    except BundleError:
        return False
    return True


def check(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        check_in(Path(name), data)


def check_in(folder: Path, data: st.DataObject) -> None:
    store = MemoryPieceStore() if data.draw(st.booleans()) else MemoryStore()
    fail_at(store, data.draw(st.dictionaries(st.integers(0, 15), st.sampled_from(ERRORS), max_size=3)))
    desk = Desk(folder, store)
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 50 * KIB, 110 * KIB, 5000 * KIB]), min_size=1, max_size=5))
    failures = [data.draw(st.sampled_from([1 << 40] * 3 + [1000, 120 * KIB])) for _ in sizes]
    parcels = [desk.bare(f"s{number}", size) for number, size in enumerate(sizes)]
    packed: dict[str, bool] = {}

    def work(parcel: Parcel, fails_at: int) -> None:
        packed[parcel.record.step] = pack(desk, parcel, fails_at)

    if data.draw(st.booleans()):
        threads = [threading.Thread(target=work, args=pair) for pair in zip(parcels, failures, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        for pair in zip(parcels, failures, strict=True):
            work(*pair)
    desk.uploads.finish(PATIENCE)
    desk.uploads._worker.join(PATIENCE)
    assert not desk.uploads._worker.is_alive()

    kept = [step for done, _ in desk.kept for step in done]
    assert len(kept) == len(set(kept))
    assert not set(kept) - {step for step, well in packed.items() if well}
    if not desk.warnings:
        assert sorted(kept) == sorted(step for step, well in packed.items() if well)
    assert len(desk.warnings) <= 1
    told = desk.records() if store.entries else {}
    assert set(kept) <= set(told), "what is said to be kept is"
    for parcel in parcels:
        step = parcel.record.step
        if step in told:
            assert packed[step]
            assert desk.restored(step, parcel.record.layer) == (folder / f"root-{step}/f").read_bytes()
    assert desk.left() == []


quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@settings(quick, max_examples=20)
@given(st.data())
def test_what_is_said_to_be_kept_can_be_restored_and_nothing_else_is_told(data: st.DataObject) -> None:
    check(data)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(quick, max_examples=500)
@given(st.data())
def test_what_is_said_to_be_kept_can_be_restored_and_nothing_else_is_told_in_many_more_cases(
    data: st.DataObject,
) -> None:
    check(data)
