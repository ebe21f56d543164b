"""The steps that another machine has done in this very try of a run: what they have read there is not judged again.

A machine that runs one step of many has only the files that this step needs, and others have more. So what a step reads
without needing who leaves it, by its ``inputs``, differs from machine to machine, though nothing has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkpoint_action.model import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Job, Record
    from checkpoint_action.runner.keys import KeyScheme

__all__ = ["Settled", "everywhere"]

_READ = ("input", "unmatched")
_HANDED_ON = "value"


@dataclass(frozen=True, slots=True)
class Settled:
    """What is taken as it is.

    :param done: ids of the steps that were done in this try of the run.
    :param failed: ids of those that failed in it.
    :param everywhere: from :func:`everywhere`.
    """

    done: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    everywhere: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: Job, records: Mapping[str, Record], told: Mapping[str, str], keys: KeyScheme) -> Settled:
        """What this try of the run has settled.

        :param told: by step, the key of the archive that was the first to tell its record.
        """
        here = {
            step
            for step, key in told.items()
            if (origin := keys.origin(key)) is not None
            and (str(origin.run), str(origin.attempt)) == (keys.run, keys.attempt)
        }
        ended = {step: records[step].status for step in here if step in records}
        return cls(
            frozenset(step for step, status in ended.items() if status is Status.DONE),
            frozenset(step for step, status in ended.items() if status in (Status.FAILED, Status.TIMEOUT)),
            everywhere(job, records),
        )

    def parts(self, step: str, parts: Mapping[str, str], record: Record | None) -> Mapping[str, str]:
        """What a step consists of, as far as that is to be judged: of the rest what is on record."""
        if record is None or step not in self.done:
            return parts
        loose = {f"needs {need}" for need in self.everywhere}
        kinds = (*_READ, _HANDED_ON) if self.everywhere else _READ

        def counts(name: str) -> bool:
            return name not in loose and name.partition(" ")[0] not in kinds

        judged = {name: value for name, value in parts.items() if counts(name)}
        return judged | {name: value for name, value in record.parts.items() if not counts(name)}


def everywhere(job: Job, records: Mapping[str, Record]) -> frozenset[str]:
    """Ids of the steps that run on each machine that needs them.

    They are never skipped, as they prepare the machine itself, or hand on what nobody may keep.
    """
    withheld = {step for step, record in records.items() if record.status is Status.DONE and record.withheld}
    return frozenset(step.id for step in job.steps if step.always or step.id in withheld)
