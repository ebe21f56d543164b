"""A run as Markdown, for the page that GitHub shows of it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from functools import singledispatchmethod
from types import MappingProxyType
from typing import TYPE_CHECKING

from checkpoint_action.model import Reason, Status
from checkpoint_action.report.fitting import SUMMARY_LIMIT, Row, Sections, fit
from checkpoint_action.report.markdown import code
from checkpoint_action.report.timeline import Bar
from checkpoint_action.report.words import duration, reason_text, size, totals, worth_saying
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checkpoint_action.model import Decision, Job, Record

__all__ = ["SUMMARY_LIMIT", "SummaryReport", "Told", "summary"]

_NAMED = 10  # steps in a sentence
_WORDS_ALONE = re.compile("[A-Za-z ]*")
"""What a store is called where its name holds nothing that a person has chosen."""

_WORDS = {
    Status.DONE: "✓ done",
    Status.FAILED: "✗ failed",
    Status.TIMEOUT: "✗ timed out",
    Status.INTERRUPTED: "■ stopped",
}


@dataclass(frozen=True, slots=True)
class Told:
    """An event and when it was told, in seconds of a clock that never jumps."""

    at: float
    event: events.Event


class SummaryReport:
    """Listens to a run for the summary at its end; from whatever thread.

    :ivar told: what was told so far, for :func:`summary`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.told: list[Told] = []

    def __call__(self, event: events.Event) -> None:
        """Note an event."""
        self.told.append(Told(self._clock(), event))


def summary(
    told: Sequence[Told],
    *,
    tails: Mapping[str, Sequence[str]] = MappingProxyType({}),
    quota: str = "",
    kept: bool = True,
    limit: int = SUMMARY_LIMIT,
) -> str:
    """What has become of a run: result, totals, last lines of failed steps, all steps, and when they ran.

    :param told: all events of the run, in order; an end may be missing.
    :param tails: by step id, the last lines that a failed step printed.
    :param quota: a sentence about the room in the store.
    :param kept: whether steps are kept beyond this machine.
    :param limit: bytes that the text never exceeds. First the last lines of steps are left out, then the picture, then
        rows in the middle of the table, each with a line that says so.
    """
    run = _Run()
    for one in told:
        run.take(one)
    return fit(run.sections(tails, quota, kept=kept), limit)


@dataclass(slots=True)
class _Run:
    """What the events say, gathered."""

    job: Job | None = None
    ids: tuple[str, ...] = ()
    begin: float = 0.0
    rows: dict[str, Row] = field(default_factory=dict)
    bars: list[Bar] = field(default_factory=list)
    started: dict[str, tuple[float, Decision]] = field(default_factory=dict)
    good: dict[str, Record] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    failed: dict[str, Record] = field(default_factory=dict)
    in_store: set[str] = field(default_factory=set)
    store: str = ""
    archives: int = 0
    stored: int = 0
    restored: int = 0
    ended: events.RunEnded | None = None

    def take(self, one: Told) -> None:
        """Take an event in."""
        self._take(one.event, one.at)

    @singledispatchmethod
    def _take(self, event: events.Event, _at: float) -> None:
        pass  # the rest does not show

    @_take.register
    def _(self, event: events.RunStarted, at: float) -> None:
        self.job = event.job
        self.ids = event.steps or tuple(step.id for step in event.job.steps)
        self.begin = at

    @_take.register
    def _(self, event: events.StepSkipped, _at: float) -> None:
        step, record = event.decision.step, event.record
        self.good[step] = record
        self.rows[step] = Row(step, "↷ skipped", _why(event.decision), "", _time(record.duration))

    @_take.register
    def _(self, event: events.StepRestored, at: float) -> None:
        step, record = event.decision.step, event.record
        self.good[step] = record
        self.restored += sum(entry.size for entry in record.layer.entries)
        self.bars.append(Bar(step, at - event.seconds - self.begin, event.seconds, "restored"))
        took, saved = _time(event.seconds), _time(record.duration)
        self.rows[step] = Row(step, "↺ restored", _why(event.decision), took, saved)

    @_take.register
    def _(self, event: events.StepStarted, at: float) -> None:
        step = event.decision.step
        self.started[step] = (at, event.decision)
        self.rows[step] = Row(step, "■ stopped", _why(event.decision))

    @_take.register
    def _(self, event: events.StepEnded, at: float) -> None:
        record = event.record
        step = record.step
        start, decision = self.started.get(step, (at - record.duration, None))
        took = at - start if record.tries > 1 else record.duration  # with all tries, and the waits between them
        result = _WORDS.get(record.status, "■ stopped") + (f", {record.tries} tries" if record.tries > 1 else "")
        self.ran.append(step)
        if record.status is Status.DONE:
            self.good[step] = record
            self.bars.append(Bar(step, start - self.begin, at - start, "done"))
        else:
            result += f": {code(record.error, cell=True)}" if record.error else ""
            stopped = record.status is Status.INTERRUPTED
            self.bars.append(Bar(step, start - self.begin, at - start, "stopped" if stopped else "failed"))
            if not stopped:
                self.failed[step] = record
        self.rows[step] = Row(step, result, _why(decision) if decision else "", duration(took))

    @_take.register
    def _(self, event: events.StepBlocked, _at: float) -> None:
        self.rows[event.step] = Row(event.step, "○ left", f"it needs {code(event.need, cell=True)}, which is not done")

    @_take.register
    def _(self, event: events.StepHeld, _at: float) -> None:
        asks = event.decision.reason is Reason.INTERRUPTED_BEFORE
        step = event.decision.step
        self.rows[step] = Row(step, "○ waits for a person" if asks else "○ left", _why(event.decision))

    @_take.register
    def _(self, event: events.StepsKept, _at: float) -> None:
        self.in_store.update(event.steps)
        self.store = event.store
        self.archives += 1
        self.stored += event.size

    @_take.register
    def _(self, event: events.ProgressRestored, _at: float) -> None:
        self.restored += event.size

    @_take.register
    def _(self, event: events.RunEnded, _at: float) -> None:
        self.ended = event

    def sections(self, tails: Mapping[str, Sequence[str]], quota: str, *, kept: bool) -> Sections:
        """The parts of the text."""
        name = self.ended.job if self.ended else self.job.name if self.job else "?"
        lines = [f"## checkpoint-run, the steps of {code(name)}: {self._result()}", ""]
        if self.ended:
            lines += [f"{totals(self.ended).capitalize()}.", ""]
        lines += [line for line in (self._bytes(quota, kept=kept), self._next(kept=kept)) if line]
        rows = [self.rows.get(step) or Row(step, "○ left", "the run ended before it") for step in self.ids]
        # At equal places the order of the run: a bar of a step that ran beside others ends where it was told.
        bars = sorted(self.bars, key=lambda bar: bar.start)
        failures = [
            (f"✗ {code(step)} {_ended(record)}", tuple(tails.get(step, ()))) for step, record in self.failed.items()
        ]
        return Sections("\n".join(lines).rstrip() + "\n", failures, rows, bars)

    def _result(self) -> str:
        ended = self.ended
        if ended is None:
            return "ended early"
        if ended.exit_code == 0:
            return "all done"
        if ended.incomplete:
            return "stopped before the end on purpose, to be run again"
        if ended.failed:
            return f"{len(ended.failed)} failed"
        if ended.signal is not None:
            return f"stopped by signal {ended.signal}"
        return "waiting for a person" if ended.held else "not all done"

    def _bytes(self, quota: str, *, kept: bool) -> str:
        parts = []
        if self.archives:
            many = "1 archive" if self.archives == 1 else f"{self.archives} archives"
            where = self.store if _WORDS_ALONE.fullmatch(self.store) else code(self.store)
            parts.append(f"Stored: {size(self.stored)} in {many} ({where}).")
        elif not kept:
            parts.append("Nothing is kept beyond this machine.")
        if self.restored:
            parts.append(f"Restored: {size(self.restored)}.")
        if quota:
            parts.append(quota)
        return " ".join(parts) + "\n" if parts else ""

    def _next(self, *, kept: bool) -> str:
        """What the next run does if nothing changes."""
        if self.job is None:
            return ""
        again = {step.id for step in self.job.steps if step.always}
        again |= {step for step, record in self.good.items() if record.withheld}
        if kept:  # it may be on another machine
            again |= {step for step in self.ran if step not in self.in_store}
        skips = [step for step in self.ids if step in self.good and step not in again]
        rest = [step for step in self.ids if step not in set(skips)]
        if not skips:
            return "The next run has no step to skip.\n"
        if not rest:
            return f"With nothing changed, the next run skips all {len(skips)} steps.\n"
        named = ", ".join(code(step) for step in rest[:_NAMED])
        more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
        return (
            f"With nothing changed, the next run skips {len(skips)} of {len(self.ids)} steps and runs {named}{more}.\n"
        )


def _ended(record: Record) -> str:
    word = "timed out" if record.status is Status.TIMEOUT else "failed"
    return f"{word} after {duration(record.duration)}: {code(record.error)}"


def _why(decision: Decision) -> str:
    detail = code(decision.detail, cell=True) if decision.detail else ""
    return ": ".join(part for part in (reason_text(decision), detail) if part)


def _time(seconds: float) -> str:
    return duration(seconds) if worth_saying(seconds) else ""
