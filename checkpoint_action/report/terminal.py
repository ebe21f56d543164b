"""Plain lines for a person, and the output of steps beside them."""

from __future__ import annotations

import os
import select
import sys
import threading
from functools import singledispatchmethod
from typing import TYPE_CHECKING, TextIO

from checkpoint_action.errors import OutputError
from checkpoint_action.model import Status
from checkpoint_action.report.lines import NO_READER, say, write_all
from checkpoint_action.report.words import decision_text, duration, ended_text, size, totals
from checkpoint_action.runner import events
from checkpoint_action.runner.stop import BlockedWriteError

if TYPE_CHECKING:
    from checkpoint_action.model import Job
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["REMINDER", "StepOutput", "TerminalReport", "same_place"]

REMINDER = "note: steps run in the shell exactly as written; quote what must be quoted"


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
        self._lost: OSError | None = None

    def write(self, data: bytes) -> None:
        """Hand on a piece of output."""
        if self._fd is None or not data:
            return
        self._at_line_start = data.endswith(b"\n")
        try:
            self._write_or_break(self._fd, data)
        except OSError as error:
            self._fd = None
            self._lost = error

    def check(self) -> None:
        """See that all was written, where that was what was asked for; a reader that has seen enough is no error.

        :raises OutputError: it was not.
        """
        if self._lost is not None and self._lost.errno not in NO_READER:
            raise OutputError(f"cannot write the answer: {self._lost.strerror}")

    def _write_or_break(self, fd: int, data: bytes) -> None:
        if self._stop is None or threading.current_thread() is not threading.main_thread():
            write_all(fd, data)
            return
        try:
            self._stop.breaks_writes = self._stop.signum is None
            write_all(fd, data)
            self._stop.breaks_writes = False
        except BlockedWriteError:
            if not select.select([], [fd], [], 0)[1]:
                self._fd = None

    def break_line(self) -> str:
        """What to print before a line of our own, so that it begins at the left."""
        needed = self._shared and not self._at_line_start
        self._at_line_start = True
        return "\n" if needed else ""


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
        self._tell(event)

    @singledispatchmethod
    def _tell(self, event: events.Event) -> None:
        pass  # nothing to say of the rest

    @_tell.register
    def _(self, event: events.RunStarted) -> None:
        self._job = event.job
        self._line(f"job {event.job.name}: {REMINDER}")

    @_tell.register
    def _(self, event: events.StepSkipped) -> None:
        log = f"; its log: {event.record.log}" if event.record.log else ""
        saves = duration(event.record.duration)
        self._step(event.position, f"skipped ({decision_text(event.decision)}), saves {saves}{log}")

    @_tell.register
    def _(self, event: events.StepRestored) -> None:
        took, saves = duration(event.seconds), duration(event.record.duration)
        self._step(event.position, f"restored in {took}, saves {saves}")

    @_tell.register
    def _(self, event: events.ProgressRestored) -> None:
        self._step(event.position, f"goes on from what its last try left ({size(event.size)})")

    @_tell.register
    def _(self, event: events.StepStarted) -> None:
        self._step(event.position, f"runs ({decision_text(event.decision)})")

    @_tell.register
    def _(self, event: events.StepRetried) -> None:
        failed = ended_text(event.failed)
        self._step(event.position, f"{failed}; next try in {duration(event.wait)}", always=True)

    @_tell.register
    def _(self, event: events.StepEnded) -> None:
        undone = event.record.status is not Status.DONE
        log = f"; its log: {event.record.log}" if undone and event.record.log else ""
        self._step(event.position, f"{ended_text(event.record)}{log}", always=undone)

    @_tell.register
    def _(self, event: events.StepBlocked) -> None:
        self._step(event.position, f"left: it needs '{event.need}', which is not done", always=True)

    @_tell.register
    def _(self, event: events.StepHeld) -> None:
        if event.wanted:  # else the step that needs it tells
            self._step(event.position, f"left ({decision_text(event.decision)})", always=True)

    @_tell.register
    def _(self, event: events.Warned) -> None:
        self._line(f"warning: {event.message}", always=True)

    @_tell.register
    def _(self, event: events.RunEnded) -> None:
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


def same_place(first: int, second: int) -> bool:
    """Whether two descriptors lead to the same terminal or file."""
    try:
        one, other = os.fstat(first), os.fstat(second)
    except OSError:
        return False
    if sys.platform == "win32":
        return os.isatty(first) and os.isatty(second)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
