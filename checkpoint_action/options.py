"""The options of the command line that several verbs have, and their values."""

from __future__ import annotations

import argparse
import re

from checkpoint_action.jobfile.values import parse_duration, parse_endpoint, parse_limit, parse_size

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

__all__ = ["add_job_options", "add_limit_options", "add_state_options", "add_store_options", "age", "count"]


class _Once(argparse.Action):
    """An option whose second value would say something else than its first."""

    def __call__(
        self, _parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, _option: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "it is there twice; give the first of the steps, all after it run too")
        setattr(namespace, self.dest, values)


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _limit(text: str) -> float:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def age(text: str) -> float:
    """Seconds of a duration that may be in days, too."""
    days = re.fullmatch(r"([0-9]{1,6})d", text)
    return int(days[1]) * 86400.0 if days else _duration(text)


def _endpoint(text: str) -> str:
    try:
        parse_endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _rate(text: str) -> Any:  # a Rate, whose module is not read before it is needed
    from checkpoint_action.report.money import parse_rate  # noqa: PLC0415  # only where it is asked for

    try:
        return parse_rate(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(least: int) -> type:
    """A kind of value: a whole number from ``least`` on."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least}")
        return int(text)

    return parse  # type: ignore[return-value]  # argparse takes any callable


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Those that say what the job is."""
    job = parser.add_argument_group("the job")
    job.add_argument("--job", metavar="NAME", help="name of the job and of its state file")
    job.add_argument(
        "--step", metavar="ID:COMMAND", action="append", default=[], help="a step; give it as often as needed"
    )
    job.add_argument("-f", "--file", metavar="FILE", help="job file (default: checkpoint.yml or checkpoint.yaml here)")
    job.add_argument("-C", "--directory", metavar="DIR", help="go to this folder first")
    job.add_argument("--chain", action="store_true", help="each --step needs the one before, as in a job file")
    job.add_argument(
        "--shell",
        metavar="SHELL",
        help="shell for --step commands: system (default), sh, bash, pwsh, python or 'cmd {0}'",
    )
    job.add_argument(
        "--step-artifact", metavar="ID:PATH", action="append", default=[], help="a file the step must leave"
    )
    job.add_argument("--step-log", metavar="ID:PATH", action="append", default=[], help="file for the step's output")
    job.add_argument("--logs-dir", metavar="DIR", help="folder for a log of each step (default: beside the state)")
    job.add_argument("--no-logs", action="store_true", help="keep no logs but those that are asked for")
    job.add_argument(
        "-j", "--jobs", metavar="N", type=count(1), default=1, help="run up to N independent steps at once"
    )


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Those about time, failures and further tries."""
    limits = parser.add_argument_group("limits and failures")
    limits.add_argument("--timeout", metavar="DURATION", type=_limit, help="time each try of a step may take")
    limits.add_argument(
        "--step-timeout", metavar="ID:DURATION", action="append", default=[], help="the same for one step"
    )
    limits.add_argument("--retry", metavar="N", type=count(0), help="extra tries of a step that fails or times out")
    limits.add_argument(
        "--backoff", metavar="DURATION", type=_duration, help="wait before the first extra try (1), doubled for each"
    )
    limits.add_argument("--backoff-max", metavar="DURATION", type=_duration, help="longest such wait (1h)")
    limits.add_argument("--jitter", action="store_true", help="draw each wait between nothing and its full length")
    limits.add_argument(
        "--retry-on", metavar="LIST", help="what is tried again: error, timeout, exit codes (error,timeout)"
    )
    limits.add_argument(
        "--wait-online", metavar="HOST:PORT", type=_endpoint, help="before another try, wait until this answers"
    )
    limits.add_argument("--idle-timeout", metavar="DURATION", type=_limit, help="time a step may go without output")
    limits.add_argument(
        "--budget", metavar="DURATION", type=_limit, help="stop before this much time has passed; exit code 75"
    )
    limits.add_argument(
        "--on-hangup",
        choices=("stop", "continue"),
        default="stop",
        help="when the terminal goes away (a dropped SSH session): stop and save, or go on",
    )
    limits.add_argument("--continue-on-error", action="store_true", help="go on after a step has failed")
    limits.add_argument(
        "--max-failures", metavar="N", type=count(1), help="with --continue-on-error: stop after N failures"
    )


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Those about steps that are kept for other machines."""
    stores = parser.add_argument_group("stores: steps kept for other machines")
    stores.add_argument(
        "--store",
        metavar="URL",
        help="file:///folder, s3://, gs:// or az://bucket/prefix (default: CHECKPOINT_STORE; none: no store)",
    )
    stores.add_argument(
        "--scope",
        choices=("run", "commit", "content"),
        help="whom a checkpoint serves: tries of one run (in CI), of one commit, or whoever has the same inputs",
    )
    stores.add_argument("--run-id", metavar="NAME", help="what ties the tries together where no CI system does")
    stores.add_argument("--exclude", metavar="GLOB", action="append", default=[], help="what is never kept")
    stores.add_argument("--max-size", metavar="SIZE", type=_size, help="leave steps out that leave more, such as 2GiB")
    stores.add_argument("--read-only", action="store_true", help="take from the store, put nothing into it")
    stores.add_argument("--fail-on-store-error", action="store_true", help="a store that fails is an error")


def add_state_options(parser: argparse.ArgumentParser) -> None:
    """Those about the state and what is shown of it."""
    state = parser.add_argument_group("state and views")
    state.add_argument("--state-dir", metavar="DIR", default=".", help="folder of the state files (default: .)")
    state.add_argument(
        "--verify",
        choices=("full", "stat"),
        default="full",
        help="read all files to see what changed (full), or trust size, times and inode as git does (stat)",
    )
    state.add_argument(
        "--only",
        metavar="ID",
        action="extend",
        nargs="+",
        help="run these steps, done or not, and no other; what they need must be done",
    )
    state.add_argument(
        "--from", metavar="ID", dest="first", action=_Once, help="run this step and all after it, done or not"
    )
    state.add_argument(
        "--force",
        metavar="ID",
        action="append",
        nargs="*",
        help="run these steps though they are done; without an id: start from fresh state and run every step",
    )
    state.add_argument(
        "--wait-lock",
        metavar="SECONDS",
        nargs="?",
        type=_duration,
        const=-1.0,
        default=0.0,
        help="wait for another run of this job to end",
    )
    state.add_argument("--status", action="store_true", help="the verb status")
    state.add_argument("--reset", action="store_true", help="the verb reset")
    state.add_argument("--dry-run", action="store_true", help="the verb plan: executes and writes nothing")
    state.add_argument("--json", action="store_true", help="for programs: plan, records or one event a line")
    loud = state.add_mutually_exclusive_group()
    loud.add_argument(
        "-q", "--quiet", action="store_true", help="only say what went wrong; output of steps only to their logs"
    )
    loud.add_argument("-v", "--verbose", action="store_true", help="say more: commands, what was verified, transfers")
    state.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto; heeds NO_COLOR)"
    )
    state.add_argument("--report", metavar="FILE.html", help="write the run as one HTML page at its end")
    state.add_argument("--no-pty", action="store_true", help="steps see a pipe instead of a terminal")
    state.add_argument("--no-live", action="store_true", help="draw nothing at the bottom of the terminal")
    state.add_argument(
        "--on-finish", metavar="COMMAND", help="run this at the end; it finds the result in CHECKPOINT_RESULT"
    )
    state.add_argument(
        "--rate", metavar="MONEY", type=_rate, help="price of machine time (0.48/h, $0.008/min), to say what is saved"
    )
