"""A run for programs: its events as JSON."""

from __future__ import annotations

import json
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import code_of
from checkpoint_action.report.tables import decision_json
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.model import Record

__all__ = ["JsonReport"]


class JsonReport:
    """Listens to a run and writes one JSON object a line.

    :param write: gets each line, without its end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: events.Event) -> None:
        """Write an event, unless it is of interest for the moment alone."""
        if isinstance(event, events.Passing):
            return
        self._write(json.dumps(self._value(event)))

    @singledispatchmethod
    def _value(self, event: events.Event) -> dict[str, Any]:
        return {"event": type(event).__name__}

    @_value.register
    def _(self, event: events.RunStarted) -> dict[str, Any]:
        steps = event.steps or tuple(step.id for step in event.job.steps)
        return {"event": "run-started", "job": event.job.name, "steps": steps}

    @_value.register
    def _(self, event: events.StepSkipped) -> dict[str, Any]:
        return {"event": "step-skipped", **decision_json(event.decision), "saved": event.record.duration}

    @_value.register
    def _(self, event: events.StepRestored) -> dict[str, Any]:
        saved = event.record.duration
        return {"event": "step-restored", **decision_json(event.decision), "saved": saved, "seconds": event.seconds}

    @_value.register
    def _(self, event: events.StepStarted) -> dict[str, Any]:
        return {"event": "step-started", **decision_json(event.decision)}

    @_value.register
    def _(self, event: events.StepRetried) -> dict[str, Any]:
        return {"event": "step-retried", "wait": event.wait, **_ended(event.failed)}

    @_value.register
    def _(self, event: events.StepEnded) -> dict[str, Any]:
        return {"event": "step-ended", **_ended(event.record)}

    @_value.register
    def _(self, event: events.StepBlocked) -> dict[str, Any]:
        return {"event": "step-blocked", "id": event.step, "need": event.need}

    @_value.register
    def _(self, event: events.StepHeld) -> dict[str, Any]:
        return {"event": "step-held", **decision_json(event.decision)}

    @_value.register
    def _(self, event: events.StepsKept) -> dict[str, Any]:
        kept = {"steps": event.steps, "unfinished": event.unfinished}
        return {"event": "steps-kept", **kept, "store": event.store, "size": event.size}

    @_value.register
    def _(self, event: events.ProgressRestored) -> dict[str, Any]:
        return {"event": "progress-restored", "position": event.position, "size": event.size}

    @_value.register
    def _(self, event: events.Warned) -> dict[str, Any]:
        return {"event": "warning", "message": event.message, "code": code_of(event.message)}

    @_value.register
    def _(self, event: events.RunEnded) -> dict[str, Any]:
        return {
            "event": "run-ended",
            "job": event.job,
            "exit-code": event.exit_code,
            "ran": event.ran,
            "skipped": event.skipped,
            "restored": event.restored,
            "failed": event.failed,
            "pending": event.pending,
            "held": event.held,
            "stopped": event.stopped,
            "signal": event.signal,
            "incomplete": event.incomplete,
            "seconds": event.seconds,
            "saved": event.saved,
        }


def _ended(record: Record) -> dict[str, Any]:
    return {
        "id": record.step,
        "status": record.status.value,
        "exit-code": record.exit_code,
        "signal": record.signal,
        "tries": record.tries,
        "seconds": record.duration,
        "error": record.error,
    }
