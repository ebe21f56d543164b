"""How times, counts and results are put in words, the same in every report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkpoint_action.model import Status

if TYPE_CHECKING:
    from checkpoint_action.model import Decision, Record
    from checkpoint_action.runner.events import RunEnded

__all__ = ["decision_text", "duration", "ended_text", "one_line", "size", "totals"]

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


def size(count: int) -> str:
    """Bytes in the largest binary unit that leaves at least one."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def decision_text(decision: Decision) -> str:
    """Why, and what differs."""
    return f"{decision.reason.value}: {decision.detail}" if decision.detail else decision.reason.value


def ended_text(record: Record) -> str:
    """How a step ended, in one line without its name."""
    tries = f", {record.tries} tries" if record.tries > 1 else ""
    took = duration(record.duration)
    if record.status is Status.DONE:
        return f"done in {took}{tries}"
    word = {Status.TIMEOUT: "timed out", Status.INTERRUPTED: "stopped"}.get(record.status, "failed")
    return f"{word} after {took}{tries}: {record.error}"


def totals(ended: RunEnded) -> str:
    """The run in one line."""
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
    return f"{text}; saved {duration(ended.saved)}" if ended.saved >= 0.05 else text
