"""Plain lines for a person, and the output of steps beside them."""

from __future__ import annotations

import os
import select
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from checkpoint_action.model import Status
from checkpoint_action.report.words import decision_text, duration, ended_text, one_line, totals
from checkpoint_action.runner import events
from checkpoint_action.runner.stop import BlockedWriteError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Job, Plan, Record
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["REMINDER", "StepOutput", "TerminalReport", "plan_lines", "same_place", "say", "status_lines"]

REMINDER = "note: steps run through the shell exactly as written"


class StepOutput:
    """The raw output of steps on a descriptor, byte for byte. A reader that has gone away ends it, not the run.

    :param fd: where it goes.
    :param shared: whether our own lines appear in the same place.
    :param stop: whose signals end a write that nobody reads; for the main thread.
    """

    def __init__(self, fd: int, *, shared: bool, stop: StopRequest | None = None) -> None:
        self._fd: int | None = fd
        self._stop = stop
        self._shared = shared
        self._at_line_start = True

    def write(self, data: bytes) -> None:
        """Hand on a piece of output."""
        if self._fd is None or not data:
            return
        self._at_line_start = data.endswith(b"\n")
        try:
            self._write_or_break(self._fd, data)
        except OSError:
            self._fd = None

    def _write_or_break(self, fd: int, data: bytes) -> None:
        if self._stop is None or threading.current_thread() is not threading.main_thread():
            _write_all(fd, data)
            return
        try:
            self._stop.breaks_writes = self._stop.signum is None
            _write_all(fd, data)
            self._stop.breaks_writes = False
        except BlockedWriteError:
            if not select.select([], [fd], [], 0)[1]:
                self._fd = None

    def break_line(self) -> str:
        """What to print before a line of our own, so that it begins at the left."""
        needed = self._shared and not self._at_line_start
        self._at_line_start = True
        return "\n" if needed else ""


def _write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor that another program may have set to non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])


def say(stream: TextIO, text: str, before: str = "") -> None:
    """Print a line that every terminal can show; one that has gone away is no error.

    :param before: what to print before it, as it is.
    """
    text = one_line(text)
    encoding = (stream.encoding or "ascii").lower().replace("-", "")
    if encoding != "utf8":
        text = text.replace("→", "->").encode(encoding, "replace").decode(encoding, "replace")
    text = before + text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"
    try:
        stream.flush()
        if sys.platform == "win32" or not _has_descriptor(stream):
            stream.write(text)
            stream.flush()
        else:
            _write_all(stream.fileno(), text.encode(encoding))
    except (OSError, ValueError):
        pass


def _has_descriptor(stream: TextIO) -> bool:
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False


class TerminalReport:
    """Listens to a run and prints a line for each thing that a person wants to know.

    :param stream: where our own lines go.
    :param output: the steps' output, which may share the place.
    :param quiet: only what went wrong.
    """

    def __init__(self, stream: TextIO, output: StepOutput, *, quiet: bool = False) -> None:
        self._stream = stream
        self._output = output
        self._quiet = quiet
        self._job: Job | None = None

    def __call__(self, event: events.Event) -> None:
        """Tell of an event."""
        if isinstance(event, events.RunStarted):
            self._job = event.job
            self._line(f"job {event.job.name}: {REMINDER}")
        elif isinstance(event, events.StepSkipped):
            log = f"; its log: {event.record.log}" if event.record.log else ""
            self._step(
                event.position,
                f"skipped ({decision_text(event.decision)}), saves {duration(event.record.duration)}{log}",
            )
        elif isinstance(event, events.StepRestored):
            self._step(
                event.position, f"restored in {duration(event.seconds)}, saves {duration(event.record.duration)}"
            )
        elif isinstance(event, events.StepStarted):
            self._step(event.position, f"runs ({decision_text(event.decision)})")
        elif isinstance(event, events.StepRetried):
            failed = ended_text(event.failed)
            self._step(event.position, f"{failed}; next try in {duration(event.wait)}", always=True)
        elif isinstance(event, events.StepEnded):
            undone = event.record.status is not Status.DONE
            log = f"; its log: {event.record.log}" if undone and event.record.log else ""
            self._step(event.position, f"{ended_text(event.record)}{log}", always=undone)
        elif isinstance(event, events.StepBlocked):
            self._step(event.position, f"left: it needs '{event.need}', which is not done", always=True)
        elif isinstance(event, events.Warned):
            self._line(f"warning: {event.message}", always=True)
        elif isinstance(event, events.RunEnded):
            self._ended(event)

    def _ended(self, event: events.RunEnded) -> None:
        self._line(f"job {event.job}: {totals(event)}")
        if event.exit_code >= 128:
            self._line("stopped; what is done is saved, run the same command again to go on", always=True)
        elif event.incomplete:
            self._line("the budget is used up; what is done is saved, run the same command again to go on", always=True)
        elif event.failed:
            names = ", ".join(event.failed)
            self._line(f"failed: {names}; what is done is saved, run the same command again to go on", always=True)

    def _step(self, position: int, text: str, *, always: bool = False) -> None:
        if self._job is not None:
            steps = self._job.steps
            self._line(f"[{position + 1}/{len(steps)}] {steps[position].id}: {text}", always=always)

    def _line(self, text: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            say(self._stream, f"checkpoint-run: {text}", self._output.break_line())


def plan_lines(plan: Plan) -> list[str]:
    """A plan as lines, one a step."""
    width = max((len(decision.step) for decision in plan.decisions), default=0)
    return [
        f"{decision.step:<{width}}  {decision.action.value:<7}  {decision_text(decision)}"
        for decision in plan.decisions
    ]


def status_lines(job: str, steps: list[str], records: Mapping[str, Record]) -> list[str]:
    """The records of a job as lines, one a step.

    :param steps: ids in order; steps that have no record are pending.
    """
    if not steps:
        return [f"job {job}: nothing recorded"]
    width = max(map(len, steps))
    lines = [f"job {job}"]
    for step in steps:
        record = records.get(step)
        if record is None:
            lines.append(f"{step:<{width}}  {Status.PENDING.value}")
            continue
        ended = duration(record.duration) if record.status is not Status.RUNNING else ""
        code = "" if record.exit_code is None else f"exit code {record.exit_code}"
        code = f"signal {record.signal}" if record.signal is not None else code
        tries = f"{record.tries} tries" if record.tries > 1 else ""
        rest = ", ".join(part for part in (ended, code, tries) if part)
        lines.append(f"{step:<{width}}  {record.status.value:<11}  {rest}".rstrip())
    return lines


def same_place(first: int, second: int) -> bool:
    """Whether two descriptors lead to the same terminal or file."""
    try:
        one, other = os.fstat(first), os.fstat(second)
    except OSError:
        return False
    if sys.platform == "win32":
        return os.isatty(first) and os.isatty(second)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
