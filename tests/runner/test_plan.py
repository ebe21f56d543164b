"""Each decision and its reason: the smallest change that causes it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.model import Action, ArchiveRef, Decision, Entry, Job, Layer, Reason, Record, Status
from checkpoint_action.runner.hashing import ContentDigests, text_digest
from checkpoint_action.runner.outputs import collect
from checkpoint_action.runner.ownership import Ownership
from checkpoint_action.runner.plan import Planner, plan_job
from checkpoint_action.runner.selection import Selection
from tests.runner.jobs import job, record, step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.model import Step


class World:
    """Two steps, ``a`` and ``b`` that needs it, both done: ``a`` left a.out, ``b`` read in.txt."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "in.txt").write_text("in")
        (root / "a.out").write_text("out")
        self.steps: dict[str, Step] = {
            "a": step("a", root, outputs=("a.out",), env={"V": "1"}, pass_env=("P",)),
            "b": step("b", root, needs=("a",), inputs=("in.txt",)),
        }
        layer = collect(("a.out",), root, root, ContentDigests())
        self.records = {"a": record(self.steps["a"], root, layer=layer)}
        self.records["b"] = record(self.steps["b"], root, needs={"a": self.records["a"].result})
        self.env: dict[str, str] = {}
        self.forced = False

    @property
    def job(self) -> Job:
        return job(self.root, *self.steps.values())

    def plan(self) -> tuple[Decision, ...]:
        return plan_job(self.job, self.records, self.env, selection=Selection(everything=self.forced)).decisions

    def change(self, name: str, **changes: Any) -> None:
        self.steps[name] = replace(self.steps[name], **changes)

    def recorded(self, name: str, **changes: Any) -> None:
        self.records[name] = replace(self.records[name], **changes)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_nothing_changed_skips_everything(world: World) -> None:
    assert world.plan() == (
        Decision("a", Action.SKIP, Reason.DONE),
        Decision("b", Action.SKIP, Reason.DONE),
    )


def test_looking_writes_nothing(world: World) -> None:
    before = {path: path.stat().st_mtime_ns for path in [world.root, *world.root.iterdir()]}
    world.plan()
    assert {path: path.stat().st_mtime_ns for path in [world.root, *world.root.iterdir()]} == before


def forget_a(world: World) -> None:
    del world.records["a"]


def set_forced(world: World) -> None:
    world.forced = True


def set_outside(world: World) -> None:
    world.env["P"] = ""


CHANGES: list[tuple[str, Callable[[World], object], Reason, str]] = [
    ("no record", forget_a, Reason.NEVER_RAN, ""),
    ("pending", lambda w: w.recorded("a", status=Status.PENDING), Reason.NEVER_RAN, ""),
    ("failed", lambda w: w.recorded("a", status=Status.FAILED, error="why"), Reason.FAILED_BEFORE, "why"),
    ("timeout", lambda w: w.recorded("a", status=Status.TIMEOUT, error="slow"), Reason.TIMED_OUT_BEFORE, "slow"),
    ("interrupted", lambda w: w.recorded("a", status=Status.INTERRUPTED), Reason.INTERRUPTED_BEFORE, ""),
    ("died in it", lambda w: w.recorded("a", status=Status.RUNNING), Reason.INTERRUPTED_BEFORE, ""),
    ("command", lambda w: w.change("a", command="false"), Reason.COMMAND_CHANGED, "true → false"),
    ("shell", lambda w: w.change("a", shell="bash"), Reason.COMMAND_CHANGED, "shell: system → bash"),
    ("folder", lambda w: w.change("a", cwd=w.root.parent, outputs=()), Reason.COMMAND_CHANGED, "working-directory: . "),
    ("env", lambda w: w.change("a", env={"V": "2"}), Reason.ENV_CHANGED, "V: value "),
    ("env added", lambda w: w.change("a", env={"V": "1", "W": ""}), Reason.ENV_CHANGED, "W: not declared → empty"),
    ("pass-env", set_outside, Reason.ENV_CHANGED, "P: unset → empty"),
    ("inputs", lambda w: w.change("a", inputs=("in.txt",)), Reason.INPUTS_CHANGED, "in.txt: not there → 0644 sha256"),
    ("needs", lambda w: w.change("a", needs=("z",)), Reason.NEEDS_CHANGED, "z: result not needed → not done"),
    ("output gone", lambda w: os.unlink(w.root / "a.out"), Reason.OUTPUT_MISSING, "a.out"),
    ("output edited", lambda w: (w.root / "a.out").write_text("x"), Reason.OUTPUT_CHANGED, "a.out: sha256 "),
    ("always", lambda w: w.change("a", always=True), Reason.ALWAYS, ""),
    ("forced", set_forced, Reason.FORCED, ""),
]


@pytest.mark.parametrize(("change", "reason", "detail"), [one[1:] for one in CHANGES], ids=[one[0] for one in CHANGES])
def test_the_smallest_change_that_runs_a_step(
    world: World, change: Callable[[World], object], reason: Reason, detail: str
) -> None:
    change(world)
    first, second = world.plan()
    assert (first.step, first.action, first.reason) == ("a", Action.RUN, reason)
    assert first.detail == detail if not detail else first.detail.startswith(detail)
    if reason is not Reason.FORCED:
        assert second.action is Action.RUN
        assert second.reason is Reason.NEEDS_CHANGED or reason is Reason.NEVER_RAN


@pytest.mark.skipif(sys.platform == "win32", reason="modes as POSIX has them")
def test_a_changed_mode_of_an_output_runs_its_step(world: World) -> None:
    (world.root / "a.out").chmod(0o755)
    assert world.plan()[0] == Decision("a", Action.RUN, Reason.OUTPUT_CHANGED, "a.out: mode 0644 → 0755")


def test_an_edited_input_runs_its_step_alone(world: World) -> None:
    (world.root / "in.txt").write_text("changed")
    first, second = world.plan()
    assert first.action is Action.SKIP
    assert (second.action, second.reason) == (Action.RUN, Reason.INPUTS_CHANGED)
    assert second.detail.startswith("in.txt: 0644 sha256 ")


def test_a_touched_input_or_output_runs_nothing(world: World) -> None:
    os.utime(world.root / "in.txt", ns=(1, 1))
    os.utime(world.root / "a.out", ns=(1, 1))
    assert {decision.action for decision in world.plan()} == {Action.SKIP}


def test_a_need_that_runs_first_is_named(world: World) -> None:
    world.change("a", always=True)
    assert world.plan()[1] == Decision(
        "b", Action.RUN, Reason.NEEDS_CHANGED, "a runs first; skipped after all if it leaves the same"
    )


def test_a_need_that_is_not_done_is_named(world: World) -> None:
    world.recorded("a", status=Status.FAILED)
    text = "a runs first; skipped after all if it leaves the same"
    assert world.plan()[1] == Decision("b", Action.RUN, Reason.NEEDS_CHANGED, text)


def test_an_upstream_that_ran_to_the_same_result_stops_the_wave(world: World) -> None:
    planner = Planner(world.job, world.records, {})
    planner.recorded(replace(world.records["a"], started=99.0, fingerprint="other", tries=3))
    second = world.steps["b"]
    assert planner.decide(second, planner.parts(second)).action is Action.SKIP


def test_an_upstream_with_another_result_goes_on_with_the_wave(world: World) -> None:
    planner = Planner(world.job, world.records, {})
    planner.recorded(replace(world.records["a"], result="f" * 64))
    second = world.steps["b"]
    found = planner.decide(second, planner.parts(second))
    assert (found.action, found.reason) == (Action.RUN, Reason.NEEDS_CHANGED)
    assert found.detail == f"a: result {world.records['a'].result[:12]} → ffffffffffff"


def test_a_step_that_was_kept_elsewhere_is_restored(world: World) -> None:
    world.recorded("a", archive=ArchiveRef("key", "layer"))
    (world.root / "a.out").unlink()
    assert world.plan() == (
        Decision("a", Action.RESTORE, Reason.RESTORED, "a.out"),
        Decision("b", Action.SKIP, Reason.DONE),
    )


def test_a_restored_step_whose_outputs_are_there_is_skipped(world: World) -> None:
    world.recorded("a", archive=ArchiveRef("key", "layer"))
    assert world.plan()[0].action is Action.SKIP


def test_records_go_by_id_and_not_by_place(world: World) -> None:
    world.change("b", needs=())
    world.records["b"] = record(world.steps["b"], world.root)
    world.steps = {"b": world.steps["b"], "new": step("new", world.root), "a": world.steps["a"]}
    assert [(decision.step, decision.reason) for decision in world.plan()] == [
        ("b", Reason.DONE),
        ("new", Reason.NEVER_RAN),
        ("a", Reason.DONE),
    ]


def test_records_of_steps_that_are_no_more_are_no_matter(world: World) -> None:
    world.records["old"] = replace(world.records["a"], step="old")
    assert {decision.action for decision in world.plan()} == {Action.SKIP}


def file(path: str, content: str) -> Entry:
    return Entry(path, "file", 0o644, 1, len(content), text_digest(content))


def done(name: str, root: Path, layer: Layer) -> tuple[Step, Record]:
    one = step(name, root)
    return one, record(one, root, layer=layer)


def test_an_earlier_step_is_not_blamed_for_the_edit_of_a_later_one(tmp_path: Path) -> None:
    first, first_record = done("a", tmp_path, Layer((file("f", "1"), file("g", "1"))))
    second, second_record = done("b", tmp_path, Layer((file("f", "2"),), deleted=("g",)))
    (tmp_path / "f").write_text("2")
    both = {"a": first_record, "b": second_record}
    plan = plan_job(job(tmp_path, first, second), both, {})
    assert [decision.action for decision in plan.decisions] == [Action.SKIP, Action.SKIP]
    (tmp_path / "f").write_text("1")
    plan = plan_job(job(tmp_path, first, second), both, {})
    assert [decision.reason for decision in plan.decisions] == [Reason.OUTPUT_CHANGED, Reason.OUTPUT_CHANGED]


def test_once_the_later_step_is_not_done_the_earlier_one_answers_for_the_file(tmp_path: Path) -> None:
    first, first_record = done("a", tmp_path, Layer((file("f", "1"),)))
    second, second_record = done("b", tmp_path, Layer((file("f", "2"),)))
    (tmp_path / "f").write_text("half")
    records = {"a": first_record, "b": replace(second_record, status=Status.INTERRUPTED)}
    plan = plan_job(job(tmp_path, first, second), records, {})
    assert [decision.reason for decision in plan.decisions] == [Reason.OUTPUT_CHANGED, Reason.INTERRUPTED_BEFORE]


def test_ownership_knows_each_content_that_was_left() -> None:
    owners = Ownership()
    owners.put(0, Layer(), Layer((file("f", "1"),)))
    owners.put(2, Layer(), Layer(deleted=("f",)))
    owners.put(1, Layer(), Layer((file("f", "2"),)))
    assert owners.wanted(["f"]) == {"f": None}
    assert owners.known_contents("f") == {text_digest("1"), text_digest("2"), ""}
    owners.put(2, Layer(deleted=("f",)), Layer())
    assert owners.wanted(["f"]) == {"f": file("f", "2")}
    owners.put(1, Layer((file("f", "2"),)), Layer((file("g", "2"),)))
    assert owners.wanted(["f", "g"]) == {"f": file("f", "1"), "g": file("g", "2")}
    assert owners.known_contents("nothing") == set()
