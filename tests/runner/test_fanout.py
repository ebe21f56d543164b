"""A job taken apart into levels, and into what each machine has to have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, Decision, Entry, Job, Layer, Plan, Reason, Record, Status
from checkpoint_action.runner.fanout import MOST_LEGS, Level, files_of, level_of, matrix_text, part_of, to_judge
from checkpoint_action.runner.settled import Settled
from tests.runner.jobs import job, record, step

if TYPE_CHECKING:
    from pathlib import Path

DIAMOND = {"a": "", "b": "a", "c": "a", "d": "bc"}


def graph(root: Path, needs: dict[str, str]) -> Job:
    return job(root, *(step(name, root, needs=tuple(above), outputs="auto") for name, above in needs.items()))


def plan(of: Job, **actions: Action) -> Plan:
    """Steps run where nothing else is said."""
    return Plan("demo", tuple(Decision(one.id, actions.get(one.id, Action.RUN), Reason.DONE) for one in of.steps))


@pytest.mark.parametrize(
    ("done", "steps", "levels"),
    [("", "a", 3), ("a", "bc", 2), ("ab", "c", 2), ("abc", "d", 1), ("abcd", "", 0)],
)
def test_a_level_is_what_needs_nothing_that_is_to_run(tmp_path: Path, done: str, steps: str, levels: int) -> None:
    of = graph(tmp_path, DIAMOND)
    actions = {name: Action.RESTORE if name == "a" else Action.SKIP for name in done}
    assert level_of(of, plan(of, **actions)) == Level(tuple(steps), levels)


def test_what_waits_for_a_person_or_has_failed_keeps_back_what_needs_it(tmp_path: Path) -> None:
    of = graph(tmp_path, DIAMOND | {"e": ""})
    assert level_of(of, plan(of, a=Action.STOP)) == Level(("e",), 1)
    assert level_of(of, plan(of, a=Action.SKIP), failed={"b"}) == Level(("c", "e"), 1)


def test_a_step_for_every_machine_is_on_no_level_and_passes_on_what_it_waits_for(tmp_path: Path) -> None:
    of = graph(tmp_path, {"a": "", "l": "a", "b": "l", "c": ""})
    assert level_of(of, plan(of), everywhere={"l"}) == Level(("a", "c"), 2)
    assert level_of(of, plan(of, a=Action.SKIP), everywhere={"l"}) == Level(("b", "c"), 1)


def test_steps_that_a_plan_says_nothing_of_are_left_out(tmp_path: Path) -> None:
    of = graph(tmp_path, DIAMOND)
    assert level_of(of, Plan("demo", plan(of, a=Action.SKIP).decisions[:2])) == Level(("b",), 1)


def test_a_level_names_no_more_steps_than_a_matrix_may_have(tmp_path: Path) -> None:
    of = job(tmp_path, *(step(f"s{number}", tmp_path) for number in range(MOST_LEGS + 1)))
    assert len(level_of(of, plan(of)).steps) == MOST_LEGS


def test_a_matrix_is_one_line() -> None:
    assert matrix_text(Level()) == '{"include":[]}'
    text = matrix_text(Level(("a", "b.c"), 1))
    assert "\n" not in text
    assert json.loads(text) == {"include": [{"step": "a"}, {"step": "b.c"}]}


def test_a_machine_has_its_step_and_all_above_it(tmp_path: Path) -> None:
    of = graph(tmp_path, DIAMOND | {"e": ""})
    assert [one.id for one in part_of(of, "b").steps] == ["a", "b"]
    assert [one.id for one in part_of(of, "d").steps] == ["a", "b", "c", "d"]
    assert [one.id for one in part_of(of, "e").steps] == ["e"]
    chain = graph(tmp_path, {"a": "", "b": "a", "c": "b", "d": "c"})
    assert [one.id for one in part_of(chain, "c").steps] == ["a", "b", "c"]


def left(of: Job, **paths: str) -> dict[str, Record]:
    """Records of done steps, with the paths that each left."""
    found = {}
    for one in of.steps:
        if one.id in paths:
            entries = tuple(Entry(path, "file", 0o644, 1, 1, "0" * 64) for path in sorted(paths[one.id].split()))
            found[one.id] = record(one, of.root, layer=Layer(entries))
    return found


def test_files_of_are_those_of_all_that_is_needed_and_of_whom_they_were_changed(tmp_path: Path) -> None:
    of = graph(tmp_path, {"a": "", "b": "a", "x": "", "y": "", "z": ""})
    records = left(of, a="one", b="two", x="three", y="three four", z="five")
    assert files_of(of, records, ["b"]) == ["a", "b"]
    assert files_of(of, records, ["y"]) == ["x", "y"], "y has changed what x left, though it does not need x"
    assert files_of(of, records, []) == []
    del records["a"]
    assert files_of(of, records, ["b"]) == ["b"]
    records["b"] = replace(records["b"], status=Status.FAILED)
    assert files_of(of, records, ["b"]) == []


def test_to_judge_a_step_that_reads_what_another_left_its_files_have_to_be_there(tmp_path: Path) -> None:
    of = graph(tmp_path, {"a": "", "b": "", "c": "ab", "d": "c"})
    steps = (*of.steps[:2], replace(of.steps[2], inputs=("gen/*.h", "!gen/no.h")), of.steps[3])
    of = replace(of, steps=steps)
    records = left(of, a="gen/x.h", b="gen/no.h other", c="made", d="last")
    assert to_judge(of, records, Settled()) == ["a"]
    assert to_judge(of, records, Settled(done=frozenset("c"))) == [], "it is taken as it is"
    assert to_judge(of, {name: one for name, one in records.items() if name != "c"}, Settled()) == []
    records["b"] = replace(records["b"], layer=Layer(deleted=("gen/gone.h",)))
    assert to_judge(of, records, Settled()) == ["a", "b"]


def test_to_judge_a_step_that_reads_all_that_git_tracks_what_was_changed_has_to_be_there(tmp_path: Path) -> None:
    of = graph(tmp_path, {"a": "", "b": "", "c": "ab"})
    of = replace(of, steps=(*of.steps[:2], replace(of.steps[2], tracked_inputs=True)))
    records = left(of, a="new", b="README", c="made")
    assert to_judge(of, records, Settled()) == []
    records["b"] = replace(records["b"], layer=replace(records["b"].layer, before={"README": "1" * 64}))
    assert to_judge(of, records, Settled()) == ["b"]
