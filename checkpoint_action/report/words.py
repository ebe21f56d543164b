"""How times, counts and results are put in words, the same in every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Reason, Status
from checkpoint_action.report.plain import duration, one_line, size, worth_saying
from checkpoint_action.runner.selection import IT_NEEDS

if TYPE_CHECKING:
    from checkpoint_action.model import Decision, Record
    from checkpoint_action.report.money import Rate
    from checkpoint_action.runner.events import RunEnded

__all__ = [
    "decision_text",
    "duration",
    "ended_text",
    "one_line",
    "reason_text",
    "size",
    "totals",
    "totals_around",
    "worth_saying",
]


def reason_text(decision: Decision) -> str:
    """The word for why; nothing where the word would mislead and the detail is all there is to say.

    A step that is held back was selected, or needs something that changes: neither is why it does not run.
    """
    held = decision.action is Action.STOP and decision.detail.startswith(IT_NEEDS)
    return "" if held and decision.reason in (Reason.SELECTED, Reason.NEEDS_CHANGED) else decision.reason.value


def decision_text(decision: Decision) -> str:
    """Why, and what differs."""
    return ": ".join(part for part in (reason_text(decision), decision.detail) if part)


def ended_text(record: Record) -> str:
    """How a step ended, in one line without its name."""
    tries = f", {record.tries} tries" if record.tries > 1 else ""
    took = duration(record.duration)
    if record.status is Status.DONE:
        return f"done in {took}{tries}"
    word = {Status.TIMEOUT: "timed out", Status.INTERRUPTED: "stopped"}.get(record.status, "failed")
    return f"{word} after {took}{tries}: {record.error}"


def totals(ended: RunEnded, rate: Rate | None = None) -> str:
    """The run in one line.

    :param rate: what saved time is worth.
    """
    before, after = totals_around(ended, rate)
    return f"{before}{duration(ended.seconds)}{after}"


def totals_around(ended: RunEnded, rate: Rate | None = None) -> tuple[str, str]:
    """The run in one line, before and after the time it took."""
    groups = (
        ("done", [step for step in ended.ran if step not in {*ended.failed, *ended.stopped}]),
        ("skipped", ended.skipped),
        ("restored", ended.restored),
        ("failed", ended.failed),
        ("stopped", ended.stopped),
        ("left", ended.pending),
    )
    parts = [f"{len(steps)} {word}" for word, steps in groups if steps]
    before = f"{', '.join(parts) or 'nothing to do'} in "
    if not worth_saying(ended.saved):
        return before, ""
    return before, f"; saved {duration(ended.saved)}" + (f" ({rate.cost(ended.saved)})" if rate else "")
