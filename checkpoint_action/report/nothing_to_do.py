"""What is said of a job of which all is done, worked out beforehand."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from checkpoint_action.report.tables import plan_json, plan_lines
from checkpoint_action.report.terminal import StepOutput, TerminalReport
from checkpoint_action.report.words import duration, totals_around
from checkpoint_action.runner import events
from checkpoint_action.runner.memory import Answers
from checkpoint_action.runner.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Job, Plan, Record

__all__ = ["answers_of"]

_NO_TIME = 0.0


def answers_of(job: Job, planned: Plan, records: Mapping[str, Record]) -> Answers:
    """What ``plan`` and a run say.

    :param planned: skips each step.
    :param records: of all steps.
    """
    run, rest = _run(job, planned, records)
    return Answers("\n".join([*plan_lines(planned), ""]), f"{plan_json(planned)}\n", run, rest)


def _run(job: Job, planned: Plan, records: Mapping[str, Record]) -> tuple[str, str]:
    """What a run says, up to the time it took and after it."""
    said = io.BytesIO()
    with io.TextIOWrapper(said, "utf-8", newline="", write_through=True) as stream:
        report = TerminalReport(stream, StepOutput(2, shared=False))
        tally = Tally([step.id for step in job.steps])
        report(events.RunStarted(job, tally.steps))
        for position, decision in enumerate(planned.decisions):
            record = records[decision.step]
            tally.skipped(record)
            report(events.StepSkipped(position, decision, record))
        ended = tally.ended(job.name, None, _NO_TIME)
        report(ended)
        stream.flush()
        rest = f"{totals_around(ended)[1]}\n"
        after = f"{duration(_NO_TIME)}{rest}".encode()
        with said.getbuffer() as text:  # it is not copied more than once, as it may be long
            end = len(text) - len(after)
            return str(text[:end], "utf-8"), rest
