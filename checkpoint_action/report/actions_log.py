"""The log of a workflow run: a group a step, annotations for what went wrong."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from checkpoint_action.model import Status
from checkpoint_action.report.words import decision_text, duration, ended_text, totals
from checkpoint_action.runner import events
from checkpoint_action.toolkit import core

if TYPE_CHECKING:
    from checkpoint_action.model import Job

__all__ = ["ActionsLog"]


class ActionsLog:
    """Listens to a run and writes workflow commands and lines. Uploads may warn from their own thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._job: Job | None = None

    def __call__(self, event: events.Event) -> None:
        """Tell of an event."""
        with self._lock:
            self._tell(event)

    def _tell(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._job = event.job
        elif isinstance(event, events.StepSkipped):
            saves = duration(event.record.duration)
            core.info(f"{self._name(event.position)}: skipped ({decision_text(event.decision)}), saves {saves}")
        elif isinstance(event, events.StepRestored):
            took, saves = duration(event.seconds), duration(event.record.duration)
            core.info(f"{self._name(event.position)}: restored in {took}, saves {saves}")
        elif isinstance(event, events.StepStarted):
            core.start_group(f"{self._name(event.position)}: runs ({decision_text(event.decision)})")
            for line in event.command.rstrip("\n").split("\n"):
                core.info(f"\x1b[36;1m{line}\x1b[0m")
        elif isinstance(event, events.StepRetried):
            core.info(f"{self._name(event.position)}: {ended_text(event.failed)}; next try in {duration(event.wait)}")
        elif isinstance(event, events.StepEnded):
            core.end_group()
            text = f"{self._name(event.position)}: {ended_text(event.record)}"
            if event.record.status in (Status.FAILED, Status.TIMEOUT):
                core.error(text, title=f"step {event.record.step}")
            else:
                core.info(text)
        elif isinstance(event, events.StepBlocked):
            core.info(f"{self._name(event.position)}: left, as it needs '{event.need}', which is not done")
        elif isinstance(event, events.Warned):
            core.warning(event.message)
        elif isinstance(event, events.RunEnded):
            core.info(f"job {event.job}: {totals(event)}")

    def _name(self, position: int) -> str:
        steps = self._job.steps if self._job else ()
        return f"[{position + 1}/{len(steps)}] {steps[position].id}" if steps else str(position + 1)
