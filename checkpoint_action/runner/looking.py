"""What is recorded of a job and what a run would do, looked at from outside: also in the midst of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Reason, Status
from checkpoint_action.runner.journal import load
from checkpoint_action.runner.lock import JobLock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.model import Job, Plan, Record
    from checkpoint_action.runner.journal import StatePaths
    from checkpoint_action.runner.selection import Selection

__all__ = ["Foreseen", "Recorded", "foreseen", "recorded"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is recorded of a job.

    :param records: by step; what still says that it runs while no run is on reads as interrupted.
    :param warnings: lines a person should see.
    """

    records: Mapping[str, Record]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a run would do.

    :param warnings: lines a person should see.
    """

    plan: Plan
    warnings: tuple[str, ...]


def recorded(paths: StatePaths) -> Recorded:
    """Read what is recorded; writes nothing.

    :raises StateError: it cannot be read.
    """
    loaded = load(paths)
    records: Mapping[str, Record] = loaded.records
    if not JobLock(paths.lock).held():
        records = {step: _after_death(record) for step, record in records.items()}
    return Recorded(records, loaded.warnings)


def foreseen(
    job: Job,
    paths: StatePaths,
    env: Mapping[str, str],
    selection: Selection,
    *,
    trust_stat: bool,
    told: Callable[[Mapping[str, Record]], Mapping[str, Record]] = lambda _records: MappingProxyType({}),
) -> Foreseen:
    """Work out what a run would do; writes nothing.

    :param env: the outside environment.
    :param trust_stat: whether files are taken to be unchanged by size, times and inode.
    :param told: what a store tells besides these records of this machine, to go before them.
    :raises StateError: the state cannot be read.
    """
    from checkpoint_action.runner.plan import plan_job  # noqa: PLC0415  # reading records alone needs none of it

    loaded = load(paths)
    warnings = loaded.warnings
    going_on = JobLock(paths.lock).held()
    if going_on:
        warnings = (*warnings, "a run of this job is going on; this is how things stand in the middle of it")
    digests = None
    if trust_stat:
        from checkpoint_action.runner.digest_index import read_index  # noqa: PLC0415  # only where it is asked for
        from checkpoint_action.runner.hashing import ContentDigests  # noqa: PLC0415

        digests = ContentDigests(known=read_index(paths.index))
    records: Mapping[str, Record] = loaded.records
    if not selection.everything:
        records = {**records, **told(records)}
    if going_on:  # what runs has not died in the middle, and nothing waits for a person
        records = {step: _as_stopped(record) for step, record in records.items()}
    planned = plan_job(job, records, env, selection=selection, digests=digests)
    return Foreseen(_beside_a_run(planned, loaded.records) if going_on else planned, warnings)


def _as_stopped(record: Record) -> Record:
    return replace(record, status=Status.INTERRUPTED) if record.status is Status.RUNNING else record


def _beside_a_run(planned: Plan, records: Mapping[str, Record]) -> Plan:
    """A plan whose running steps are called so: they have not died."""
    running = {step for step, record in records.items() if record.status is Status.RUNNING}
    decisions = (
        replace(one, action=Action.RUN, reason=Reason.INTERRUPTED_BEFORE, detail="it is running right now")
        if one.step in running
        else one
        for one in planned.decisions
    )
    return replace(planned, decisions=tuple(decisions))


def _after_death(record: Record) -> Record:
    """A record as it reads when no run is on: what still says that it runs was cut off."""
    if record.status is not Status.RUNNING:
        return record
    return replace(record, status=Status.INTERRUPTED, error=record.error or "the run ended without a word")
