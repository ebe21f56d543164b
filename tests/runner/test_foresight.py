"""What a plan foresees of steps that need one that is going to run; and that a run does what the plan said."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkpoint_action.model import Action, Decision, Job, Layer, Reason, Record, Status, Step, Values
from checkpoint_action.runner import events
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.outputs import collect, result_for
from checkpoint_action.runner.plan import Planner, plan_job
from checkpoint_action.runner.process import Command, End, Limits, Outcome
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.selection import IT_NEEDS, Selection
from checkpoint_action.runner.stop import StopRequest
from tests.runner.jobs import job, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class World:
    """A job of which all steps are done, each with what it left and handed on."""

    def __init__(self, root: Path, *steps: Step, in_order: bool = False, **handed_on: Values) -> None:
        self.root = root
        self.steps = {one.id: one for one in steps}
        self.in_order = in_order
        self.records: dict[str, Record] = {}
        for one in steps:
            for pattern in one.outputs:
                (root / pattern).write_text(pattern)
            planner = Planner(self.job, self.records, {})
            parts = planner.parts(one)
            layer = collect(tuple(one.outputs), root, root, ContentDigests()) if one.outputs else Layer()
            mark = fingerprint(parts)
            self.records[one.id] = Record(
                *(one.id, Status.DONE, mark, one.command, parts),
                exit_code=0,
                layer=layer,
                result=result_for(layer, mark),
                values=handed_on.get(one.id, Values()),
            )

    @property
    def job(self) -> Job:
        return replace(job(self.root, *self.steps.values()), in_order=self.in_order)

    def change(self, name: str, **changes: Any) -> None:
        self.steps[name] = replace(self.steps[name], **changes)

    def recorded(self, name: str, **changes: Any) -> None:
        self.records[name] = replace(self.records[name], **changes)

    def plan(self, forced: Iterable[str] = (), selected: Iterable[str] = ()) -> dict[str, Decision]:
        chosen = Selection(forced=frozenset(forced), selected=frozenset(selected))
        return {one.step: one for one in plan_job(self.job, self.records, {}, selection=chosen).decisions}


def chain(root: Path, *names: str, outputs: Iterable[str] = ()) -> list[Step]:
    """Steps that each need the one before; those in ``outputs`` leave a file."""
    return [
        step(
            name,
            root,
            needs=tuple(names[at - 1 : at]),
            outputs=(f"{name}.out",) if name in outputs else (),
        )
        for at, name in enumerate(names)
    ]


SKIP = (Action.SKIP, Reason.DONE)
OPEN = "{} runs first; skipped after all if it leaves the same"


def short(decision: Decision) -> tuple[Action, Reason]:
    return decision.action, decision.reason


def test_what_a_step_without_outputs_leaves_is_known_before_it_runs(tmp_path: Path) -> None:
    world = World(tmp_path, *chain(tmp_path, "a", "b", "c"))
    world.change("a", command="false")
    plan = world.plan()
    planner = Planner(world.job, world.records, {})
    mark = fingerprint(planner.parts(world.steps["a"]))
    assert plan["b"] == Decision(
        "b", Action.RUN, Reason.NEEDS_CHANGED, f"a: result {world.records['a'].result[:12]} → {mark[:12]}"
    )
    assert short(plan["c"]) == (Action.RUN, Reason.NEEDS_CHANGED)
    assert plan["c"].detail.startswith(f"b: result {world.records['b'].result[:12]} → ")


@pytest.mark.parametrize("why", ["forced", "selected", "always", "failed", "forgotten"])
def test_where_it_leaves_the_same_nothing_after_it_runs(tmp_path: Path, why: str) -> None:
    world = World(tmp_path, *chain(tmp_path, "a", "b", "c"))
    if why == "always":
        world.change("a", always=True)
    elif why == "failed":
        world.recorded("a", status=Status.FAILED)
    elif why == "forgotten":
        del world.records["a"]
    plan = world.plan(forced=["a"] if why == "forced" else (), selected=["a"] if why == "selected" else ())
    assert plan["a"].action is Action.RUN
    assert [short(plan[name]) for name in "bc"] == [SKIP, SKIP]


def test_what_a_step_with_outputs_leaves_is_not(tmp_path: Path) -> None:
    world = World(tmp_path, *chain(tmp_path, "a", "b", "c", outputs=["a"]))
    plan = world.plan(forced={"a"})
    assert plan["b"] == Decision("b", Action.RUN, Reason.NEEDS_CHANGED, OPEN.format("a"))
    # Nor what a step leaves that may run because of it.
    assert plan["c"] == Decision("c", Action.RUN, Reason.NEEDS_CHANGED, OPEN.format("b"))


@pytest.mark.parametrize("outputs", ["auto", ("a.out",)])
def test_nor_of_a_step_that_keeps_all_that_changed(tmp_path: Path, outputs: Any) -> None:
    world = World(tmp_path, *chain(tmp_path, "a", "b"))
    world.change("a", outputs=outputs)
    assert world.plan()["b"].detail == OPEN.format("a")


def test_what_differs_in_any_case_is_named_first(tmp_path: Path) -> None:
    world = World(tmp_path, *chain(tmp_path, "a", "b", outputs=["a", "b"]))
    world.recorded("a", status=Status.TIMEOUT)
    (tmp_path / "b.out").write_text("edited")
    assert world.plan()["b"].reason is Reason.OUTPUT_CHANGED
    (tmp_path / "b.out").unlink()
    assert world.plan()["b"].reason is Reason.OUTPUT_MISSING
    world.change("b", command="false")
    assert world.plan()["b"].reason is Reason.COMMAND_CHANGED
    world.recorded("b", status=Status.FAILED, error="why")
    assert world.plan()["b"] == Decision("b", Action.RUN, Reason.FAILED_BEFORE, "why")


def test_a_new_need_is_named_whatever_it_leaves(tmp_path: Path) -> None:
    world = World(tmp_path, *chain(tmp_path, "a", "b", outputs=["a"]))
    world.steps = {"new": step("new", tmp_path, outputs=("x",)), **world.steps}
    world.change("b", needs=("a", "new"))
    assert world.plan()["b"] == Decision("b", Action.RUN, Reason.NEEDS_CHANGED, "new: result not needed → not done")


def test_a_step_that_is_held_leaves_nothing_new_for_those_that_read_it_without_needing_it(tmp_path: Path) -> None:
    held = step("a", tmp_path, outputs=("a.out",), on_crash="stop")
    reads = step("b", tmp_path, inputs=("a.out",))
    world = World(tmp_path, held, reads)
    world.recorded("a", status=Status.RUNNING)
    plan = world.plan()
    assert plan["a"].action is Action.STOP
    assert short(plan["b"]) == SKIP
    # One that is to run may leave something else there.
    world.recorded("a", status=Status.FAILED)
    assert world.plan()["b"] == Decision("b", Action.RUN, Reason.NEEDS_CHANGED, OPEN.format("a"))


VALUES = Values(env={"V": "1"})


@pytest.mark.parametrize("kept", [{"values": VALUES}, {"withheld": ("V",)}, {"values": Values(outputs={"o": ""})}])
def test_a_step_that_hands_on_values_may_hand_on_others(tmp_path: Path, kept: dict[str, Any]) -> None:
    world = World(tmp_path, *chain(tmp_path, "a", "b"), a=kept.get("values", Values()))
    world.recorded("a", **kept)
    assert world.plan(forced={"a"})["b"] == Decision("b", Action.RUN, Reason.NEEDS_CHANGED, OPEN.format("a"))


def test_values_of_a_step_that_is_not_done_are_not_known(tmp_path: Path) -> None:
    """Its record no longer tells them; that of the step that got them says that there were some."""
    world = World(tmp_path, *chain(tmp_path, "a", "b", "c"), a=VALUES)
    assert "value V" in world.records["c"].parts
    world.recorded("a", status=Status.FAILED, values=Values())
    assert [world.plan()[name].detail for name in "bc"] == [OPEN.format("a"), OPEN.format("b")]


@pytest.mark.parametrize("change", ["forced", "failed"])
def test_values_reach_later_steps_of_the_command_line_without_a_need(tmp_path: Path, change: str) -> None:
    steps = [step(name, tmp_path) for name in "abc"]
    world = World(tmp_path, *steps, in_order=True, b=VALUES)
    if change == "failed":
        world.recorded("b", status=Status.FAILED, values=Values())
    plan = world.plan(forced={"b"} if change == "forced" else ())
    assert short(plan["a"]) == SKIP
    assert plan["c"] == Decision("c", Action.RUN, Reason.NEEDS_CHANGED, OPEN.format("b"))
    # A step that handed on nothing is not waited for.
    assert short(world.plan(forced={"a"})["b" if change == "forced" else "a"])[0] is (
        Action.SKIP if change == "forced" else Action.RUN
    )


# ---- a run does what the plan said ----------------------------------------------------------------------------------

NAMES = ("s0", "s1", "s2", "s3", "s4")


class Folder:
    """One job in a folder, run by an engine whose steps write their outputs and nothing else."""

    def __init__(self, root: Path, steps: list[Step], contents: dict[str, str]) -> None:
        self.root = root
        (root / "state").mkdir()
        self.paths = StatePaths(root / "state", "demo")
        self.steps = steps
        self.contents = contents

    def _command(
        self,
        command: Command,
        _limits: Limits,
        _write: Callable[[bytes], None],
        _stop: StopRequest,
        *,
        started: Callable[[], None],
    ) -> Outcome:
        started()
        name = command.env["CHECKPOINT_STEP"]
        (self.root / f"{name}.out").write_text(self.contents[name])
        return Outcome(End.EXITED, 0, None, 1.0)

    def plan(self, selection: Selection) -> dict[str, Decision]:
        decisions = plan_job(job(self.root, *self.steps), load(self.paths).records, {}, selection=selection).decisions
        return {one.step: one for one in decisions}

    def run(self, selection: Selection | None = None, jobs: int = 1) -> tuple[dict[str, Decision], events.RunEnded]:
        told: list[events.Event] = []
        journal = Journal(self.paths, load(self.paths))
        journal.open()
        engine = Engine(
            job(self.root, *self.steps),
            journal,
            {},
            listener=told.append,
            write=lambda _data: None,
            stop=StopRequest(),
            options=RunOptions(selection=selection or Selection(), jobs=jobs),
            run=self._command,
        )
        ended = engine.run()
        journal.close()
        decided = [
            one.decision
            for one in told
            if isinstance(one, (events.StepStarted, events.StepSkipped, events.StepRestored, events.StepHeld))
        ]
        return {one.step: one for one in decided}, ended

    def damage(self, name: str, how: str) -> None:
        """Change something about a step that is done."""
        at = NAMES.index(name)
        file = self.root / f"{name}.out"
        if how == "command":
            self.steps[at] = replace(self.steps[at], command=self.steps[at].command + " ")
        elif how == "result":
            self.contents[name] += "x"
        elif how == "edit":
            file.write_text("edited")
        elif how == "remove":
            file.unlink(missing_ok=True)
        elif how == "always":
            self.steps[at] = replace(self.steps[at], always=True)
        else:
            self._record(name, how)

    def _record(self, name: str, how: str) -> None:
        journal = Journal(self.paths, load(self.paths))
        journal.open()
        if how == "forget":
            journal.forget([name])
        elif name in journal.records:
            journal.finish(replace(journal.records[name], status=Status(how), error="why"))
        journal.close()


HOW = ("command", "result", "edit", "remove", "always", "forget", "failed", "running")


@st.composite
def steps_of(draw: st.DrawFn) -> list[Step]:
    found = []
    for at, name in enumerate(NAMES):
        found.append(
            step(
                name,
                Path(),  # of which nothing is known yet
                needs=tuple(draw(st.lists(st.sampled_from(NAMES[:at]), unique=True))) if at else (),
                outputs=(f"{name}.out",) if draw(st.booleans()) else (),
                on_crash=draw(st.sampled_from(["rerun", "stop"])),
            )
        )
    return found


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    some = st.frozensets(st.sampled_from(NAMES))
    kind = draw(st.sampled_from(["all", "all", "only", "only", "forced", "selected", "everything"]))
    if kind == "only":
        return Selection(selected=draw(st.frozensets(st.sampled_from(NAMES), min_size=1)), only=True)
    if kind == "forced":
        return Selection(forced=draw(some))
    return Selection(selected=draw(some)) if kind == "selected" else Selection(everything=kind == "everything")


class Case(NamedTuple):
    """A job of which all steps are done, what then changes, and how it is run after that.

    :ivar damages: which step, and what of it.
    """

    steps: list[Step]
    damages: list[tuple[str, str]]
    selection: Selection
    jobs: int = 1


@st.composite
def cases(draw: st.DrawFn) -> Case:
    damages = st.tuples(st.sampled_from(NAMES), st.sampled_from(HOW))
    return Case(
        draw(steps_of()), draw(st.lists(damages, max_size=3)), draw(selections()), draw(st.sampled_from([1, 3]))
    )


def check(case: Case) -> tuple[dict[str, Decision], dict[str, Decision]]:
    """Compare a plan with the run that follows; what both have said."""
    selection = case.selection
    with tempfile.TemporaryDirectory() as place, mock.patch.object(os, "fsync"):
        root = Path(place).resolve()
        folder = Folder(root, [replace(one, cwd=root) for one in case.steps], {name: name for name in NAMES})
        assert folder.run()[1].exit_code == 0
        for name, how in case.damages:
            folder.damage(name, how)
        plan = folder.plan(selection)
        assert set(plan) == {one.id for one in selection.scope(job(root, *folder.steps))}
        decided, ended = folder.run(selection, jobs=case.jobs)
        assert set(decided) == set(plan)
        unknown: set[str] = set()  # steps of which only the run tells what they leave
        for one in folder.steps:
            if (foretold := plan.get(one.id)) is None:
                continue
            waits = bool(unknown.intersection(one.needs))
            if waits:
                assert may_become(foretold, decided[one.id])
            else:
                assert decided[one.id] == foretold
            if foretold.action in (Action.RUN, Action.STOP) and (waits or one.outputs):
                unknown.add(one.id)
        ran = [name for name, one in decided.items() if one.action is Action.RUN]
        held = [name for name, one in decided.items() if one.action is Action.STOP and not selection.leaves_out(name)]
        assert sorted(ended.ran) == sorted(ran)
        assert sorted(ended.held) == sorted(held)
        assert ended.exit_code == ((2 if selection.only else 1) if held else 0)
        if selection.only:
            assert set(ran) <= selection.selected
        left = load(folder.paths).records
        assert all(left[name].status is Status.DONE for name in ran)
        return plan, decided


def may_become(foretold: Decision, decided: Decision) -> bool:
    """Whether a run may decide so where a plan has said that, not knowing what a step that this one needs leaves."""
    if "skipped after all" in foretold.detail:
        return short(decided) in (SKIP, (foretold.action, Reason.NEEDS_CHANGED))
    if "left after all" in foretold.detail:
        left = decided.detail.startswith(IT_NEEDS) and decided.detail.endswith(" to --only")
        return decided == replace(foretold, detail="") or (left and short(decided) == (Action.STOP, Reason.SELECTED))
    if foretold.detail.startswith(IT_NEEDS):  # it may need still more of the kind
        return short(decided) == short(foretold) and decided.detail.startswith(IT_NEEDS)
    if foretold.reason is Reason.NEEDS_CHANGED:
        return short(decided) == short(foretold)
    # What it needs is named before what is wrong with its outputs.
    changed = foretold.reason in (Reason.OUTPUT_CHANGED, Reason.OUTPUT_MISSING)
    return decided == foretold or (changed and short(decided) == (foretold.action, Reason.NEEDS_CHANGED))


LEFT_IN_BETWEEN = Case(
    [
        step("s0", Path()),
        step("s1", Path(), outputs=("s1.out",)),
        step("s2", Path(), needs=("s0", "s1")),
        step("s3", Path(), needs=("s2",)),
        step("s4", Path()),
    ],
    [("s1", "result")],
    Selection(selected=frozenset(("s1", "s3")), only=True),
)
"""A step that is left out stands between two that are named, and has to run since the first leaves something else."""


HELD_BESIDE = Case(
    [
        step("s0", Path(), outputs=("s0.out",), on_crash="stop"),
        step("s1", Path(), inputs=("s0.out",)),
        *(step(name, Path()) for name in NAMES[2:]),
    ],
    [("s0", "running")],
    Selection(),
)
"""A step reads what another leaves, without needing it; a person has to decide about that one."""


def test_a_named_step_may_be_left_once_an_earlier_one_has_run() -> None:
    perhaps = Decision(
        "s3",
        *(Action.RUN, Reason.SELECTED),
        "left after all if s2 would have to run; to be sure, add s2 to --only",
    )
    plan, decided = check(LEFT_IN_BETWEEN)
    between = Decision("s2", Action.STOP, Reason.NEEDS_CHANGED, f"{OPEN.format('s1')}; --only leaves it out")
    assert (plan["s2"], plan["s3"]) == (between, perhaps)
    assert short(decided["s3"]) == (Action.STOP, Reason.SELECTED)
    assert decided["s3"].detail.startswith("it needs 's2', which would have to run (needs-changed: s1: result ")
    assert decided["s3"].detail.endswith("); add s2 to --only")
    # The same plan, and s1 leaves the same.
    plan, decided = check(LEFT_IN_BETWEEN._replace(damages=[]))
    assert (plan["s2"], plan["s3"]) == (between, perhaps)
    assert (short(decided["s2"]), decided["s3"]) == (SKIP, replace(perhaps, detail=""))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="files of the steps are replaced while they are looked at")
@settings(max_examples=40, deadline=None)
@example(LEFT_IN_BETWEEN)
@example(HELD_BESIDE)
@given(cases())
def test_a_run_does_what_the_plan_said(case: Case) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=600, deadline=None)
@given(cases())
def test_a_run_does_what_the_plan_said_in_many_more_cases(case: Case) -> None:
    check(case)
