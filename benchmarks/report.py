"""The results of all benchmarks as one Markdown table and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.lines import Line

__all__ = ["BEGIN", "END", "Outcome", "as_json", "in_place", "markdown"]

BEGIN = "<!-- The table below is written by `python -m benchmarks --write`; changes by hand are lost. -->"
END = "<!-- Here the written table ends. -->"
_HEADS = ("work", "beside", "ours", "theirs", "ratio", "goal", "reached", "load")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one benchmark.

    :param name: its module's.
    :param lines: what it gave.
    :param seconds: how long it took in all.
    :param fault: why it gave nothing; empty where it did.
    """

    name: str
    lines: Sequence[Line]
    seconds: float
    fault: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it was measured and no goal is missed."""
        return not self.fault and all(line.reached is not False for line in self.lines)


def markdown(outcomes: Sequence[Outcome], machine: Mapping[str, str], date: str, command: str) -> str:
    """All of it, without the markers.

    :param machine: what it ran on, by name.
    :param date: when it began.
    :param command: what repeats it.
    """
    told = "; ".join(f"{name}: {value}" for name, value in machine.items())
    minutes = sum(outcome.seconds for outcome in outcomes) / 60
    goals = [line.reached for outcome in outcomes for line in outcome.lines if line.goal is not None]
    parts = [
        f"Begun {date}; took {minutes:.0f} minutes. {told}.",
        f"Repeat it with `{command}`. Goals reached: {goals.count(True)} of {len(goals)}"
        + (f"; without the peer: {goals.count(None)}." if None in goals else "."),
        "\n".join(_table(outcomes)),
    ]
    return "\n\n".join(parts)


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"| {' | '.join(_HEADS)} |"
    yield "| --- | --- | ---: | ---: | ---: | --- | --- | ---: |"
    for outcome in outcomes:
        if outcome.fault:
            yield _row(f"`benchmarks.{outcome.name}`", "", "", "", "", "", f"**not measured**: {outcome.fault}", "")
        for line in outcome.lines:
            yield _row(
                line.work + (f" ({line.note})" if line.note else ""),
                line.peer,
                _amount(line.ours, line.unit),
                "" if line.theirs is None else _amount(line.theirs, line.unit),
                _ratio(line),
                _goal(line),
                _reached(line),
                "" if line.load is None else f"{line.load:.1f}",
            )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _amount(value: float, unit: str) -> str:
    if unit == "MiB":
        return f"{value:.1f} MiB"
    if unit != "s":
        return f"{value:.0f}"
    if value < 0.1:
        return f"{value * 1000:.1f} ms" if value >= 0.01 else f"{value * 1000:.3f} ms"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def _ratio(line: Line) -> str:
    if line.theirs is None or line.ratio is None:
        return ""
    if line.goal is not None and line.goal.kind == "more":
        return f"{line.ours - line.theirs:+.2f} {line.unit}"
    return f"{line.ratio:.2f}"


def _goal(line: Line) -> str:
    if line.goal is None:
        return ""
    bound = f"{line.goal.bound:.3g}"
    if line.goal.kind == "value" and line.unit == "faults":
        return f"fewer than {bound}"
    return {
        "ratio": f"at most {bound}",
        "faster": "less time",
        "speed": f"throughput at least {bound}, so at most {1 / line.goal.bound:g}",
        "more": f"at most {bound} {line.unit} more",
        "value": f"under {bound} {line.unit}",
    }[line.goal.kind]


def _reached(line: Line) -> str:
    if line.goal is None:
        return ""
    return {True: "yes", False: "**no**", None: "no such peer here"}[line.reached]


def as_json(outcomes: Sequence[Outcome], machine: Mapping[str, str], date: str) -> dict[str, object]:
    """The same for programs; times in seconds, memory in MiB."""
    return {
        "begun": date,
        "machine": dict(machine),
        "benchmarks": [
            {
                "name": outcome.name,
                "seconds": outcome.seconds,
                "fault": outcome.fault or None,
                "lines": [_object(line) for line in outcome.lines],
            }
            for outcome in outcomes
        ],
    }


def _object(line: Line) -> dict[str, object]:
    return {
        "work": line.work,
        "peer": line.peer or None,
        "ours": line.ours,
        "theirs": line.theirs,
        "unit": line.unit,
        "ratio": line.ratio,
        "goal": None if line.goal is None else {"kind": line.goal.kind, "bound": line.goal.bound},
        "reached": line.reached,
        "load": line.load,
        "note": line.note or None,
    }


def in_place(page: str, text: str) -> str:
    """A page with the text between its two markers replaced.

    :raises ValueError: the page does not have each marker once, in this order.
    """
    head, begin, rest = page.partition(BEGIN)
    _old, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in tail:
        raise ValueError(f"the page needs one line {BEGIN!r} and after it one line {END!r}")
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}"
