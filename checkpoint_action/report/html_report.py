"""The HTML page of a run, from its events, or of a job, from its records."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import OutputError
from checkpoint_action.model import Status
from checkpoint_action.report.html import Line, page_lines
from checkpoint_action.report.log_file import opened_log
from checkpoint_action.report.tail import OutputTail
from checkpoint_action.report.words import decision_text, duration, ended_text, totals
from checkpoint_action.runner import events
from checkpoint_action.runner.masks import hide
from checkpoint_action.store.atomic import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from checkpoint_action.model import Record
    from checkpoint_action.report.money import Rate

__all__ = ["HtmlReport", "write_page"]

_PIECE = 1 << 16
_KINDS = {Status.DONE: "done", Status.PENDING: "left", Status.RUNNING: "kept"}


class HtmlReport:
    """Listens to a run for the page of it.

    :param secrets: values that do not show.
    :param rate: what saved time is worth.
    """

    def __init__(self, secrets: Sequence[str], rate: Rate | None = None) -> None:
        self._secrets = secrets
        self._rate = rate
        self._job = ""
        self._ids: tuple[str, ...] = ()
        self._records: dict[str, Record] = {}
        self._lines: dict[str, Line] = {}
        self._reasons: dict[str, str] = {}
        self._attempts: list[tuple[str, str]] = []
        self._ended: events.RunEnded | None = None

    def __call__(self, event: events.Event) -> None:
        """Note an event."""
        if isinstance(event, events.RunStarted):
            self._job = event.job.name
            self._ids = event.steps or tuple(step.id for step in event.job.steps)
        elif isinstance(event, (events.StepSkipped, events.StepRestored)):
            word = "skipped" if isinstance(event, events.StepSkipped) else "restored"
            why = decision_text(event.decision)
            line = replace(_line(event.record, why), status=word, kind="kept", start=None)
            self._lines[line.step] = line
        elif isinstance(event, events.StepStarted):
            self._reasons[event.decision.step] = decision_text(event.decision)
        elif isinstance(event, events.StepRetried):
            self._attempts.append((event.failed.step, ended_text(event.failed)))
        elif isinstance(event, events.StepEnded):
            record = event.record
            self._records[record.step] = record
            self._lines[record.step] = _line(record, self._reasons.get(record.step, ""))
        elif isinstance(event, events.StepBlocked):
            self._lines[event.step] = Line(event.step, "pending", "left", f"needs {event.need}, which is not done")
        elif isinstance(event, events.StepHeld):
            step = event.decision.step
            self._lines[step] = Line(step, "pending", "left", decision_text(event.decision))
        elif isinstance(event, events.RunEnded):
            self._ended = event

    def write(self, path: Path) -> None:
        """Write the page, of a run that broke off too.

        :raises OutputError: it cannot be written.
        """
        ended = self._ended
        lines = [self._lines.get(step, Line(step, "pending", "left")) for step in self._ids]
        result = _result(ended)
        said = totals(ended, self._rate) if ended else "The run broke off before its end."
        tries = sum(record.tries for record in self._records.values())
        said += f"; {tries} {'try' if tries == 1 else 'tries'}" if ended and tries else ""
        _write(
            path, self._job, result, said, lines, records=self._records, secrets=self._secrets, attempts=self._attempts
        )


def write_page(
    path: Path,
    job: str,
    steps: Sequence[str],
    records: Mapping[str, Record],
    secrets: Sequence[str],
    *,
    rate: Rate | None = None,
) -> None:
    """Write the page of what is recorded.

    :param steps: ids, in the order of the page.
    :param secrets: values that do not show.
    :param rate: what a machine costs.
    :raises OutputError: it cannot be written.
    """
    lines = [_line(records[step], "") if step in records else Line(step, "pending", "left") for step in steps]
    done = sum(line.status == "done" for line in lines)
    bad = sum(line.kind == "bad" for line in lines)
    tries = sum(line.tries for line in lines)
    result = "failed" if bad else "done" if done == len(lines) else "not finished"
    seconds = sum(line.seconds for line in lines)
    took = duration(seconds) + (f" ({rate.cost(seconds)})" if rate else "")
    said = f"{done} of {len(lines)} steps done; their last tries took {took}; {tries} tries"
    _write(path, job, result, said, lines, records=records, secrets=secrets, attempts=())


def _write(
    path: Path,
    job: str,
    result: str,
    said: str,
    lines: Sequence[Line],
    *,
    records: Mapping[str, Record],
    secrets: Sequence[str],
    attempts: Sequence[tuple[str, str]],
) -> None:
    tail = _tails(records, secrets)
    hidden = [*secrets, *tail.masked]
    page = page_lines(
        job,
        result,
        said,
        [replace(line, reason=hide(line.reason, hidden)) for line in lines],
        tails={step: shown for step, shown in tail.of.items() if shown},
        attempts=[(step, hide(how, hidden)) for step, how in attempts],
    )
    try:
        with _place(path) as file:
            file.writelines(f"{line}\n".encode("ascii") for line in page)
    except OSError as error:
        raise OutputError(f"cannot write the report {path}: {error.strerror}") from None


def _place(path: Path) -> AbstractContextManager[BinaryIO]:
    """What the page is written to: a file that is there whole or not at all, or what else stands there, as it is.

    :raises OSError: it cannot be written to.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return replacing(path)
    if stat.S_ISREG(mode):
        return replacing(Path(os.path.realpath(path)))  # a link stays one
    return path.open("wb")  # a device or a pipe: nothing takes its place


def _tails(records: Mapping[str, Record], secrets: Sequence[str]) -> OutputTail:
    """The last lines of failed steps. All logs are read: any of them may mask what another shows."""
    tail = OutputTail(secrets)
    failed = any(record.status in (Status.FAILED, Status.TIMEOUT) for record in records.values())
    passes = 2 if failed else 0  # first what is masked anywhere, then the lines
    for number in range(passes):
        for record in records.values():
            last = number == 1
            if last and record.status not in (Status.FAILED, Status.TIMEOUT):
                continue
            with suppress(OSError):
                if record.log:
                    with opened_log(Path(record.log)) as file:
                        while data := file.read(_PIECE):
                            tail.write(data)
            if last:
                tail(events.StepEnded(0, record))
            else:
                tail(events.OutputShown(0))  # what was read is no step's last lines
    return tail


def _line(record: Record, reason: str) -> Line:
    why = "; ".join(filter(None, (reason, record.error)))
    left = sum(entry.size for entry in record.layer.entries) if record.layer.entries else None
    kind = _KINDS.get(record.status, "bad")
    status = "accepted" if record.accepted else record.status.value
    start = record.started if record.tries and record.started else None
    return Line(record.step, status, kind, why, start, record.duration, record.tries, left)


def _result(ended: events.RunEnded | None) -> str:
    if ended is None:
        return "broke off"
    if ended.signal is not None:
        return "stopped"
    if ended.failed:
        return "failed"
    if ended.incomplete or ended.stopped or ended.exit_code:
        return "not finished"
    return "done"
