"""A job taken apart: which of its steps can run now, each on a machine of its own, and what such a machine runs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Status
from checkpoint_action.runner.ancestry import Ancestry
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.runner.progress import covered
from checkpoint_action.runner.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from checkpoint_action.model import Job, Plan, Record, Step
    from checkpoint_action.runner.settled import Settled

__all__ = [
    "MOST_LEGS",
    "Level",
    "files_of",
    "foresee_level",
    "level_of",
    "matrix_text",
    "part_of",
    "to_judge",
    "without_always",
]

MOST_LEGS = 256
"""Steps that are named for one level: GitHub makes no more jobs of one matrix. The others come with the next level."""


@dataclass(frozen=True, slots=True)
class Level:
    """The steps that can run at once.

    :param steps: ids, in the job's order.
    :param levels: how many levels are left, this one among them; none where nothing is to run.
    """

    steps: tuple[str, ...] = ()
    levels: int = 0


def matrix_text(level: Level) -> str:
    """A level as what ``strategy.matrix`` takes: one line of JSON."""
    return json.dumps({"include": [{"step": step} for step in level.steps]}, separators=(",", ":"))


def level_of(job: Job, plan: Plan, everywhere: Collection[str] = (), failed: Collection[str] = ()) -> Level:
    """The next level of a job of which a plan says what is to run.

    :param everywhere: ids of steps that run along with each that needs them, and are on no level of their own.
    :param failed: ids of steps that are not tried again.
    """
    decisions = {decision.step: decision.action for decision in plan.decisions}
    depths: dict[str, int] = {}
    first = []
    for step in job.steps:
        if step.id not in decisions or step.id in failed or decisions[step.id] is Action.STOP:
            continue
        if any(need not in depths for need in step.needs):
            continue  # it waits for one that does not run
        depth = max((depths[need] for need in step.needs), default=0)
        if decisions[step.id] is Action.RUN and step.id not in everywhere:
            depth += 1
            if depth == 1:
                first.append(step.id)
        depths[step.id] = depth
    return Level(tuple(first[:MOST_LEGS]), max(depths.values(), default=0))


def foresee_level(
    job: Job, records: Mapping[str, Record], env: Mapping[str, str], settled: Settled
) -> tuple[Plan, Level]:
    """The plan of a job whose steps run on machines of their own, and its next level.

    :param env: the outside environment.
    """
    known = {
        step: replace(record, withheld=()) if step in settled.everywhere else record for step, record in records.items()
    }
    plan = plan_job(without_always(job), known, env, selection=Selection(settled=settled))
    return plan, level_of(job, plan, settled.everywhere, settled.failed)


def without_always(job: Job) -> Job:
    """The job with steps that are done once they are done: what they leave does not differ each time."""
    return replace(job, steps=tuple(replace(step, always=False) for step in job.steps))


def part_of(job: Job, step: str) -> Job:
    """The job of a machine that runs one step: the step, and all that it needs, directly or not."""
    ancestry = Ancestry(job)
    above = ancestry.above(step)
    last = ancestry.positions[step]
    return replace(job, steps=tuple(one for at, one in enumerate(job.steps) if at == last or at in above))


def files_of(job: Job, records: Mapping[str, Record], wanted: Collection[str]) -> list[str]:
    """The done steps whose files have to be there for some steps, in the job's order.

    :param wanted: ids; those of them that are done are among the result, and so is all that they need. Where a step
        has changed or removed what another one left without needing it, that one's files come first.
    """
    ancestry = Ancestry(job)
    owners: dict[str, list[int]] = {}
    for at, step in enumerate(job.steps):
        for path in _paths(records.get(step.id)):
            owners.setdefault(path, []).append(at)
    reached: set[int] = set()
    todo = [ancestry.positions[step] for step in wanted]
    while todo:
        at = todo.pop()
        if at in reached:
            continue
        reached.add(at)
        step = job.steps[at]
        todo += (ancestry.positions[need] for need in step.needs)
        todo += (owner for path in _paths(records.get(step.id)) for owner in owners[path] if owner < at)
    return [step.id for at, step in enumerate(job.steps) if at in reached and _is_done(records.get(step.id))]


def to_judge(job: Job, records: Mapping[str, Record], settled: Settled) -> list[str]:
    """The done steps whose files have to be there for a plan, as other done steps read them by their inputs."""
    ancestry = Ancestry(job)
    read: set[str] = set()
    for step in job.steps:
        if not _is_done(records.get(step.id)) or step.id in settled.done:
            continue
        above = ancestry.above(step.id)
        for at, other in enumerate(job.steps):
            if at in above and other.id not in read and _reads(step, job, records.get(other.id)):
                read.add(other.id)
    return files_of(job, records, read)


def _reads(step: Step, job: Job, record: Record | None) -> bool:
    """Whether a step reads what another one left."""
    if record is None or record.status is not Status.DONE or (step.inputs is None and not step.tracked_inputs):
        return False
    if step.tracked_inputs and record.layer.before:  # it has changed what was there before it
        return True
    if step.inputs is None:
        return False
    kinds = dict.fromkeys(record.layer.deleted, False)
    kinds.update((entry.path, entry.type == "dir") for entry in record.layer.entries)
    return any(
        covered(step.inputs, step.cwd, os.path.normpath(locate(job.root, path)), folder=folder)
        for path, folder in kinds.items()
    )


def _paths(record: Record | None) -> list[str]:
    if record is None or record.status is not Status.DONE:
        return []
    return [*(entry.path for entry in record.layer.entries), *record.layer.deleted]


def _is_done(record: Record | None) -> bool:
    return record is not None and record.status is Status.DONE
