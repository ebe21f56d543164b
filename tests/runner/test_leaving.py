"""Done steps that are left alone, until one of them has to run after all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.errors import TornError
from checkpoint_action.runner.leaving import LeftAlone
from tests.runner.jobs import record, step

if TYPE_CHECKING:
    from pathlib import Path


def test_a_step_is_left_unless_what_it_needs_has_run(tmp_path: Path) -> None:
    left = LeftAlone({"b"}, lambda _record: "")
    assert left.takes(step("b", tmp_path, needs=("a",)), ())
    assert not left.takes(step("b", tmp_path, needs=("a",)), ("a",))
    assert not left.takes(step("c", tmp_path), ())


def test_all_that_was_left_is_put_back_once_and_in_order(tmp_path: Path) -> None:
    back: list[str] = []
    faults = {"b": "the store is down"}
    torn: list[TornError] = []

    def put_back(one: object) -> str:
        name = getattr(one, "step", "")
        back.append(name)
        if torn:
            raise torn.pop()
        return faults.get(name, "")

    left = LeftAlone({"a", "b", "c"}, put_back)
    for name in ("a", "b"):
        left.put_off(record(step(name, tmp_path), tmp_path))
    assert left.make_good(step("another", tmp_path)) == ""
    assert back == []
    assert left.make_good(step("c", tmp_path)) == "'b' cannot be put back: the store is down"
    torn.append(TornError("half of it is there"))
    assert left.make_good(step("c", tmp_path)) == "'b' cannot be put back: half of it is there"
    faults.clear()
    assert left.make_good(step("c", tmp_path)) == ""
    assert left.make_good(step("c", tmp_path)) == ""
    assert back == ["a", "b", "b", "b"]
