"""Machine-readable views: events, plans and records as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from checkpoint_action.runner import events
from checkpoint_action.store.codec import record_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.model import Decision, Plan, Record

__all__ = ["JsonReport", "plan_json", "status_json"]


def _decision(decision: Decision) -> dict[str, str]:
    return {
        "id": decision.step,
        "action": decision.action.value,
        "reason": decision.reason.value,
        "detail": decision.detail,
    }


def plan_json(plan: Plan) -> str:
    """``{"job": …, "steps": [{"id", "action", "reason", "detail"}]}``."""
    return json.dumps({"job": plan.job, "steps": [_decision(decision) for decision in plan.decisions]})


def status_json(job: str, steps: list[str], records: Mapping[str, Record]) -> str:
    """``{"job": …, "steps": [record, …]}``; a step without a record is ``pending``."""
    rows = [record_to_json(records[step]) if step in records else {"step": step, "status": "pending"} for step in steps]
    return json.dumps({"job": job, "steps": rows})


class JsonReport:
    """Listens to a run and writes one JSON object a line.

    :param write: gets each line, without its end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: events.Event) -> None:
        """Write an event."""
        self._write(json.dumps(self._value(event)))

    def _value(self, event: events.Event) -> dict[str, Any]:
        if isinstance(event, events.RunStarted):
            return {"event": "run-started", "job": event.job.name, "steps": [step.id for step in event.job.steps]}
        if isinstance(event, events.StepSkipped):
            return {"event": "step-skipped", **_decision(event.decision), "saved": event.record.duration}
        if isinstance(event, events.StepRestored):
            saved = event.record.duration
            return {"event": "step-restored", **_decision(event.decision), "saved": saved, "seconds": event.seconds}
        if isinstance(event, events.StepStarted):
            return {"event": "step-started", **_decision(event.decision)}
        if isinstance(event, events.StepRetried):
            return {"event": "step-retried", "wait": event.wait, **_ended(event.failed)}
        if isinstance(event, events.StepEnded):
            return {"event": "step-ended", **_ended(event.record)}
        if isinstance(event, events.StepBlocked):
            return {"event": "step-blocked", "id": event.step, "need": event.need}
        if isinstance(event, events.StepsKept):
            return {"event": "steps-kept", "steps": event.steps, "store": event.store, "size": event.size}
        if isinstance(event, events.Warned):
            return {"event": "warning", "message": event.message}
        if isinstance(event, events.RunEnded):
            return {
                "event": "run-ended",
                "job": event.job,
                "exit-code": event.exit_code,
                "ran": event.ran,
                "skipped": event.skipped,
                "restored": event.restored,
                "failed": event.failed,
                "pending": event.pending,
                "stopped": event.stopped,
                "signal": event.signal,
                "incomplete": event.incomplete,
                "seconds": event.seconds,
                "saved": event.saved,
            }
        return {"event": type(event).__name__}


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
