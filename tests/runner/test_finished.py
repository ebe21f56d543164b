"""Finished steps, packed for other machines or left out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError
from checkpoint_action.model import Action, Layer, Reason
from checkpoint_action.runner import finished as module
from tests.runner.jobs import as_nobody, record
from tests.runner.machines import Machine, keep_each, writing

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runner.memory_store import MemoryStore

pytestmark = [
    pytest.mark.usefixtures("no_pause"),
    pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them"),
]

RESTORED = (Action.RESTORE, Reason.RESTORED)
SKIPPED = (Action.SKIP, Reason.DONE)


def gone_before_packing(machine: Machine) -> None:
    of = machine.step("a")
    machine.checkpoints.look(of.id, machine.digests)
    (machine.root / "f").write_text("f")
    layer = machine.checkpoints.changes(of, Layer(), machine.digests)
    (machine.root / "f").unlink()
    machine.checkpoints.keep(record(of, machine.root, layer=layer))


def test_a_step_that_cannot_be_packed_is_named_and_runs_again_elsewhere(one: Machine, other: Machine) -> None:
    gone_before_packing(one)
    one.run(one.step("b"), writing("b", "b"))
    one.checkpoints.finish(30)
    assert len(one.warnings) == 1
    assert "step 'a' is done but not kept" in one.warnings[0]
    assert other.resume(other.step("a"), other.step("b")) == [(Action.RUN, Reason.NEVER_RAN), RESTORED]


def test_a_step_that_cannot_be_packed_for_a_required_store_is_an_error(store: MemoryStore, tmp_path: Path) -> None:
    strict = Machine(tmp_path / "strict", store, required=True)
    with pytest.raises(StoreError, match="step 'a' could not be packed"):
        gone_before_packing(strict)


def test_an_older_record_of_a_step_that_was_not_kept_this_time_is_not_handed_on(
    one: Machine, other: Machine, store: MemoryStore
) -> None:
    one.run(one.step("a"), writing("f", "old"))
    one.checkpoints.finish(30)
    second = Machine(other.root.parent / "second", store)
    second.checkpoints.learn()
    gone_before_packing(second)
    second.run(second.step("b"))
    second.checkpoints.finish(30)
    assert other.resume(other.step("a"), other.step("b")) == [(Action.RUN, Reason.NEVER_RAN), SKIPPED]


def test_a_step_that_leaves_what_we_may_not_read_is_not_kept(public: Path, store: MemoryStore) -> None:
    one = Machine(public / "one", store)

    def closed(root: Path) -> None:
        (root / "data/deep").mkdir(parents=True)
        (root / "data/deep/f").write_text("")
        (root / "data").chmod(0)

    with as_nobody(one.root.parent):
        done = one.run(one.step("a"), closed)
        one.run(one.step("b"), writing("b", "b"))
        one.checkpoints.finish(30)
    assert done.layer.deleted == ()
    assert len(one.warnings) == 1
    assert "data/" in one.warnings[0]
    assert one.kept == [("b",)]
    (one.root / "data").chmod(0o755)


def test_a_step_whose_file_could_not_be_read_is_named_with_it(public: Path, store: MemoryStore) -> None:
    one = Machine(public / "one", store)

    def closed(root: Path) -> None:
        (root / "f").write_text("f")
        (root / "f").chmod(0)

    with as_nobody(one.root.parent):
        one.run(one.step("a", outputs=("f",)), closed)
        one.checkpoints.finish(30)
    assert one.warnings == ["step 'a' is done but not kept for other machines: f cannot be read"]


def out_of_memory(*_arguments: object, **_options: object) -> None:
    raise MemoryError


def test_what_a_finished_step_left_that_there_is_no_memory_to_pack_costs_a_warning(
    one: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "pack_layer", out_of_memory)
    one.run(one.step("a"), writing("f", "f"))
    one.checkpoints.finish(30)
    assert one.warnings == ["step 'a' is done but not kept for other machines: unexpected MemoryError"]


@pytest.mark.parametrize("limit", [0, 5, 11])
def test_a_step_that_leaves_more_than_the_limit_is_done_but_not_kept(
    tmp_path: Path, store: MemoryStore, limit: int
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


def test_a_step_within_the_limit_is_kept(tmp_path: Path, store: MemoryStore, other: Machine) -> None:
    one = Machine(tmp_path / "one", store, max_size=12)
    one.run(one.step("a"), lambda root: [(root / "small").write_text("abcd"), (root / "big").write_text("12345678")])
    one.checkpoints.finish(60)
    assert other.resume(other.step("a")) == [RESTORED]
    assert one.warnings == []


def test_what_another_machine_kept_of_a_step_is_not_handed_on_once_it_left_too_much(
    tmp_path: Path, store: MemoryStore, other: Machine
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
