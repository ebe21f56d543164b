"""The log of a workflow run: a group a step, annotations for what went wrong."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import singledispatchmethod
from typing import TYPE_CHECKING

from checkpoint_action.model import Reason, Status
from checkpoint_action.report.words import decision_text, duration, ended_text, size, totals
from checkpoint_action.runner import events
from checkpoint_action.toolkit import core

if TYPE_CHECKING:
    from checkpoint_action.model import Job

__all__ = ["ActionsLog"]

_ASK = (
    "the machine was lost while it ran, so it may have done its work. See whether it has, then start a new run of the "
    "workflow instead of another attempt (and where the scope is not 'run', with the input 'force: true')"
)
"""What a person is to do about a step that must not run twice: a workflow has no command line to say it on."""


class ActionsLog:
    """Listens to a run and writes workflow commands and lines. Uploads may warn from their own thread.

    :param block_commands: whether what steps print is kept from being taken for workflow commands.
    :ivar done_here: ids of the steps that an earlier use of the action on this machine has finished or restored.
    """

    def __init__(self, *, block_commands: bool = False) -> None:
        self._block = block_commands
        self._token = ""
        self._open = False
        self._lock = threading.Lock()
        self._job: Job | None = None
        self.done_here: frozenset[str] = frozenset()

    def __call__(self, event: events.Event) -> None:
        """Tell of an event."""
        with self._lock, suppress(OSError):  # nobody reads the log any more: the job goes on
            self._tell(event)

    @singledispatchmethod
    def _tell(self, event: events.Event) -> None:
        pass  # nothing to say of the rest

    @_tell.register
    def _(self, event: events.RunStarted) -> None:
        self._job = event.job

    @_tell.register
    def _(self, event: events.StepSkipped) -> None:
        saves = duration(event.record.duration)
        core.info(f"{self._name(event.position)}: skipped ({decision_text(event.decision)}), saves {saves}")

    @_tell.register
    def _(self, event: events.StepRestored) -> None:
        took, saves = duration(event.seconds), duration(event.record.duration)
        lost = event.decision.step in self.done_here and event.decision.detail
        why = f" (it was done here, but not all is as it was: {lost})" if lost else ""
        core.info(f"{self._name(event.position)}: restored in {took}, saves {saves}{why}")

    @_tell.register
    def _(self, event: events.StepStarted) -> None:
        self._open = True
        core.start_group(f"{self._name(event.position)}: runs ({decision_text(event.decision)})")
        for line in event.command.rstrip("\n").split("\n"):
            core.info(f"\x1b[36;1m{line}\x1b[0m")
        if self._block:
            self._token = core.stop_commands()

    @_tell.register
    def _(self, event: events.StepRetried) -> None:
        core.info(f"{self._name(event.position)}: {ended_text(event.failed)}; next try in {duration(event.wait)}")

    @_tell.register
    def _(self, event: events.StepEnded) -> None:
        self._end_group()
        text = f"{self._name(event.position)}: {ended_text(event.record)}"
        if event.record.status in (Status.FAILED, Status.TIMEOUT):
            core.error(text, title=f"step {event.record.step}")
        else:
            core.info(text)

    @_tell.register
    def _(self, event: events.StepBlocked) -> None:
        core.info(f"{self._name(event.position)}: left, as it needs '{event.need}', which is not done")

    @_tell.register
    def _(self, event: events.StepHeld) -> None:
        if event.decision.reason is Reason.INTERRUPTED_BEFORE:
            core.error(f"{self._name(event.position)}: not run: {_ASK}", title=f"step {event.decision.step}")
        else:
            core.info(f"{self._name(event.position)}: left ({decision_text(event.decision)})")

    @_tell.register
    def _(self, event: events.StepsKept) -> None:
        names = [*event.steps, *(f"what {step} has so far" for step in event.unfinished)]
        core.info(f"kept in the {event.store}: {', '.join(names)} ({size(event.size)})")

    @_tell.register
    def _(self, event: events.ProgressRestored) -> None:
        core.info(f"{self._name(event.position)}: goes on from what its last try left ({size(event.size)})")

    @_tell.register
    def _(self, event: events.Warned) -> None:
        stopped = self._resume()
        core.warning(event.message)
        if stopped:
            self._token = core.stop_commands()

    @_tell.register
    def _(self, event: events.RunEnded) -> None:
        self._end_group()  # of a step that was stopped before it began
        core.info(f"job {event.job}: {totals(event)}")
        if event.failed or event.stopped:
            core.info('what is done is kept: "Re-run failed jobs" goes on from here')

    def _end_group(self) -> None:
        self._resume()
        if self._open:
            core.end_group()
        self._open = False

    def _resume(self) -> bool:
        """Let the runner heed commands again; whether it did not."""
        token, self._token = self._token, ""
        if token:
            core.info("")  # what a step printed last may not have ended its line
            core.resume_commands(token)
        return bool(token)

    def _name(self, position: int) -> str:
        steps = self._job.steps if self._job else ()
        return f"[{position + 1}/{len(steps)}] {steps[position].id}" if steps else str(position + 1)
