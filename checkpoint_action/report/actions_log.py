"""The log of a workflow run: a group a step, annotations for what went wrong."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from functools import singledispatchmethod
from types import MappingProxyType
from typing import TYPE_CHECKING

from checkpoint_action.model import Reason, Status
from checkpoint_action.report.markdown import shortened
from checkpoint_action.report.words import decision_text, duration, ended_text, one_line, size, totals, worth_saying
from checkpoint_action.runner import events
from checkpoint_action.toolkit import core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checkpoint_action.model import Job, Record
    from checkpoint_action.report.terminal import StepOutput

__all__ = ["ActionsLog"]

_ASK = (
    "the machine was lost while it ran, so it may have done its work. See whether it has, then start a new run of the "
    "workflow instead of another attempt (and where the scope is not 'run', with the input 'force: true')"
)
"""What a person is to do about a step that must not run twice: a workflow has no command line to say it on."""

_ANNOTATIONS = 8
"""Of each kind at once. The runner keeps 10 a step: one is for those past these, one for the end of the action."""

_LONGEST = 4000  # characters; the runner cuts an annotation at 4096
_NAMED = 20  # what is named of those past the limit
_OLD_COMMAND = re.compile(r"##(?=\[)")
_LINE_END = re.compile(r"\r\n|\r|\n")


class ActionsLog:
    """Listens to a run and writes workflow commands and lines. Uploads may warn from their own thread.

    :param block_commands: whether what steps print is kept from being taken for workflow commands.
    :param at_once: whether steps may run beside each other; each shows its output when it ends then.
    :param output: where the steps' output goes, to the same place.
    :param tails: by step id, the last lines of a failed step, there by the time that its end is told.
    :ivar done_here: ids of the steps that an earlier use of the action on this machine has finished or restored.
    """

    def __init__(
        self,
        *,
        block_commands: bool = False,
        at_once: bool = False,
        output: StepOutput | None = None,
        tails: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._block = block_commands
        self._at_once = at_once
        self._started: dict[int, tuple[str, str]] = {}
        self._output = output
        self._tails = tails
        self._token = ""
        self._open = False
        self._later: list[str] = []  # what is no word of the step whose output is being shown
        self._errors = _Annotations("error", core.error)
        self._warnings = _Annotations("warning", core.warning)
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._kept = False  # whether another attempt has anything to go on from
        self.done_here: frozenset[str] = frozenset()

    def __call__(self, event: events.Event) -> None:
        """Tell of an event."""
        with self._lock, suppress(OSError):  # nobody reads the log any more: the job goes on
            if self._output is not None and not self._token and self._output.break_line():
                core.info("")  # or the command that follows would be none
            self._tell(event)

    def mask(self, value: str) -> None:
        """Have the runner hide a value, also where it heeds no commands just now; from any thread."""
        with self._lock, suppress(OSError):
            if self._output is not None and not self._token and self._output.break_line():
                core.info("")  # or the command would be none
            stopped = self._resume()
            core.set_secret(value)
            if stopped:
                self._token = core.stop_commands()

    @singledispatchmethod
    def _tell(self, event: events.Event) -> None:
        pass  # nothing to say of the rest

    @_tell.register
    def _(self, event: events.RunStarted) -> None:
        self._job = event.job

    @_tell.register
    def _(self, event: events.StepSkipped) -> None:
        why = f" ({event.decision.detail})" if event.decision.detail else ""  # that it is done goes without saying
        _line(f"{self._name(event.position)}: skipped{why}{_saves(event.record)}")

    @_tell.register
    def _(self, event: events.StepRestored) -> None:
        self._kept = True
        took = f" in {duration(event.seconds)}" if worth_saying(event.seconds) else ""
        lost = event.decision.step in self.done_here and event.decision.detail
        why = f"; it was done here, but not all is as it was: {lost}" if lost else ""
        _line(f"{self._name(event.position)}: restored{took}{_saves(event.record)}{why}")

    @_tell.register
    def _(self, event: events.StepStarted) -> None:
        title = f"{self._name(event.position)}: runs ({decision_text(event.decision)})"
        if self._at_once:
            self._started[event.position] = title, event.command
            _line(title)
        else:
            self._start_group(title, event.command)

    @_tell.register
    def _(self, event: events.OutputShown) -> None:
        if event.position in self._started:
            self._start_group(*self._started.pop(event.position))

    def _start_group(self, title: str, command: str) -> None:
        self._open = True
        core.start_group(_defused(title))
        for line in _LINE_END.split(command.rstrip("\r\n")):
            _line(line, "\x1b[36;1m", "\x1b[0m")
        if self._block:
            self._token = core.stop_commands()

    @_tell.register
    def _(self, event: events.StepRetried) -> None:
        _line(f"{self._name(event.position)}: {ended_text(event.failed)}; next try in {duration(event.wait)}")

    @_tell.register
    def _(self, event: events.StepEnded) -> None:
        self._end_group()
        text = f"{self._name(event.position)}: {ended_text(event.record)}"
        if event.record.status in (Status.FAILED, Status.TIMEOUT):
            self._show_tail(event.record.step)
            self._errors.make(text, step=event.record.step)
        else:
            _line(text)

    @_tell.register
    def _(self, event: events.StepBlocked) -> None:
        _line(f"{self._name(event.position)}: left: it needs '{event.need}', which is not done")

    @_tell.register
    def _(self, event: events.StepHeld) -> None:
        if event.decision.reason is Reason.INTERRUPTED_BEFORE:
            self._errors.make(f"{self._name(event.position)}: not run: {_ASK}", step=event.decision.step)
        else:
            _line(f"{self._name(event.position)}: left: {decision_text(event.decision)}")

    @_tell.register
    def _(self, event: events.StepsKept) -> None:
        self._kept = True
        names = [*event.steps, *(f"what {step} has so far" for step in event.unfinished)]
        line = f"kept in the {event.store}: {', '.join(names)} ({size(event.size)})"
        if self._open and self._at_once:  # the group is another step's, and soon over
            self._later.append(line)
        else:
            _line(line)

    @_tell.register
    def _(self, event: events.ProgressRestored) -> None:
        _line(f"{self._name(event.position)}: goes on from what its last try left ({size(event.size)})")

    @_tell.register
    def _(self, event: events.Warned) -> None:
        stopped = self._resume()
        self._warnings.make(event.message)
        if stopped:
            self._token = core.stop_commands()

    @_tell.register
    def _(self, event: events.RunEnded) -> None:
        self._end_group()  # of a step that was stopped before it began
        self._errors.rest()
        self._warnings.rest()
        _line(f"steps of {event.job}: {totals(event)}")
        if event.incomplete:
            left = [*event.stopped, *(step for step in event.pending if step not in event.stopped)]
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            core.warning(
                f"the budget is used up: this is green and not finished (left: {', '.join(left[:_NAMED])}{more}); "
                + (
                    "what is done is kept, and the next run of the job goes on from here"
                    if self._kept
                    else "nothing is kept, so the next run begins from the start"
                )
            )
        elif (event.failed or event.stopped) and self._kept:
            _line('what is done is kept: "Re-run failed jobs" goes on from here')

    def _show_tail(self, step: str) -> None:
        """The last lines again, where nobody has to unfold anything; no command in them counts twice."""
        tail = self._tails.get(step)
        if tail:
            _line(f"the last lines of {step}:")
            with core.commands_stopped():
                for line in tail:
                    _line(line, "  ")

    def _end_group(self) -> None:
        self._resume()
        if self._open:
            core.end_group()
        self._open = False
        later, self._later = self._later, []
        for line in later:
            _line(line)

    def _resume(self) -> bool:
        """Let the runner heed commands again; whether it did not."""
        token, self._token = self._token, ""
        if token:
            core.info("")  # what a step printed last may not have ended its line
            core.resume_commands(token)
        return bool(token)

    def _name(self, position: int) -> str:
        steps = self._job.steps if self._job else ()
        return f"[{position + 1}/{len(steps)}] {steps[position].id}" if steps else str(position + 1)


class _Annotations:
    """Those of one kind: as many as the runner keeps, and at the end one for the rest."""

    def __init__(self, kind: str, make: Callable[..., None]) -> None:
        self._kind = kind
        self._make = make
        self._made = 0
        self._rest: list[str] = []

    def make(self, text: str, *, step: str = "") -> None:
        """Say what went wrong."""
        text = shortened(text, _LONGEST)
        if self._made < _ANNOTATIONS:
            self._made += 1
            self._make(text, title=f"step {step}" if step else None)
        else:
            self._rest.append(step)
            _line(f"{self._kind}: {text}")

    def rest(self) -> None:
        """Say how many there were for which there was no room."""
        named = [step for step in self._rest if step]
        more = ", …" if len(named) > _NAMED else ""
        steps = f", of the steps {', '.join(named[:_NAMED])}{more}" if named else ""
        if self._rest:
            self._make(f"{len(self._rest)} more {self._kind}s are in the log of this step{steps}")
        self._rest = []


def _saves(record: Record) -> str:
    return f", saves {duration(record.duration)}" if worth_saying(record.duration) else ""


def _line(text: str, before: str = "", after: str = "") -> None:
    """A line for people in which the runner finds no command, whatever is in it.

    :param before: what to print in front, as it is.
    """
    core.info(f"{before}{_defused(text)}{after}")


def _defused(text: str) -> str:
    """A text in one line; the older commands, ``##[name]``, count anywhere in one."""
    return _OLD_COMMAND.sub("##\x1b[m", one_line(text))
