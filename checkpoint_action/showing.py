"""What a run on the command line shows, and where: lines, colours, a live view, JSON, a page."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import OutputError
from checkpoint_action.intent import state_paths
from checkpoint_action.report.hiding import Hiding
from checkpoint_action.report.lines import Answers, say
from checkpoint_action.report.rerun import command_to_go_on, quoted
from checkpoint_action.report.style import is_terminal, style_of, understands_sequences, wants_plain
from checkpoint_action.report.terminal import REMINDER, StepOutput, TerminalReport, same_place
from checkpoint_action.runner.masks import hide, secret_texts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from checkpoint_action.intent import Surroundings
    from checkpoint_action.model import Job, Record
    from checkpoint_action.report.details import Details
    from checkpoint_action.report.ending import Ending
    from checkpoint_action.report.live import LiveView
    from checkpoint_action.runner.events import Event, Listener
    from checkpoint_action.runner.selection import Selection
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store_use import StoreUse

__all__ = ["Showing"]


class Showing:
    """All that listens to a run of the command line, and gets its output.

    :param records: what earlier runs have left, for how long steps took.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        job: Job,
        around: Surroundings,
        *,
        stop: StopRequest,
        selection: Selection,
        records: Mapping[str, Record],
    ) -> None:
        self._options = options
        self._around = around
        self._secrets = secret_texts(job.secrets, around.env)
        # With --json the events have stdout to themselves.
        self.target = 2 if options.json else 1
        shared = same_place(1, 2) or self.target == 2
        plain = options.quiet and options.color == "auto"
        style = style_of(around.err, around.env, "never" if plain else options.color)
        self._unicode = style.unicode
        self._view: LiveView | None = None
        board = None
        if _may_be_live(options, around, shared=shared):
            from checkpoint_action.report.board import Board  # noqa: PLC0415  # on a terminal alone
            from checkpoint_action.report.estimate import Known  # noqa: PLC0415
            from checkpoint_action.report.live import LiveView  # noqa: PLC0415

            board = Board(Known(records, job.steps, selection), style, jobs=options.jobs, stop=stop)
            self._view = LiveView(2, board.lines, shared=shared, utf8=style.unicode)
        self._output = StepOutput(self.target, shared=shared, stop=stop, view=self._view)
        self._answers = Answers(around.out)
        self._board = board
        if options.json:
            from checkpoint_action.report.jsonlines import JsonReport  # noqa: PLC0415  # only where it is asked for

            report: Listener = JsonReport(self._answers.write)
            seen = around.out
        else:
            whole = self._view is not None or options.verbose
            report = TerminalReport(
                around.err,
                self._output,
                quiet=options.quiet,
                style=style,
                view=self._view,
                details=self._details(job) if options.verbose else None,
                ending=self._ending() if whole else None,
                rate=options.rate,
                columns=self._columns,
            )
            seen = around.err
        self._report = report if is_terminal(seen) else Hiding(report, self._secrets)
        self._pages = None
        if options.report:
            from checkpoint_action.report.html_report import HtmlReport  # noqa: PLC0415  # only where it is asked for

            self._pages = HtmlReport(self._secrets, options.rate)
        if options.json and not options.quiet:
            say(around.err, f"checkpoint-run: job {job.name}: {REMINDER}")

    def listen(self, event: Event) -> None:
        """Tell all of them of an event."""
        if self._pages is not None:
            self._pages(event)
        if self._board is not None:
            self._board(event)
        self._report(event)

    def write(self, data: bytes) -> None:
        """Show what the steps print."""
        if not self._options.quiet:
            self._output.write(data)

    def watched(self, use: StoreUse | None) -> StoreUse | None:
        """What is asked of a store, so that the transfers show where anything is drawn."""
        if use is None or self._board is None:
            return use
        from checkpoint_action.store.metered import metered  # noqa: PLC0415  # on a terminal alone

        return replace(use, store=metered(use.store, self._board.moved))

    @contextmanager
    def open(self) -> Iterator[None]:
        """Show what goes on at the moment, for as long as the context is open."""
        if self._view is None:
            yield
        else:
            with self._view.shown():
                yield

    def write_page(self) -> OutputError | None:
        """Write the page of the run, where one is asked for.

        :returns: why it could not be written, which never hides the run's own result.
        """
        if self._pages is not None:
            try:
                self._pages.write(Path(self._options.report))
            except OutputError as error:
                return error
        return None

    def check(self) -> None:
        """See that all that was asked for could be written.

        :raises OutputError: it could not.
        """
        self._answers.check()

    def _details(self, job: Job) -> Details:
        from checkpoint_action.report.details import Details  # noqa: PLC0415  # only where it is asked for

        verified = "size, times and inode" if self._options.verify == "stat" else "reading all of it"
        state = str(state_paths(self._options, job.name).snapshot)
        return Details(self._hidden(quoted(["checkpoint-run", *self._options.words])), state, verified)

    def _ending(self) -> Ending:
        from checkpoint_action.report.ending import Ending  # noqa: PLC0415  # only where it is shown

        return Ending(
            self._again,
            rate=self._options.rate,
            secrets=self._secrets,
        )

    def _again(self, undone: Sequence[str], pending: Sequence[str], steps: Sequence[str]) -> str:
        """The command line that goes on, unless what is shown of it would be another one."""
        command = command_to_go_on(self._options.words, undone, pending=pending, steps=steps)
        shown = command.isascii() or self._unicode
        return command if shown and self._hidden(command) == command else ""

    def _hidden(self, text: str) -> str:
        """A text of our own without secrets, where it goes further than to who has typed them."""
        return text if is_terminal(self._around.err) else hide(text, self._secrets)

    def _columns(self) -> int | None:
        try:
            return os.get_terminal_size(2).columns - 1 if is_terminal(self._around.err) else None
        except OSError:
            return None


def _may_be_live(options: argparse.Namespace, around: Surroundings, *, shared: bool) -> bool:
    """Whether lines may be drawn at the bottom of the terminal of stderr.

    Not where output of others may come to it past us, as through a pipe.
    """
    if options.quiet or options.json or options.no_live or wants_plain(around.env):
        return False
    if not is_terminal(around.err) or not (shared or _goes_to_a_file(1)):
        return False
    return understands_sequences() and (sys.platform == "win32" or bool(around.env.get("TERM")))


def _goes_to_a_file(fd: int) -> bool:
    """Whether a descriptor leads where nobody looks: to a file, or nowhere."""
    if os.isatty(fd):
        return False
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or stat.S_ISCHR(mode)
