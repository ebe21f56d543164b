"""What ran when, as a picture that GitHub draws (Mermaid)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from checkpoint_action.report.markdown import fenced, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Bar", "gantt", "timeline"]

_MOST = 50  # bars: more are thinner than a line of text
_LONGEST_NAME = 50  # characters
_ZERO = datetime(2000, 1, 1)  # noqa: DTZ001  # times since the start, in whatever zone they are shown
_MARKS = {"done": ("✓", "active"), "failed": ("✗", "crit"), "stopped": ("■", "crit"), "restored": ("↺", "done")}
_HARMLESS = frozenset(" ._-+/=()")


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that took time.

    :param start: seconds since the run began.
    :param seconds: how long it took.
    """

    step: str
    start: float
    seconds: float
    kind: Literal["done", "failed", "stopped", "restored"]


def timeline(bars: Sequence[Bar]) -> str:
    """The picture in Markdown, with a line that explains it; nothing where there is nothing to see."""
    if not bars:
        return ""
    shown = bars
    said = "✓ ran, ✗ failed, ■ stopped, ↺ put back"
    if len(bars) > _MOST:
        longest = sorted(range(len(bars)), key=lambda at: -bars[at].seconds)[:_MOST]
        shown = [bars[at] for at in sorted(longest)]
        said = f"the {_MOST} that took longest of {len(bars)}; {said}"
    return f"{fenced(gantt(shown), 'mermaid')}\nTime since the start: {said}.\n"


def gantt(bars: Sequence[Bar]) -> list[str]:
    """Lines of a Mermaid ``gantt`` diagram."""
    longer = any(bar.start + bar.seconds >= 86400 for bar in bars)
    lines = [
        "gantt",
        "    dateFormat YYYY-MM-DD HH:mm:ss.SSS",
        f"    axisFormat {'day %-d %H:%M' if longer else '%H:%M:%S'}",
        "    todayMarker off",
    ]
    for bar in bars:
        mark, tag = _MARKS[bar.kind]
        start = (_ZERO + timedelta(seconds=max(bar.start, 0))).isoformat(" ", "milliseconds")
        milliseconds = max(round(bar.seconds * 1000), 1)
        # The mark stands first: a name such as "title" or "section" would be a word of the language.
        lines.append(f"    {mark} {_name(bar.step)} :{tag}, {start}, {milliseconds}ms")
    return lines


def _name(step: str) -> str:
    """A name without the signs of the language (``:``, ``;``, ``#``, ``%%`` and others)."""
    kept = "".join(char if char.isalnum() or char in _HARMLESS else "_" for char in step)
    return shortened(kept, _LONGEST_NAME)
