"""Layers of archives, put back as a whole or not at all."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError
from checkpoint_action.runner import putting_back as module
from tests.runner.machines import Machine, build, keep_each, writing
from tests.store.trees import scan

if TYPE_CHECKING:
    from tests.runner.memory_store import MemoryStore

pytestmark = [
    pytest.mark.usefixtures("no_pause"),
    pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them"),
]


def test_a_changed_file_is_put_back_only_over_what_it_was(one: Machine, other: Machine) -> None:
    one.run(one.step("build"), build)
    one.checkpoints.finish(30)
    (other.root / "src/main.c").write_text("somebody's work")
    before = scan(other.root)
    with pytest.raises(StoreError, match=r"src/main\.c"):
        other.resume(other.step("build"))
    assert scan(other.root) == before


def test_a_damaged_layer_restores_nothing(one: Machine, other: Machine, store: MemoryStore) -> None:
    one.run(one.step("build"), build)
    one.checkpoints.finish(30)
    [(key, whole)] = store.entries.items()
    store.entries[key] = whole[:-3000] + bytes(byte ^ 255 for byte in whole[-3000:-2900]) + whole[-2900:]
    before = scan(other.root)
    with pytest.raises(StoreError):
        other.resume(other.step("build"))
    assert scan(other.root) == before
    assert list(other.archives.glob("side*")) == []


def test_an_evicted_archive_is_an_error_of_its_step_only(one: Machine, other: Machine, store: MemoryStore) -> None:
    store.gate.clear()
    one.run(one.step("a"), writing("a", "a"))
    assert store.uploading.wait(30)
    one.run(one.step("b"), writing("b", "b"))
    store.gate.set()
    one.checkpoints.finish(30)
    del store.entries[next(iter(store.entries))]
    records = other.checkpoints.learn()
    with pytest.raises(StoreError, match="not there"):
        other.checkpoints.restore(records["a"], lambda _path: ())
    other.checkpoints.restore(records["b"], lambda _path: ())
    assert (other.root / "b").exists()
    assert other.warnings == []


@pytest.mark.parametrize("where", ["unpack_layer", "apply_layer"])
def test_an_unexpected_fault_in_a_restore_is_a_store_error_of_one_line(
    one: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    keep_each(one, "a")
    records = other.checkpoints.learn()

    def fail(*_: object) -> None:
        raise RecursionError("deep\nand deeper")

    monkeypatch.setattr(module, where, fail)
    with pytest.raises(StoreError) as caught:
        other.checkpoints.restore(records["a"], lambda _path: ())
    assert str(caught.value) == "unexpected RecursionError: deep and deeper"
