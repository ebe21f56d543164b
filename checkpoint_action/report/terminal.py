"""Plain lines for a person, and the output of steps beside them."""

from __future__ import annotations

import os
import select
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from checkpoint_action.errors import OutputError
from checkpoint_action.model import Status
from checkpoint_action.report.lines import NO_READER, say, write_all
from checkpoint_action.report.words import decision_text, duration, ended_text, size, totals
from checkpoint_action.runner import events
from checkpoint_action.runner.stop import BlockedWriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from checkpoint_action.model import Job
    from checkpoint_action.report.details import Details
    from checkpoint_action.report.ending import Ending
    from checkpoint_action.report.live import LiveView
    from checkpoint_action.report.money import Rate
    from checkpoint_action.report.style import Kind, Style
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["REMINDER", "StepOutput", "TerminalReport", "same_place"]

_SMALL = 1 << 14  # bytes that are copied rather than written apart

REMINDER = "note: steps run in the shell exactly as written; quote what must be quoted"


class StepOutput:
    """The raw output of steps on a descriptor, byte for byte. A reader that has gone away ends it, not the run.

    :param fd: where it goes.
    :param shared: whether our own lines appear in the same place.
    :param stop: whose signals end a write that nobody reads; for the main thread.
    :param view: what is drawn below it, where anything is.
    """

    def __init__(self, fd: int, *, shared: bool, stop: StopRequest | None = None, view: LiveView | None = None) -> None:
        self._fd: int | None = fd
        self._view = view
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
            if self._view is None:
                self._write_or_break(self._fd, data)
            else:
                with self._view.output(data) as (before, after):
                    for piece in (before + data + after,) if len(data) < _SMALL else (before, data, after):
                        if self._fd is not None:
                            self._write_or_break(self._fd, piece)
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

    @contextmanager
    def own_line(self) -> Iterator[str]:
        """Around the printing of a line of our own: what to print before it."""
        if self._view is None:
            yield self.break_line()
            return
        with self._view.own_line() as before:
            yield before + self.break_line()


class TerminalReport:
    """Listens to a run and prints a line for each thing that a person wants to know.

    :param stream: where our own lines go.
    :param output: the steps' output, which may share the place.
    :param quiet: only what went wrong.
    :param style: colours, where there are any.
    :param view: what is drawn below the lines, where anything is.
    :param details: what to say besides.
    :param ending: what to say at the end, instead of what failed and that it is to be run again.
    :param rate: what saved time is worth.
    :param columns: those of the terminal now; ``None`` where lines may be of any length.
    """

    def __init__(
        self,
        stream: TextIO,
        output: StepOutput,
        *,
        quiet: bool = False,
        style: Style | None = None,
        view: LiveView | None = None,
        details: Details | None = None,
        ending: Ending | None = None,
        rate: Rate | None = None,
        columns: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._stream = stream
        self._output = output
        self._quiet = quiet
        self._style = style
        self._view = view
        self._details = details
        self._ending = ending
        self._rate = rate
        self._columns = columns
        self._job: Job | None = None
        self._have_terminal: set[int] = set()  # positions of interactive steps that run
        self._tellers: dict[type[events.Event], Callable[[Any], None]] = {
            events.RunStarted: self._run_started,
            events.StepSkipped: self._step_skipped,
            events.StepRestored: self._step_restored,
            events.ProgressRestored: self._progress_restored,
            events.StepStarted: self._step_started,
            events.StepRetried: self._step_retried,
            events.StepEnded: self._step_ended,
            events.StepBlocked: self._step_blocked,
            events.StepHeld: self._step_held,
            events.Warned: self._warned,
            events.RunEnded: self._run_ended,
        }

    def __call__(self, event: events.Event) -> None:
        """Tell of an event."""
        if self._ending is not None:
            self._ending(event)
        if self._view is not None:
            self._keep_apart(event, self._view)
        if (tell := self._tellers.get(type(event))) is not None:
            tell(event)
        for line in self._details.of(event) if self._details is not None else ():
            self._line(f"  {line}", "soft")
        if self._view is not None:
            self._view.refresh()

    def _keep_apart(self, event: events.Event, view: LiveView) -> None:
        """Have nothing drawn below a step that has the terminal for itself, nor after the end."""
        if isinstance(event, events.StepStarted) and self._is_interactive(event.position):
            self._have_terminal.add(event.position)
            view.stay_away(True)
        elif isinstance(event, (events.StepEnded, events.StepRetried)):
            view.step_ended()
            if isinstance(event, events.StepEnded):
                self._have_terminal.discard(event.position)
            view.stay_away(bool(self._have_terminal))
        elif isinstance(event, events.RunEnded):
            view.close()

    def _run_started(self, event: events.RunStarted) -> None:
        self._job = event.job
        self._line(f"job {event.job.name}: {REMINDER}")

    def _is_interactive(self, position: int) -> bool:
        return self._job is not None and self._job.steps[position].interactive

    def _step_skipped(self, event: events.StepSkipped) -> None:
        log = f"; its log: {event.record.log}" if event.record.log else ""
        saves = duration(event.record.duration)
        self._step(event.position, f"skipped ({decision_text(event.decision)}), saves {saves}{log}", "calm")

    def _step_restored(self, event: events.StepRestored) -> None:
        took, saves = duration(event.seconds), duration(event.record.duration)
        self._step(event.position, f"restored in {took}, saves {saves}", "calm")

    def _progress_restored(self, event: events.ProgressRestored) -> None:
        self._step(event.position, f"goes on from what its last try left ({size(event.size)})")

    def _step_started(self, event: events.StepStarted) -> None:
        self._step(event.position, f"runs ({decision_text(event.decision)})", "head")

    def _step_retried(self, event: events.StepRetried) -> None:
        failed = ended_text(event.failed)
        self._step(event.position, f"{failed}; next try in {duration(event.wait)}", "warn", always=True)

    def _step_ended(self, event: events.StepEnded) -> None:
        undone = event.record.status is not Status.DONE
        log = f"; its log: {event.record.log}" if undone and event.record.log else ""
        kinds: dict[Status, Kind] = {Status.DONE: "good", Status.INTERRUPTED: "warn"}
        kind = kinds.get(event.record.status, "bad")
        self._step(event.position, f"{ended_text(event.record)}{log}", kind, always=undone)

    def _step_blocked(self, event: events.StepBlocked) -> None:
        self._step(event.position, f"left: it needs '{event.need}', which is not done", "warn", always=True)

    def _step_held(self, event: events.StepHeld) -> None:
        if event.wanted:  # else the step that needs it tells
            self._step(event.position, f"left ({decision_text(event.decision)})", always=True)

    def _warned(self, event: events.Warned) -> None:
        self._line(f"warning: {event.message}", "warn", always=True)

    def _run_ended(self, event: events.RunEnded) -> None:
        kind: Kind = "good" if event.exit_code == 0 else "warn" if event.incomplete else "bad"
        self._line(f"job {event.job}: {totals(event, self._rate)}", kind)
        if event.exit_code >= 128:
            self._line(f"stopped{self._then}", "warn", always=True)
        elif event.incomplete:
            self._line(f"the budget is used up{self._then}", "warn", always=True)
        elif event.failed and self._ending is None:
            names = ", ".join(event.failed)
            self._line(f"failed: {names}{self._then}", always=True)
        if self._ending is not None:
            dots = self._style.dots if self._style else "..."
            for text, of_kind in self._ending.lines(event, self._columns(), dots):
                self._print(text, of_kind)

    @property
    def _then(self) -> str:
        return "" if self._ending else "; what is done is saved, run the same command again to go on"

    def _step(self, position: int, text: str, kind: Kind = "", *, always: bool = False) -> None:
        if self._job is not None:
            steps = self._job.steps
            self._line(f"[{position + 1}/{len(steps)}] {steps[position].id}: {text}", kind, always=always)

    def _line(self, text: str, kind: Kind = "", *, always: bool = False) -> None:
        if always or not self._quiet:
            self._print(f"checkpoint-run: {text}", kind)

    def _print(self, text: str, kind: Kind) -> None:
        before, after = self._style.around(kind) if self._style else ("", "")
        with self._output.own_line() as first:
            say(self._stream, text, first + before, after)


def same_place(first: int, second: int) -> bool:
    """Whether two descriptors lead to the same terminal or file."""
    try:
        one, other = os.fstat(first), os.fstat(second)
    except OSError:
        return False
    if sys.platform == "win32":
        return os.isatty(first) and os.isatty(second)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
