"""How a run ended, for who called it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from checkpoint_action.errors import RunFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Record, Values
    from checkpoint_action.runner.events import RunEnded

__all__ = ["Result", "result_of"]


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended.

    :param job: the job's name.
    :param result: ``"success"``, ``"failure"``, or ``"incomplete"`` where it stopped before the end on purpose.
    :param exit_code: what the command line would have exited with: 0, 1, 2, 75 or 128+n.
    :param ran: ids of the steps that ran, to whatever end.
    :param skipped: ids of those that were done already.
    :param restored: ids of those whose files were put back.
    :param failed: ids of those that failed or ran out of time.
    :param pending: ids of those that did not start.
    :param held: ids of those that wait for a person; they are pending too.
    :param outputs: what each step that is done wrote to ``$GITHUB_OUTPUT``, by id.
    :param values: all that each of these hands on, by id; with secrets, which are kept nowhere else.
    :param records: what is recorded of each step now, by id.
    :param seconds: the run took.
    :param saved: seconds that the steps which did not run took when they did.
    """

    job: str
    result: Literal["success", "failure", "incomplete"]
    exit_code: int
    ran: tuple[str, ...]
    skipped: tuple[str, ...]
    restored: tuple[str, ...]
    failed: tuple[str, ...]
    pending: tuple[str, ...]
    held: tuple[str, ...]
    outputs: Mapping[str, Mapping[str, str]] = field(repr=False)
    values: Mapping[str, Values] = field(repr=False)
    records: Mapping[str, Record] = field(repr=False)
    seconds: float
    saved: float

    def check(self) -> None:
        """See that all steps are done.

        :raises RunFailedError: they are not.
        """
        if self.exit_code == 0:
            return
        if self.failed:
            told = f"step '{self.failed[0]}' failed: {self.records[self.failed[0]].error}"
        elif self.held:
            told = f"step '{self.held[0]}' waits for a person"
        else:
            told = f"stopped before the end, {len(self.pending)} steps are left; run it again"
        raise RunFailedError(f"job {self.job}: {told}", self.exit_code)


def result_of(ended: RunEnded, values: Mapping[str, Values], records: Mapping[str, Record]) -> Result:
    """The result of a run.

    :param values: what each step hands on.
    :param records: what is recorded of each.
    """
    return Result(
        job=ended.job,
        result="incomplete" if ended.incomplete else "success" if ended.exit_code == 0 else "failure",
        exit_code=ended.exit_code,
        ran=ended.ran,
        skipped=ended.skipped,
        restored=ended.restored,
        failed=ended.failed,
        pending=ended.pending,
        held=ended.held,
        outputs={step: dict(one.outputs) for step, one in values.items() if one.outputs},
        values=values,
        records=dict(records),
        seconds=ended.seconds,
        saved=ended.saved,
    )
