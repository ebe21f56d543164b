"""What is recorded on this machine, put into a store without a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Status
from checkpoint_action.runner.merging import choosing
from checkpoint_action.runner.plan import Planner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Job
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.journal import Journal
    from checkpoint_action.runner.progress import ProgressFolders

__all__ = ["Pushed", "push"]

_SECONDS = 24 * 3600.0
_SECONDS_ON_STOP = 3.0


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was done.

    :param sent: ids of the steps that were handed over.
    :param there: ids of the done steps that the store has already.
    :param left: ids of the steps that stay here, with why.
    """

    sent: tuple[str, ...]
    there: tuple[str, ...]
    left: Mapping[str, str]


def push(
    job: Job,
    journal: Journal,
    env: Mapping[str, str],
    checkpoints: Checkpoints,
    progress: ProgressFolders,
    *,
    digests: ContentDigests | None = None,
) -> Pushed:
    """Hand over each done step whose files are as it left them, and the progress of unfinished ones.

    :param journal: the job's, which is held.
    :param progress: the steps' own folders.
    :raises StoreError: the store fails, and it is required.
    """
    planner = Planner(job, journal.records, env, digests=digests)
    choose = choosing(job, env, planner.digests)
    checkpoints.learn([step.id for step in job.steps], journal.records, choose=choose)
    sent: list[str] = []
    there: list[str] = []
    left: dict[str, str] = {}
    for step in job.steps:
        record = journal.records.get(step.id)
        decision = planner.foresee(step)
        if record is None:
            left[step.id] = "it has not run"
        elif record.status is not Status.DONE:
            if step.partial or step.id in progress.left():
                checkpoints.keep_unfinished(step, job, record, progress.of(step.id), stopping=False)
                sent.append(step.id)
            else:
                left[step.id] = f"it is {record.status.value}, and keeps no progress"
        elif decision.action is not Action.SKIP:
            left[step.id] = f"it is to run again ({decision.reason.value})"
        elif checkpoints.holds(record):
            there.append(step.id)
        elif fault := checkpoints.catch_up(step, record):
            left[step.id] = fault
        else:
            sent.append(step.id)
    checkpoints.finish(_SECONDS, _SECONDS_ON_STOP)
    return Pushed(tuple(sent), tuple(there), left)
