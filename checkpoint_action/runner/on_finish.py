"""A command of the user's that is run when a job is over, whatever came of it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import SYSTEM_SHELL, Step
from checkpoint_action.runner.descendants import MARKER
from checkpoint_action.runner.process import Command, End, Limits, run_command
from checkpoint_action.runner.redact import Redactor
from checkpoint_action.runner.shells import Scripts, shell_command
from checkpoint_action.runner.tally import INCOMPLETE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checkpoint_action.runner.events import RunEnded
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["LONGEST", "result_variables", "run_on_finish"]

LONGEST = 60.0
"""Seconds that the command may take."""

_GRACE = 2.0
_LONGEST_LIST = 8000  # characters: Windows has 32,767 for a variable, Linux 131,072
_SIGNALS = 128


def run_on_finish(
    text: str,
    env: Mapping[str, str],
    write: Callable[[bytes], None],
    stop: StopRequest,
    *,
    secrets: tuple[bytes, ...] = (),
    longest: float = LONGEST,
) -> str:
    """Run the command to its end.

    :param text: for the system's shell.
    :param env: all of its environment.
    :param write: gets its output.
    :param stop: ends it early.
    :param secrets: values that do not show in its output.
    :param longest: seconds after which it is killed with all that it started.
    :returns: what went wrong, in a line; empty where nothing did.
    """
    token = os.urandom(8).hex()
    try:
        step = Step("on-finish", text, SYSTEM_SHELL, Path.cwd())
        with closing(Scripts()) as scripts:
            command = Command(shell_command(step, env, scripts).argv, step.cwd, {**env, MARKER: token})
            redactor = Redactor(secrets, write) if secrets else None
            taker = write if redactor is None else redactor.write
            outcome = run_command(command, Limits(timeout=longest, grace=_GRACE), taker, stop)
            if redactor is not None:
                redactor.close()
    except OSError as error:
        return f"the command of --on-finish cannot be started: {error.strerror or error}"
    said = f"; {'; '.join(outcome.notes)}" if outcome.notes else ""
    if outcome.end is End.NOT_STARTED:
        return f"the command of --on-finish did not start{said}"
    if outcome.end is End.TIMEOUT:
        return f"the command of --on-finish took longer than {longest:g} s and was ended{said}"
    if outcome.end is End.STOPPED:
        return f"the command of --on-finish was stopped{said}"
    if outcome.signal is not None:
        return f"the command of --on-finish was ended by signal {outcome.signal}{said}"
    return f"the command of --on-finish ended with exit code {outcome.exit_code}{said}" if outcome.exit_code else ""


def result_variables(job: str, exit_code: int, ended: RunEnded | None, folder: Path) -> dict[str, str]:
    """How the run ended, as variables.

    :param exit_code: of the whole.
    :param ended: ``None`` where the run broke off.
    :param folder: the state dir.
    """
    found = {
        "CHECKPOINT_JOB": job,
        "CHECKPOINT_RESULT": _result(exit_code),
        "CHECKPOINT_EXIT_CODE": str(exit_code),
        "CHECKPOINT_STATE_DIR": str(folder.absolute()),
        "CHECKPOINT_SECONDS": f"{ended.seconds:.1f}" if ended else "",
        "CHECKPOINT_SECONDS_SAVED": f"{ended.saved:.1f}" if ended else "",
    }
    lists = ("ran", "skipped", "restored", "failed", "stopped", "pending")
    for name in lists:
        steps = getattr(ended, name) if ended else ()
        found[f"CHECKPOINT_{name.upper()}"] = _list(steps)
        found[f"CHECKPOINT_{name.upper()}_COUNT"] = str(len(steps)) if ended else ""
    return found


def _result(exit_code: int) -> str:
    if exit_code == 0:
        return "success"
    if exit_code == INCOMPLETE:
        return "incomplete"
    return "interrupted" if exit_code > _SIGNALS else "failure"


def _list(steps: Sequence[str]) -> str:
    """Ids with a space between them; of very many the first."""
    text = " ".join(steps)
    return text if len(text) <= _LONGEST_LIST else text[:_LONGEST_LIST].rpartition(" ")[0]
