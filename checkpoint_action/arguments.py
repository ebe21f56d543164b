"""The command line's grammar."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, NoReturn

from checkpoint_action import __version__
from checkpoint_action.errors import UsageError
from checkpoint_action.jobfile.values import nearest, parse_duration, parse_endpoint, parse_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VERBS", "parse_arguments"]

VERBS = {
    "run": "run what is left of a job (no verb means this)",
    "plan": "say what a run would do, and why",
    "status": "show what is recorded of each step",
    "reset": "forget what is recorded: of the steps named (reset ID...), or of all",
    "accept": "take steps as done, as they are now, without running them (accept ID...)",
    "save": "inside a running step: make its partial progress durable now",
    "logs": "print the output of a step's last try (logs ID, with --follow as it comes)",
}

_ABOUT_STEPS = ("reset", "accept")
"""The verbs that take ids of steps."""

_EPILOG = """\
examples:
  checkpoint-run --job render --step download:"curl -fO https://example.com/in.mp4" \\
                              --step convert:"ffmpeg -i in.mp4 out.webm"
  checkpoint-run -f checkpoint.yml          run the steps of a job file
  checkpoint-run plan                       what would run, and why
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self._plain(message)}; see checkpoint-run --help")

    def _plain(self, message: str) -> str:
        """What argparse says, in plain words."""
        about = re.fullmatch(r"argument (\S+): (.*)", message, re.DOTALL)
        if about is None:
            missing = "the following arguments are required: id"
            return "logs needs the id of a step: logs ID" if message == missing else message
        flag, said = about[1].split("/")[-1], about[2]
        if value := re.fullmatch(r"ignored explicit argument (.*)", said, re.DOTALL):
            return f"{flag} takes no value; leave {value[1]} out"
        if said.startswith("expected "):
            action = self._option_string_actions.get(flag)
            name = str(action.metavar or action.dest.upper()) if action else "VALUE"
            return f"{flag} needs {'the id of a step' if name == 'ID' else 'a value'}: {flag} {name}"
        if choice := re.fullmatch(r"invalid choice: (.*) \(choose from (.*)\)", said, re.DOTALL):
            return f"{flag}: {choice[1]} is not valid; use one of {choice[2].replace(chr(39), '')}"
        return f"{flag}: {said}"


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


def _endpoint(text: str) -> str:
    try:
        parse_endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _count(least: int) -> type:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least}")
        return int(text)

    return parse  # type: ignore[return-value]  # argparse takes any callable


def _parser() -> _Parser:
    parser = _Parser(
        prog="checkpoint-run",
        usage="checkpoint-run [VERB] [options]",
        description="Runs the named steps of a job and keeps what is done: the next run does only what is left.",
        epilog="verbs:\n" + "".join(f"  {name:<8} {text}\n" for name, text in VERBS.items()) + "\n" + _EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    job = parser.add_argument_group("the job")
    job.add_argument("--job", metavar="NAME", help="name of the job and of its state file")
    job.add_argument(
        "--step", metavar="ID:COMMAND", action="append", default=[], help="a step; give it as often as needed"
    )
    job.add_argument("-f", "--file", help="job file (default: checkpoint.yml or checkpoint.yaml here)")
    job.add_argument("-C", "--directory", metavar="DIR", help="go to this folder first")
    job.add_argument("--chain", action="store_true", help="each --step needs the one before, as in a job file")
    job.add_argument("--shell", help="shell for --step commands: system (default), sh, bash, pwsh, python or 'cmd {0}'")
    job.add_argument(
        "--step-artifact", metavar="ID:PATH", action="append", default=[], help="a file the step must leave"
    )
    job.add_argument("--step-log", metavar="ID:PATH", action="append", default=[], help="file for the step's output")
    job.add_argument("--logs-dir", metavar="DIR", help="folder for a log of each step (default: beside the state)")
    job.add_argument("--no-logs", action="store_true", help="keep no logs but those that are asked for")
    job.add_argument(
        "-j", "--jobs", metavar="N", type=_count(1), default=1, help="run up to N independent steps at once"
    )
    limits = parser.add_argument_group("limits and failures")
    limits.add_argument("--timeout", metavar="SECONDS", type=_limit, help="time each try of a step may take")
    limits.add_argument(
        "--step-timeout", metavar="ID:SECONDS", action="append", default=[], help="the same for one step"
    )
    limits.add_argument("--retry", metavar="N", type=_count(0), help="extra tries of a step that fails or times out")
    limits.add_argument(
        "--backoff", metavar="SECONDS", type=_duration, help="wait before the first extra try (1), doubled for each"
    )
    limits.add_argument("--backoff-max", metavar="SECONDS", type=_duration, help="longest such wait (1h)")
    limits.add_argument("--jitter", action="store_true", help="draw each wait between nothing and its full length")
    limits.add_argument(
        "--retry-on", metavar="LIST", help="what is tried again: error, timeout, exit codes (error,timeout)"
    )
    limits.add_argument(
        "--wait-online", metavar="HOST:PORT", type=_endpoint, help="before another try, wait until this answers"
    )
    limits.add_argument("--idle-timeout", metavar="SECONDS", type=_limit, help="time a step may go without output")
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
        "--max-failures", metavar="N", type=_count(1), help="with --continue-on-error: stop after N failures"
    )
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
    state.add_argument(
        "-q", "--quiet", action="store_true", help="only say what went wrong; output of steps only to their logs"
    )
    state.add_argument("--no-pty", action="store_true", help="steps see a pipe instead of a terminal")
    parser.add_argument("--version", action="version", version=f"checkpoint-run {__version__}")
    return parser


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The words of a command line as a namespace whose ``verb`` is one of :data:`VERBS`.

    :raises UsageError: a word is unknown, or its value not usable.
    """
    words = list(argv)
    verb = None
    if words and not words[0].startswith("-"):
        verb = words.pop(0)
        if verb not in VERBS:
            raise UsageError(f"unknown verb '{verb}'{nearest(verb, VERBS)}; valid are {', '.join(VERBS)}")
    parser = _parser()
    if verb == "logs":
        parser.add_argument("id")
        parser.add_argument("--follow", action="store_true")
    options, rest = parser.parse_known_args(words)
    wanted = [name for name in ("status", "reset", "dry_run") if getattr(options, name)]
    if len(wanted) > 1 or (wanted and verb not in (None, "run")):
        raise UsageError("--status, --reset, --dry-run and the verbs exclude each other; give one of them")
    options.verb = {"dry_run": "plan"}.get(wanted[0], wanted[0]) if wanted else verb or "run"
    options.ids = []
    if options.verb in _ABOUT_STEPS:  # by hand, as argparse takes no words on both sides of an option
        options.ids = [word for word in rest if not word.startswith("-")]
        rest = [word for word in rest if word.startswith("-")]
    if rest:
        flags = [flag for action in parser._actions for flag in action.option_strings]  # noqa: SLF001  # the list of flags
        word = rest[0].partition("=")[0]
        kind = "option" if word.startswith("-") else "word"
        hint = nearest(word, flags) if kind == "option" else ""
        if word in VERBS and verb is None:
            hint = "; a verb comes first, before all options"
        if kind == "word" and word not in VERBS:
            raise UsageError(_stray(rest[0], verb, options.verb))
        raise UsageError(f"unknown {kind} '{rest[0]}'{hint}; see checkpoint-run --help")
    _check_selection(options)
    return options


def _stray(word: str, given: str | None, verb: str) -> str:
    """What to say of a word that belongs to no option."""
    if verb in ("run", "plan"):
        what = f"{given} takes no step ids" if given else f"unknown word '{word}'"
        return f"{what}; to choose steps write --only {word}"
    if verb == "logs":
        return f"logs takes the id of one step; leave '{word}' out"
    why = "it shows all steps" if verb == "status" else "it is about the step that calls it"
    return f"{verb} takes no step ids, {why}; leave '{word}' out"


def _check_selection(options: argparse.Namespace) -> None:
    """See that steps are chosen in the way of the verb: elsewhere it would go unheeded, and ``reset`` forget all.

    :raises UsageError: they are not.
    """
    if options.verb in ("run", "plan"):
        return
    named = {"--only": options.only, "--from": options.first, "--force": any(options.force or ())}
    for flag, given in named.items():
        if given:
            hint = f"; write {options.verb} ID" if options.verb in _ABOUT_STEPS else ""
            raise UsageError(f"{flag} is for run and plan{hint}")
