"""A resumed job leaves what a run from scratch leaves, and runs exactly the steps that had to run.

Random jobs, random edits between their runs, runs that are cut short. What has to run is thought out a second time by
:mod:`tests.resume.oracle`, which shares no code with the product.

Steps edit outputs of others only in such a way that doing it twice is doing it once, since a step that runs again finds
its own edit in the file. For the same reason no step of a story stops editing a file that is still made.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from tests.resume.disk import expanded
from tests.resume.edits import change
from tests.resume.machines import EngineMachine, ProgramMachine
from tests.resume.oracle import Oracle
from tests.resume.situation import Situation
from tests.resume.story import stories

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.resume.disk import Tree
    from tests.resume.drafts import SoundStep
    from tests.resume.machines import Machine, Planned
    from tests.resume.story import Round, Story

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and links as POSIX has them")


def declared(steps: Sequence[SoundStep], tree: Tree) -> Tree:
    """All declared outputs that a folder holds."""
    paths = {path for step in steps for path in expanded(tree, step.outputs, through=False)[0]}
    return {path: tree[path] for path in sorted(paths)}


def differences(found: Tree, wanted: Tree) -> list[str]:
    return [
        f"{path}: {found.get(path)} instead of {wanted.get(path)}"
        for path in sorted({*found, *wanted})
        if found.get(path) != wanted.get(path)
    ]


def check_plan(plan: Sequence[Planned], started: Sequence[str], skipped: Sequence[str]) -> None:
    """What was planned is what happened, but for steps that only wait for the result of another."""
    for one in plan:
        if one.action == "skip":
            assert one.step not in started, f"planned to be skipped, but ran: {one}"
        elif one.reason != "needs-changed":
            assert one.step not in skipped, f"planned to run, but skipped: {one}"


class Life:
    """One job from run to run.

    :param machine: makes the machines: the one it lives on, and those that start from scratch.
    :ivar lines: what happens, for whoever has to understand a failure.
    """

    def __init__(self, story: Story, machine: Callable[[Path], Machine]) -> None:
        self._story = story
        self._new_machine = machine
        self._told: list[str] = []
        self.lines: list[str] = []

    def live(self) -> None:
        """All rounds."""
        with tempfile.TemporaryDirectory() as folder:
            machine = self._new_machine(Path(folder).resolve())
            now = Situation(self._story.seeds, machine.disk)
            oracle = Oracle(now.known)
            for number, one in enumerate(self._story.rounds, 1):
                self.lines.append(f"--- run {number}")
                self.lines += [f"edit: {change(now, edit)}" for edit in one.edits]
                self._run(one, now, machine, oracle)

    def _run(self, one: Round, now: Situation, machine: Machine, oracle: Oracle) -> None:
        steps = now.steps()
        self._tell_job(steps)
        goes_on = self._story.continue_on_error
        assert differences(machine.disk.tree(), now.known.tree()) == []
        plan = machine.plan(steps, now.outside)
        cut = None if one.cut is None else replace(one.cut, at=one.cut.at % len(steps))
        expected = oracle.run(steps, now.outside, cut, continue_on_error=goes_on)
        cut_in = (expected.cut_in, cut) if cut is not None and expected.cut_in else None
        ran = machine.run(steps, now.outside, cut_in, jobs=one.jobs, continue_on_error=goes_on)
        self.lines += [
            f"outside: {now.outside}; {one.jobs} at once; cut: {cut_in}",
            f"planned: {', '.join(f'{one.step} {one.reason}' for one in plan)}",
            f"ran: {ran.started}; code {ran.code}; {ran.errors}",
            f"had to run: {expected.why}",
        ]
        # (b) What ran is what had to run.
        assert sorted(ran.started) == sorted(expected.ran)
        assert one.jobs > 1 or ran.started == expected.ran
        assert (ran.code == 0) == expected.whole
        assert ran.code is None or sorted(ran.skipped) == sorted(expected.skipped)
        check_plan(plan, ran.started, ran.skipped)
        # Nothing but the commands changes the workspace.
        tree = machine.disk.tree()
        assert differences(tree, now.known.tree()) == []
        # (a) What there is is what a run from scratch makes.
        if expected.whole:
            assert differences(declared(steps, tree), self._from_scratch(now, steps)) == []
            again = machine.plan(steps, now.outside)
            assert any(step.always for step in steps) or {one.action for one in again} == {"skip"}

    def _from_scratch(self, now: Situation, steps: Sequence[SoundStep]) -> Tree:
        """What the job leaves in an empty folder with the same sources."""
        with tempfile.TemporaryDirectory() as folder:
            machine = self._new_machine(Path(folder).resolve())
            for path, node in now.sources().items():
                machine.disk.put(path, node)
            ran = machine.run(steps, now.outside)
            assert (ran.code, ran.started) == (0, [step.name for step in steps])
            return declared(steps, machine.disk.tree())

    def _tell_job(self, steps: Sequence[SoundStep]) -> None:
        told = [str(step) for step in steps]
        if told != self._told:
            self.lines += ["the job:", *(f"  {text}" for text in told)]
        self._told = told


def check(story: Story, machine: Callable[[Path], Machine] = EngineMachine) -> None:
    life = Life(story, machine)
    try:
        life.live()
    except BaseException:
        note("\n".join(life.lines))
        raise


# Without a phase that explains failures: it traces every line, which takes hours here.
steady = settings(
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@pytest.mark.slow
@pytest.mark.timeout(900)  # a failure takes its time to be made small
@settings(steady, max_examples=150)
@given(stories())
def test_a_resumed_job_equals_one_from_scratch_and_runs_what_had_to_run(story: Story) -> None:
    # That records are on the disk at once is tested elsewhere, and would take most of the time here.
    with mock.patch.object(os, "fsync"):
        check(story)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(steady, max_examples=10)
@given(stories(5, most_runs=3, cuts=("early", "half", "late", "missing"), shells=("sh", "sh", "bash")))
def test_the_same_with_the_installed_program_and_real_shells(story: Story) -> None:
    check(story, ProgramMachine)
