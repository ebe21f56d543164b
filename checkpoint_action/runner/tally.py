"""What has become of the steps of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.model import Status
from checkpoint_action.runner.events import RunEnded

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from checkpoint_action.model import Decision, Record

__all__ = ["INCOMPLETE", "Tally"]

INCOMPLETE = 75
"""Exit code of a run that stopped before the end on purpose (EX_TEMPFAIL of sysexits.h)."""

_FAILED = 1
_LEFT_OUT = 2  # what was asked for cannot be done in this way
_STOPPED = 128


class Tally:
    """Counts the steps of one run.

    :param steps: ids of all that are looked at.
    :param left_out_is_wrong: whether a held step means that the command line asked for too few.
    """

    def __init__(self, steps: Sequence[str], *, left_out_is_wrong: bool = False) -> None:
        self.steps = tuple(steps)
        self._left_out_is_wrong = left_out_is_wrong
        self._ran: dict[str, None] = {}
        self._skipped: list[str] = []
        self._restored: list[str] = []
        self._held: list[str] = []
        self._stopped: list[str] = []
        self._saved = 0.0
        self.failed: list[str] = []
        self.out_of_budget = False

    @property
    def ran_ids(self) -> Collection[str]:
        """Ids of the steps that ran, in order; the collection grows with them."""
        return self._ran.keys()

    @property
    def settled(self) -> frozenset[str]:
        """Ids of the steps that were run, skipped or restored."""
        return frozenset({*self._ran, *self._skipped, *self._restored})

    def ran(self, record: Record) -> None:
        """A step ran, to whatever end."""
        self._ran[record.step] = None
        if record.status in (Status.FAILED, Status.TIMEOUT):
            self.failed.append(record.step)
        elif record.status is Status.INTERRUPTED:
            self._stopped.append(record.step)

    def skipped(self, record: Record) -> None:
        """A step was done already."""
        self._skipped.append(record.step)
        self._saved += record.duration

    def restored(self, record: Record) -> None:
        """A step was done already and its files were put back."""
        self._restored.append(record.step)
        self._saved += record.duration

    def held(self, decision: Decision) -> None:
        """A step was to run, and must not be started."""
        self._held.append(decision.step)

    def ended(self, job: str, signum: int | None, seconds: float) -> RunEnded:
        """The run as a whole.

        :param signum: the signal that stopped it.
        """
        settled = self.settled
        pending = tuple(step for step in self.steps if step not in settled)
        incomplete = False
        code = _FAILED if self.failed else 0
        if signum is not None and (pending or self.failed or self._stopped):
            code = _STOPPED + signum
        elif self.out_of_budget and not self.failed:  # the next run gets further, whatever a person has to say
            code, incomplete = INCOMPLETE, True
        elif self._held and not self.failed:
            code = _LEFT_OUT if self._left_out_is_wrong else _FAILED
        return RunEnded(
            job,
            code,
            tuple(self._ran),
            tuple(self._skipped),
            tuple(self._restored),
            tuple(self.failed),
            pending,
            signum,
            seconds,
            self._saved,
            incomplete,
            tuple(self._stopped),
            tuple(self._held),
        )
