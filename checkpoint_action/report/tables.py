"""A plan and what is recorded, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from checkpoint_action.model import Status
from checkpoint_action.report.glance import row_lines, row_text
from checkpoint_action.report.words import decision_text, duration
from checkpoint_action.store.codec import record_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from checkpoint_action.model import Decision, Plan, Record
    from checkpoint_action.report.money import Rate

__all__ = ["decision_json", "plan_json", "plan_lines", "status_json", "status_lines"]


def plan_lines(plan: Plan) -> list[str]:
    """A plan as lines, one a step."""
    width = max((len(decision.step) for decision in plan.decisions), default=0)
    return [
        f"{decision.step:<{width}}  {decision.action.value:<7}  {decision_text(decision)}"
        for decision in plan.decisions
    ]


def status_lines(job: str, steps: list[str], records: Mapping[str, Record], rate: Rate | None = None) -> list[str]:
    """The records of a job as lines, one a step.

    :param steps: ids in order; steps that have no record are pending.
    :param rate: what a machine costs: a last line then says what the done steps are worth.
    """
    lines = row_lines(job, steps, {step: row_text(record_to_json(record)) for step, record in records.items()})
    if rate is not None and steps:
        named = set(steps)
        worth = sum(record.duration for step, record in records.items() if step in named and _is_done(record))
        lines.append(f"what is done took {duration(worth)} ({rate.cost(worth)})")
    return lines


def _is_done(record: Record) -> bool:
    return record.status is Status.DONE


def decision_json(decision: Decision) -> dict[str, str]:
    """A decision as an object."""
    return {
        "id": decision.step,
        "action": decision.action.value,
        "reason": decision.reason.value,
        "detail": decision.detail,
    }


def plan_json(plan: Plan) -> str:
    """``{"job": …, "steps": [{"id", "action", "reason", "detail"}]}``."""
    return "".join(_json(plan.job, map(decision_json, plan.decisions)))


def status_json(job: str, steps: list[str], records: Mapping[str, Record]) -> Iterator[str]:
    """``{"job": …, "steps": [record, …]}``; a step without a record is ``pending``, an accepted one says so.

    It comes in pieces, as there may be many.
    """
    return _json(
        job, (_record(records[step]) if step in records else {"step": step, "status": "pending"} for step in steps)
    )


def _json(job: str, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Both as one JSON text; there may be many rows, so each is put into words by itself."""
    yield f'{{"job": {json.dumps(job)}, "steps": ['
    between = ""
    for row in rows:
        yield between + json.dumps(row)
        between = ", "
    yield "]}"


def _record(record: Record) -> dict[str, Any]:
    return record_to_json(record) | ({"accepted": True} if record.accepted else {})
