"""What a step needs, directly or through others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.model import Job, Step
from checkpoint_action.runner.ancestry import Ancestry


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 12))):
        chained = draw(st.booleans())
        needs = {number - 1} if chained and number else draw(st.sets(st.integers(0, max(number - 1, 0)), max_size=3))
        names = tuple(str(need) for need in sorted(needs) if need < number)
        steps.append(replace(Step(str(number), "x", "sh", Path("/")), needs=names))
    return Job("job", Path("/"), tuple(steps))


@given(jobs())
def test_it_is_all_that_walking_the_needs_reaches(job: Job) -> None:
    ancestry = Ancestry(job)
    expected: dict[str, set[str]] = {}
    for step in job.steps:
        expected[step.id] = {*step.needs}.union(*(expected[need] for need in step.needs))
    for step in (*job.steps, *reversed(job.steps)):
        above = ancestry.above(step.id)
        assert {one.id for one in job.steps if ancestry.positions[one.id] in above} == expected[step.id]
