"""The parts of a summary put together, with what is too much left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkpoint_action.report.markdown import code, fenced
from checkpoint_action.report.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.report.timeline import Bar

__all__ = ["SUMMARY_LIMIT", "Row", "Sections", "fit"]

SUMMARY_LIMIT = 900 << 10
"""Bytes of a summary by default: GitHub shows nothing of one past 1 MiB, and the steps may add their own."""

_HEAD = "| step | result | reason | took | saved |\n|---|---|---|--:|--:|\n"
_NARROW_HEAD = "| step | result | reason | took |\n|---|---|---|--:|\n"  # nothing is saved, and a phone is narrow
_FOLDED = 100  # rows from which the table is folded
_FAILURES = 20  # failed steps that are shown by themselves
_NO_LINES = "_The last lines of the failed steps are left out: the summary would be too large._\n"
_NO_PICTURE = "_The picture of the run is left out: the summary would be too large._\n"
_CUT = "_The rest is left out: the summary would be too large._\n"


@dataclass(frozen=True, slots=True)
class Row:
    """A step in the table; all but its name is Markdown."""

    step: str
    result: str
    reason: str
    took: str = ""
    saved: str = ""

    def text(self, *, narrow: bool) -> str:
        """Its line.

        :param narrow: without the time saved.
        """
        line = f"| {code(self.step, 100, cell=True)} | {self.result} | {self.reason} | {self.took} |"
        return f"{line}\n" if narrow else f"{line} {self.saved} |\n"


@dataclass(frozen=True, slots=True)
class Sections:
    """What a summary has to say.

    :param head: Markdown.
    :param failures: Markdown of each failed step, and the last lines that it printed.
    """

    head: str
    failures: Sequence[tuple[str, tuple[str, ...]]]
    rows: Sequence[Row]
    bars: Sequence[Bar]


def fit(sections: Sections, limit: int) -> str:
    """The text, at most ``limit`` bytes of it."""
    full, short = _failures(sections, lines=True), _failures(sections, lines=False)
    picture = timeline(sections.bars)
    narrow = not any(row.saved for row in sections.rows)
    rows = [row.text(narrow=narrow) for row in sections.rows]
    for failures, shown in ((full, picture), (short, picture), (short, _NO_PICTURE if picture else "")):
        text = _joined(sections.head, failures, _table(rows, len(rows), narrow=narrow), shown)
        if _size(text) <= limit:
            return text
    empty = _joined(sections.head, failures, _table([], len(rows), narrow=narrow), shown)
    some = _ends(rows, limit - _size(empty) - _size(_left_out(len(rows), narrow=narrow)), narrow=narrow)
    text = _joined(sections.head, failures, _table(some, len(rows), narrow=narrow), shown)
    return text if _size(text) <= limit else _lines_within(text, limit)


def _failures(sections: Sections, *, lines: bool) -> str:
    parts = []
    left_out = False
    for said, tail in sections.failures[:_FAILURES]:
        parts.append(f"{said}\n")
        if tail and lines:
            parts.append(fenced(tail))
        left_out = left_out or bool(tail)
    if left_out and not lines:
        parts.append(_NO_LINES)
    if len(sections.failures) > _FAILURES:
        parts.append(f"… and {len(sections.failures) - _FAILURES} more failed steps.\n")
    return "\n".join(parts)


def _table(rows: Sequence[str], count: int, *, narrow: bool) -> str:
    if not count:
        return ""
    table = (_NARROW_HEAD if narrow else _HEAD) + "".join(rows)
    return f"<details><summary>All {count} steps</summary>\n\n{table}\n</details>\n" if count > _FOLDED else table


def _ends(rows: Sequence[str], room: int, *, narrow: bool) -> list[str]:
    """Rows from both ends that fit, and one between them that says how many do not."""
    first: list[str] = []
    last: list[str] = []
    for at in range(len(rows)):
        side, row = (last, rows[-1 - at // 2]) if at % 2 else (first, rows[at // 2])
        room -= _size(row)
        if room < 0:
            break
        side.append(row)
    missing = len(rows) - len(first) - len(last)
    return [*first, *([_left_out(missing, narrow=narrow)] if missing else []), *reversed(last)]


def _left_out(count: int, *, narrow: bool) -> str:
    line = f"| … | _{count} steps are left out: the summary would be too large_ | | |"
    return f"{line}\n" if narrow else f"{line} |\n"


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _lines_within(text: str, limit: int) -> str:
    """The first lines, where not even the shortest form fits."""
    room = limit - _size(_CUT)
    kept = []
    for line in text.splitlines(keepends=True):
        room -= _size(line)
        if room < 0:
            break
        kept.append(line)
    return "".join([*kept, _CUT]) if _size(_CUT) <= limit else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
