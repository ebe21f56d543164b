"""What a store tells of a job, and a store that does not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError
from tests.runner.machines import Machine, writing

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runner.memory_store import MemoryStore

pytestmark = [
    pytest.mark.usefixtures("no_pause"),
    pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them"),
]


@pytest.mark.parametrize("method", ["find", "read"])
def test_a_store_that_fails_to_tell_is_said_once_and_costs_nothing(
    one: Machine, other: Machine, store: MemoryStore, method: str
) -> None:
    one.run(one.step("a"))
    one.checkpoints.finish(30)
    store.refuse[method] = StoreError("memory: 503")
    assert other.checkpoints.learn() == {}
    other.run(other.step("a"))
    other.checkpoints.finish(30)
    assert len(other.warnings) == 1
    assert len(store.entries) == 1


@pytest.mark.parametrize("method", ["find", "read"])
def test_a_required_store_that_fails_to_tell_is_an_error(
    one: Machine, store: MemoryStore, tmp_path: Path, method: str
) -> None:
    one.run(one.step("a"))
    one.checkpoints.finish(30)
    store.refuse[method] = StoreError("memory: 503")
    strict = Machine(tmp_path / "strict", store, required=True)
    with pytest.raises(StoreError, match="503"):
        strict.checkpoints.learn()


def test_a_store_that_has_nothing_of_the_job_is_told_with_its_reach(store: MemoryStore, other: Machine) -> None:
    store.reach = "this job can read entries of refs/heads/main"
    assert other.checkpoints.learn(["a"]) == {}
    assert other.missed == ["this job can read entries of refs/heads/main"]
    assert other.warnings == []


def test_nothing_is_told_of_a_reach_where_there_is_a_checkpoint_or_the_store_fails(
    tmp_path: Path, store: MemoryStore, other: Machine
) -> None:
    one = Machine(tmp_path / "one", store)
    one.run(one.step("a"), writing("a", "a"))
    one.checkpoints.finish(60)
    other.checkpoints.learn(["a"])
    store.refuse["find"] = StoreError("memory: 503")
    failing = Machine(tmp_path / "failing", store)
    failing.checkpoints.learn(["a"])
    assert other.missed == failing.missed == []
