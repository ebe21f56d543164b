"""What ``--verbose`` says beside the usual lines."""

from __future__ import annotations

from functools import singledispatchmethod
from typing import TYPE_CHECKING

from checkpoint_action.model import AUTO
from checkpoint_action.report.words import duration, size
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from checkpoint_action.model import Job, Record, Step

__all__ = ["Details"]

_NAMED = 8


class Details:
    """Listens to a run, and has more lines for some of its events.

    :param command_line: as it was given, quoted for a shell.
    :param state: where the state lies, for people.
    :param verified: how files are compared.
    """

    def __init__(self, command_line: str, state: str, verified: str) -> None:
        self._command_line = command_line
        self._state = state
        self._verified = verified
        self._job: Job | None = None

    def of(self, event: events.Event) -> list[str]:
        """The lines for an event."""
        return self._of(event)

    @singledispatchmethod
    def _of(self, _event: events.Event) -> list[str]:
        return []

    @_of.register
    def _(self, event: events.RunStarted) -> list[str]:
        self._job = event.job
        looked_at = f"{len(event.steps) or len(event.job.steps)} of {len(event.job.steps)} steps are looked at"
        return [f"command line: {self._command_line}", f"state: {self._state}", looked_at]

    @_of.register
    def _(self, event: events.StepSkipped) -> list[str]:
        return [f"fingerprint {event.record.fingerprint[:16]} as recorded", *self._checked(event.record)]

    @_of.register
    def _(self, event: events.StepRestoring) -> list[str]:
        where = f" from {event.record.archive.key}" if event.record.archive else ""
        return [f"putting back {_amount(event.record)}{where}"]

    @_of.register
    def _(self, event: events.StepStarted) -> list[str]:
        step = self._step(event.position)
        if step is None:
            return []
        lines = [f"in {step.cwd}, with {step.shell}{_limits(step)}"]
        return lines + [f"$ {line}" for line in event.command.splitlines()]

    @_of.register
    def _(self, event: events.TryStarted) -> list[str]:
        return [f"try {event.number} begins"]

    @_of.register
    def _(self, event: events.StepEnded) -> list[str]:
        record, lines = event.record, []
        if record.layer.entries:
            lines.append(f"left {_amount(record)}")
        if handed_on := [*record.values.env, *record.values.outputs]:
            lines.append(f"hands on {_names(handed_on)}")
        if record.withheld:
            lines.append(f"hands on and does not record, as it is secret: {_names(record.withheld)}")
        return lines

    @_of.register
    def _(self, event: events.StepsKept) -> list[str]:
        named = [*event.steps, *(f"{step} (unfinished)" for step in event.unfinished)]
        return [f"{event.store} has {_names(named)}, {size(event.size)}"]

    def _step(self, position: int) -> Step | None:
        return None if self._job is None else self._job.steps[position]

    def _checked(self, record: Record) -> list[str]:
        lines = []
        if counted := sorted(record.parts):
            lines.append(f"compared: {_names(counted)}")
        if record.layer.entries:
            lines.append(f"verified by {self._verified}: {_amount(record)}")
        return lines


def _amount(record: Record) -> str:
    entries = record.layer.entries
    paths = "1 path" if len(entries) == 1 else f"{len(entries)} paths"
    return f"{paths} with {size(sum(entry.size for entry in entries))}"


def _limits(step: Step) -> str:
    parts = []
    if step.timeout is not None:
        parts.append(f"for {duration(step.timeout)} at most")
    if step.idle_timeout is not None:
        parts.append(f"{duration(step.idle_timeout)} without output at most")
    if step.retry.max:
        parts.append(f"up to {step.retry.max + 1} tries")
    if step.outputs == AUTO:
        parts.append("its outputs are what it changes")
    elif step.outputs:
        parts.append(f"leaves {_names([*step.outputs])}")
    return "".join(f"; {part}" for part in parts)


def _names(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
