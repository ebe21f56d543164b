"""The end of a run for a person: what became of each step, what failed and why, and what to type next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import Status
from checkpoint_action.report.clock import fitted
from checkpoint_action.report.words import decision_text, duration, one_line, worth_saying
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint_action.model import Record
    from checkpoint_action.report.money import Rate
    from checkpoint_action.report.style import Kind

__all__ = ["Ending"]

_MANY = 15  # steps; up to there each has a row
_NAMED = 6  # steps named in a line for many
_LAST_LINES = 10  # of a failed step
_LAST_BYTES = 16 << 10
_SHOWN_FAILURES = 5
_WIDEST_NAME = 40


@dataclass(frozen=True, slots=True)
class _Row:
    step: str
    result: str
    kind: Kind
    time: float | None = None
    saved: float | None = None
    why: str = ""


_RESULTS: dict[Status, tuple[str, Kind]] = {
    Status.DONE: ("done", "good"),
    Status.FAILED: ("failed", "bad"),
    Status.TIMEOUT: ("timed out", "bad"),
    Status.INTERRUPTED: ("stopped", "warn"),
}


class Ending:
    """Listens to a run for what is said when it is over.

    :param again: the command line that goes on, from the ids of steps that are not done, of those of them that have not
        begun, and of all; empty where it cannot be shown.
    :param rate: what a machine costs.
    :param secrets: values that do not show among a step's last lines.
    """

    def __init__(
        self,
        again: Callable[[Sequence[str], Sequence[str], Sequence[str]], str],
        *,
        rate: Rate | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._again = again
        self._rate = rate
        self._secrets = secrets
        self._ids: tuple[str, ...] = ()
        self._rows: dict[str, _Row] = {}
        self._why: dict[str, str] = {}
        self._bad: list[Record] = []

    def __call__(self, event: events.Event) -> None:
        """Note an event."""
        if isinstance(event, events.RunStarted):
            self._ids = event.steps or tuple(step.id for step in event.job.steps)
        elif isinstance(event, events.StepSkipped):
            saved = event.record.duration
            self._put(_Row(event.decision.step, "skipped", "calm", None, saved, decision_text(event.decision)))
        elif isinstance(event, events.StepRestored):
            saved = event.record.duration
            why = decision_text(event.decision)
            self._put(_Row(event.decision.step, "restored", "calm", event.seconds, saved, why))
        elif isinstance(event, events.StepStarted):
            self._why[event.decision.step] = decision_text(event.decision)
        elif isinstance(event, events.StepEnded):
            self._note_end(event.record)
        elif isinstance(event, events.StepBlocked):
            self._put(_Row(event.step, "left", "warn", why=f"it needs '{event.need}', which is not done"))
        elif isinstance(event, events.StepHeld):
            self._put(_Row(event.decision.step, "left", "warn", why=decision_text(event.decision)))

    def _note_end(self, record: Record) -> None:
        word, kind = _RESULTS.get(record.status, ("failed", "bad"))
        tries = f"{record.tries} tries" if record.tries > 1 else ""
        why = record.error if record.status is not Status.DONE else self._why.get(record.step, "")
        self._put(_Row(record.step, word, kind, record.duration, None, "; ".join(filter(None, (tries, why)))))
        if kind == "bad":
            self._bad.append(record)

    def _put(self, row: _Row) -> None:
        self._rows[row.step] = row

    def lines(self, ended: events.RunEnded, columns: int | None, dots: str = "...") -> list[tuple[str, Kind]]:
        """What to print, each line with its kind.

        :param columns: of the terminal; ``None`` where lines may be of any length.
        """
        out = self._table(columns, dots) if len(self._ids) > 1 else []
        for record in self._bad[:_SHOWN_FAILURES]:
            out += self._failure(record)
        if len(self._bad) > _SHOWN_FAILURES:
            named = _named([record.step for record in self._bad[_SHOWN_FAILURES:]], dots)
            out.append((f"failed too: {named}", "bad"))
        if ended.exit_code:
            out += self._next(ended)
        return out

    def _table(self, columns: int | None, dots: str) -> list[tuple[str, Kind]]:
        rows = [self._rows.get(step, _Row(step, "left", "warn")) for step in self._ids]
        shown, few = rows, len(rows) <= _MANY
        if not few:
            shown = [row for row in rows if row.result not in ("skipped", "left")]
        cells = [(row.step, row.result, _time(row.time), self._worth(row.saved), row.why, row.kind) for row in shown]
        heads = ("step", "result", "time", "saved", "why")
        widths = [max([len(heads[at]), *(len(cell[at]) for cell in cells)]) for at in range(4)]
        widths[0] = min(widths[0], _WIDEST_NAME)
        used = [at for at in range(4) if at < 2 or any(cell[at] for cell in cells)]

        def line(cell: Sequence[str]) -> str:
            parts = [fitted(cell[0], widths[0], dots).ljust(widths[0])]
            parts += [cell[at].ljust(widths[at]) if at < 2 else cell[at].rjust(widths[at]) for at in used[1:]]
            text = f"  {'  '.join(parts)}  {one_line(cell[4])}".rstrip()
            return text if columns is None else _cut(text, columns, dots)

        out: list[tuple[str, Kind]] = []
        if cells:
            out.append((line(heads), "soft"))
            out += [(line(cell), cell[5]) for cell in cells]
        if not few:
            out += self._folded(rows, columns, dots)
        return out

    def _folded(self, rows: Sequence[_Row], columns: int | None, dots: str) -> list[tuple[str, Kind]]:
        """Many steps that need no row of their own."""
        out: list[tuple[str, Kind]] = []
        kinds: dict[str, Kind] = {"skipped": "calm", "left": "warn"}
        for word, kind in kinds.items():
            those = [row for row in rows if row.result == word]
            if those:
                saved = sum(row.saved or 0.0 for row in those)
                worth = f", saved {self._worth(saved)}" if worth_saying(saved) else ""
                text = f"  {len(those)} {word}: {_named([row.step for row in those], dots)}{worth}"
                out.append((text if columns is None else _cut(text, columns, dots), kind))
        return out

    def _worth(self, seconds: float | None) -> str:
        if seconds is None or not worth_saying(seconds):
            return ""
        return duration(seconds) if self._rate is None else f"{duration(seconds)} {self._rate.cost(seconds)}"

    def _failure(self, record: Record) -> list[tuple[str, Kind]]:
        last = _last_lines(Path(record.log), record, self._secrets) if record.log else ()
        if not last:
            return []
        head: tuple[str, Kind] = (f"last lines of {record.step}, from {record.log}:", "bad")
        return [head, *((f"  | {text}".rstrip(), "") for text in last)]

    def _next(self, ended: events.RunEnded) -> list[tuple[str, Kind]]:
        undone = {*ended.failed, *ended.stopped, *ended.pending}
        if ended.held and ended.signal is None and not (ended.failed or ended.incomplete):
            return []  # the same once more would do nothing: what a person has to decide is told with the steps
        command = self._again([step for step in self._ids if step in undone], ended.pending, self._ids)
        if not command:
            return [("what is done is saved; to go on, run the same command again", "head")]
        return [("what is done is saved; to go on, run:", ""), (f"  {command}", "head")]


def _time(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _named(steps: Sequence[str], dots: str) -> str:
    return ", ".join([*steps[:_NAMED], *([dots] if len(steps) > _NAMED else [])])


def _cut(text: str, columns: int, dots: str) -> str:
    """Cut to a width; texts of others may have characters that are two columns wide, and are cut earlier then."""
    wide = sum(not char.isascii() for char in text)
    return fitted(text, max(columns - wide, 1) if wide and len(text) + wide > columns else columns, dots)


def _last_lines(log: Path, record: Record, secrets: Sequence[str]) -> tuple[str, ...]:
    """What a failed step printed last, as its log has it."""
    from checkpoint_action.report.log_file import opened_log  # noqa: PLC0415  # only where something failed
    from checkpoint_action.report.tail import OutputTail  # noqa: PLC0415

    tail = OutputTail(secrets)
    try:
        with opened_log(log) as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - _LAST_BYTES, 0))
            tail.write(file.read(_LAST_BYTES))
    except OSError:
        return ()
    tail(events.StepEnded(0, record))
    return tail.of.get(record.step, ())[-_LAST_LINES:]
