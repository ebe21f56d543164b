"""What follows a run on the command line: its answers are kept, and the command that was given for the end runs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.arguments import parse_arguments
from checkpoint_action.intent import SIGNING_KEY, job_of, mark_of_file
from checkpoint_action.report.lines import say
from checkpoint_action.runner.recall import Question, is_drawn_on

if TYPE_CHECKING:
    import argparse

    from checkpoint_action.model import Job
    from checkpoint_action.runner.events import RunEnded
    from checkpoint_action.runner.journal import Loaded, StatePaths

__all__ = ["Ending", "finish", "remember"]


class Ending:
    """How a run ends.

    :param code: the exit code, as long as no other is known.
    :ivar began: whether it held the job.
    :ivar told: what was told of its end.
    """

    def __init__(self, code: int) -> None:
        self.began = False
        self.code = code
        self.told: RunEnded | None = None


def remember(options: argparse.Namespace, job: Job, mark: str, paths: StatePaths, known: Loaded) -> None:
    """Keep what a run and a plan have to say from now on, as long as nothing changes.

    What a run like this one has to say is kept where the next one would be told by it; and what
    ``plan --verify stat`` has to say, after each run that trusts size, times and inode.

    :param mark: of the job file that the job was read from.
    :param known: what the run has left in the state.
    """
    asked = Question.of(options.words)
    trusting = options.verify == "stat"
    if not trusting and (asked is None or is_drawn_on(asked)):
        return
    from checkpoint_action.report.nothing_to_do import answers_of  # noqa: PLC0415  # only where it is kept
    from checkpoint_action.runner.remembering import remember as keep  # noqa: PLC0415
    from checkpoint_action.runner.signals import interrupted_by_signals  # noqa: PLC0415

    question = Question(options.file, options.state_dir, options.job, trusting=trusting)

    def read() -> Job:
        if asked is not None and mark and mark == mark_of_file(options):
            return job
        return job_of(parse_arguments(question.words()))

    # The run has ended, and how it did stays.
    with suppress(KeyboardInterrupt), interrupted_by_signals():
        keep(question, read, paths, os.environ, answers_of, known=known)


def finish(options: argparse.Namespace, job: Job, paths: StatePaths, ending: Ending) -> None:
    """Run the command that was given for the end; the run's own result stays, whatever comes of it."""
    from checkpoint_action.report.terminal import StepOutput  # noqa: PLC0415  # only where it is asked for
    from checkpoint_action.runner.on_finish import result_variables, run_on_finish  # noqa: PLC0415
    from checkpoint_action.runner.redact import secret_values  # noqa: PLC0415
    from checkpoint_action.runner.signals import stop_on_signals  # noqa: PLC0415
    from checkpoint_action.runner.stop import StopRequest  # noqa: PLC0415

    env = {name: value for name, value in os.environ.items() if name != SIGNING_KEY}
    env |= result_variables(job.name, ending.code, ending.told, paths.folder)
    if options.rate is not None and ending.told is not None:
        env["CHECKPOINT_MONEY_SAVED"] = options.rate.cost(ending.told.saved)
    stop = StopRequest()
    output = StepOutput(2, shared=True, stop=stop)
    with stop_on_signals(stop, ignore_hangup=options.on_hangup == "continue"):
        secrets = () if os.isatty(2) else secret_values(job.secrets, os.environ)
        fault = run_on_finish(options.on_finish, env, output.write, stop, secrets=secrets)
    if fault:
        say(sys.stderr, f"checkpoint-run: warning: {fault}", output.break_line())
