"""What is recorded on this machine, and what a store tells of the same job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.model import Status
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.plan import Planner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.model import Job, Record
    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["choosing", "to_take_over"]


def to_take_over(local: Mapping[str, Record], told: Mapping[str, Record]) -> dict[str, Record]:
    """The records of ``told`` that go before this machine's own.

    A finished step goes before an unfinished one, else the later one before the earlier. Where this is wrong, as clocks
    differ, a step runs once more: its fingerprint decides in the end.

    :param local: by step, as this machine has it.
    :param told: by step, as a store tells it.
    """
    return {step: record for step, record in told.items() if step not in local or _goes_before(record, local[step])}


def _goes_before(told: Record, local: Record) -> bool:
    done, is_later = told.status is Status.DONE, told.started > local.started
    same = told.fingerprint == local.fingerprint
    if local.status is not Status.DONE:
        # A run that died here in a step may have done what must not be done twice: only that very step settles it.
        return done and (same or local.status is not Status.RUNNING)
    if not done:
        return False
    if same:
        return told.result == local.result and told.archive is not None and (local.archive is None or is_later)
    return is_later


def choosing(
    job: Job, env: Mapping[str, str], digests: ContentDigests | None = None
) -> Callable[[Mapping[str, Record], Mapping[str, Record]], dict[str, Record]]:
    """What :func:`to_take_over` gives, but for steps that this machine has done with just what there is now.

    Another machine may have done them since with something else, on another branch, say: that is no news here.

    :param env: the outside environment.
    """

    def choose(local: Mapping[str, Record], told: Mapping[str, Record]) -> dict[str, Record]:
        taken = to_take_over(local, told)
        if not any(_is_torn(local.get(step), record) for step, record in taken.items()):
            return taken
        planner = Planner(job, local, env, digests=digests)
        for step in job.steps:
            record = taken.get(step.id)
            if record is None:
                continue
            mine = local.get(step.id)
            if mine is not None and _is_torn(mine, record) and fingerprint(planner.parts(step)) == mine.fingerprint:
                del taken[step.id]
            else:
                planner.recorded(record)
        return taken

    return choose


def _is_torn(local: Record | None, told: Record) -> bool:
    """Whether a step is done here and there, with different things."""
    return local is not None and local.status is Status.DONE and local.fingerprint != told.fingerprint
