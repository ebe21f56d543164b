"""How times, counts and results are put in words, the same in every report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Reason, Status
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
    "worth_saying",
]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def one_line(text: str) -> str:
    """A text without what would break its line, drive a terminal or turn its direction: escapes are shown for that."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def duration(seconds: float) -> str:
    """Seconds in the two largest units that say something: ``0.4 s``, ``12.0 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 59.95:
        return f"{max(seconds, 0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def worth_saying(seconds: float) -> bool:
    """Whether a time is more than the ``0.0 s`` it would be shown as."""
    return seconds >= 0.05


def size(count: int) -> str:
    """Bytes in the largest binary unit that leaves at least one."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


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
    groups = (
        ("done", [step for step in ended.ran if step not in {*ended.failed, *ended.stopped}]),
        ("skipped", ended.skipped),
        ("restored", ended.restored),
        ("failed", ended.failed),
        ("stopped", ended.stopped),
        ("left", ended.pending),
    )
    parts = [f"{len(steps)} {word}" for word, steps in groups if steps]
    text = f"{', '.join(parts) or 'nothing to do'} in {duration(ended.seconds)}"
    if not worth_saying(ended.saved):
        return text
    return f"{text}; saved {duration(ended.saved)}" + (f" ({rate.cost(ended.saved)})" if rate else "")
