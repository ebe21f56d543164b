"""All that listens to a run of the action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.report.actions_log import ActionsLog
from checkpoint_action.report.summary import SummaryReport
from checkpoint_action.report.tail import OutputTail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.report.terminal import StepOutput
    from checkpoint_action.runner.events import Event

__all__ = ["ActionReports"]


class ActionReports:
    """Log, last lines and summary, each told of every event and of what steps print.

    :param output: where what steps print goes.
    :param secrets: values that must not show.
    :param block_commands: whether what steps print is kept from being taken for workflow commands.
    :param at_once: whether steps may run beside each other.
    """

    def __init__(self, output: StepOutput, secrets: Sequence[str], *, block_commands: bool, at_once: bool) -> None:
        self._output = output
        self.tail = OutputTail(secrets)
        self.log = ActionsLog(block_commands=block_commands, at_once=at_once, output=output, tails=self.tail.of)
        self.summary = SummaryReport()

    def tell(self, event: Event) -> None:
        """Tell all of them; the last lines are there before those who show them."""
        for one in (self.tail, self.log, self.summary):
            one(event)

    def write(self, data: bytes) -> None:
        """Hand on what the steps print."""
        self.tail.write(data)
        self._output.write(data)
