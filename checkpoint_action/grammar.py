"""The command line's grammar: its verbs and options, and which of these are for which verb."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from checkpoint_action import __version__
from checkpoint_action.errors import UsageError
from checkpoint_action.jobfile.values import parse_duration, parse_endpoint, parse_limit, parse_size

__all__ = ["ABOUT_STEPS", "ABOUT_STORES", "SHELLS", "VERBS", "belongs", "parser_of"]

VERBS = {
    "run": "run what is left of a job (no verb means this)",
    "plan": "say what a run would do, and why",
    "graph": "show the steps and what each needs: as text, Mermaid or SVG",
    "status": "show what is recorded of each step",
    "report": "write what is recorded as one HTML page (report [FILE.html])",
    "logs": "print the output of a step's last try (logs ID, with --follow as it comes)",
    "reset": "forget what is recorded: of the steps named (reset ID...), or of all",
    "accept": "take steps as done, as they are now, without running them (accept ID...)",
    "save": "inside a running step: make its partial progress durable now",
    "pull": "take over what a store, or a CI run, has of a job, with its files",
    "push": "put what is done here into a store",
    "store": "look into a store, or delete what is old in it (store ls, store prune)",
    "init": "write a job file from a shell script, a Makefile or a GitHub workflow (init [FILE])",
    "schema": "print the JSON Schema of the job file, for editors",
    "completion": "print a completion script (completion bash, zsh, fish or powershell)",
    "doctor": "look at this machine and say what could go wrong, and what to do",
}

ABOUT_STORES = ("ls", "prune")
"""What the verb ``store`` does."""

ABOUT_STEPS = ("reset", "accept")
"""The verbs that take ids of steps."""

SHELLS = ("bash", "zsh", "fish", "powershell")
"""Those that there are completion scripts for."""

_WITH_JOB = ("run", "plan", "graph", "status", "report", "logs", "reset", "accept", "pull", "push")
_WITH_STORE = ("run", "plan", "graph", "pull", "push")
_VERBS_OF = {
    "help": tuple(VERBS),
    "directory": tuple(VERBS),
    "job": (*_WITH_JOB, "init"),
    "file": (*_WITH_JOB, "init"),
    "step": _WITH_JOB,
    "state_dir": (*_WITH_JOB, "doctor"),
    "json": ("run", "plan", "status", "reset", "accept", "pull", "push", "store", "doctor"),
    "wait_lock": ("run", "reset", "accept", "pull", "push"),
    "store": (*_WITH_STORE, "store"),
    **dict.fromkeys(("scope", "run_id"), _WITH_STORE),
    **dict.fromkeys(("exclude", "max_size", "fail_on_store_error"), ("run", "push")),
    "read_only": ("run",),
    "verify": ("run", "plan", "graph", "pull", "push"),
    "quiet": ("run",),
    "verbose": ("run",),
    "no_pty": ("run",),
    "no_live": ("run",),
    "color": ("run",),
    "on_finish": ("run",),
    "rate": ("run", "status", "report"),
    "report": ("run",),
    "version": ("run",),
    "status": ("run",),
    "reset": ("run",),
    "dry_run": ("run", "store"),
}
_OTHERWISE = ("run", "plan", "graph")  # what a run is told, its plan may be told too
_CHANGES_NO_PLAN = frozenset(
    {
        "step_log",
        "logs_dir",
        "no_logs",
        "timeout",
        "step_timeout",
        "retry",
        "backoff",
        "backoff_max",
        "jitter",
        "retry_on",
        "wait_online",
        "idle_timeout",
        "budget",
        "on_hangup",
        "continue_on_error",
        "max_failures",
    }
)
"""What says how steps run, not which: a plan takes them, so that the words of a run will do, and is the same."""

_TOP = """\
usage: checkpoint-run [VERB] [options]

Runs the named steps of a job and keeps what is done: the next run does only
what is left. 'checkpoint-run help VERB' has all options of a verb.

  run                run what is left (no verb means this)
  plan, graph        what a run would do, and why; the steps as a picture
  status, report     what is recorded of each step; the same as an HTML page
  logs ID            what a step printed
  reset, accept, save  forget; take as done; make progress durable in a step
  pull, push, store  state and files from and to a store, or from a CI run
  init, schema       make a job file from what is there; its JSON Schema
  completion, doctor completion for your shell; a look at this machine

  -f FILE            job file (default: checkpoint.yml or checkpoint.yaml here)
  --job NAME --step ID:COMMAND ...   a job without a file
  -j N               run up to N independent steps at once
  --only ID, --from ID, --force [ID] which steps run though they are done
  --retry N, --timeout SECONDS, --budget DURATION, --continue-on-error

  checkpoint-run --job film --step get:"curl -fO https://example.com/a.mp4" \\
                            --step cut:"ffmpeg -i a.mp4 a.webm" --retry 3
  checkpoint-run -f checkpoint.yml -j 4
"""


class _Parser(argparse.ArgumentParser):
    """A parser that speaks plainly.

    :ivar verb: the verb whose options its help shows; ``None`` for the short help of the whole.
    """

    verb: str | None = None

    def format_help(self) -> str:
        if self.verb is None:
            return _TOP
        idle = []
        for action in self._actions:
            if not belongs(action.dest, self.verb):
                action.help = argparse.SUPPRESS
            elif self.verb in ("plan", "graph") and action.dest in _CHANGES_NO_PLAN:
                idle.append(action.option_strings[-1])
                action.help = argparse.SUPPRESS
        if idle:
            self.epilog = f"A run's other options may stand here too; they change nothing: {', '.join(idle)}."
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self._plain(message)}; see checkpoint-run --help")

    def _plain(self, message: str) -> str:
        """What argparse says, in plain words."""
        about = re.fullmatch(r"argument (\S+): (.*)", message, re.DOTALL)
        if about is None:
            missing = message.partition("the following arguments are required: ")[2]
            return _MISSING.get(missing, message)
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


_MISSING = {
    "id": "logs needs the id of a step: logs ID",
    "SHELL": f"completion needs the name of a shell: {', '.join(SHELLS)}",
}


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


def _age(text: str) -> float:
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


def _count(least: int) -> type:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least}")
        return int(text)

    return parse  # type: ignore[return-value]  # argparse takes any callable


def belongs(dest: str, verb: str) -> bool:
    """Whether an option or word, by where argparse puts its value, is for a verb."""
    return verb in _VERBS_OF.get(dest, _OTHERWISE) or dest in _OWN.get(verb, ())


_OWN = {
    "logs": ("id", "follow"),
    "plan": ("matrix",),
    "graph": ("format",),
    "report": ("page",),
    "init": ("source", "overwrite", "target"),
    "pull": ("github", "run", "attempt", "overwrite"),
    "store": ("older_than", "keep"),
    "completion": ("shell_name",),
}
_WORDS = {
    "logs": "ID",
    "report": "[FILE.html]",
    "reset": "[ID ...]",
    "accept": "ID ...",
    "init": "[FILE]",
    "store": "ls|prune [URL]",
    "completion": "|".join(SHELLS),
}


def parser_of(verb: str | None) -> _Parser:
    """The parser of a verb's words; ``None`` where no verb was given, which means ``run``."""
    parser = _Parser(
        prog="checkpoint-run",
        usage=f"checkpoint-run {' '.join(filter(None, (verb or '[VERB]', _WORDS.get(verb or ''))))} [options]",
        description=VERBS[verb or "run"],
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30),
        allow_abbrev=False,
    )
    parser.verb = verb
    _add_job_options(parser)
    _add_limit_options(parser)
    _add_state_options(parser)
    _add_store_options(parser)
    parser.add_argument("--version", action="version", version=f"checkpoint-run {__version__}")
    own = parser.add_argument_group(f"{verb} alone")
    if verb == "logs":
        own.add_argument("id", metavar="id", help="the step's id")
        own.add_argument("--follow", action="store_true", help="go on as it comes, until the step ends")
    elif verb == "plan":
        own.add_argument(
            "--matrix",
            action="store_true",
            help="print the steps that can run next as one line of JSON, for strategy.matrix of a GitHub workflow",
        )
    elif verb == "graph":
        own.add_argument(
            "--format", choices=("text", "mermaid", "svg"), default="text", help="what the picture is (default: text)"
        )
    elif verb == "report":
        own.add_argument(
            "page", metavar="FILE.html", nargs="?", default="report.html", help="the page (default: report.html)"
        )
    elif verb == "init":
        own.add_argument("--overwrite", action="store_true", help="write over the job file where there is one already")
        own.add_argument(
            "--target",
            metavar="NAME",
            action="append",
            help="of a Makefile: what to make (default: its first target); give it as often as needed",
        )
    elif verb == "pull":
        own.add_argument("--github", metavar="OWNER/REPO", help="from a run of GitHub Actions, with GITHUB_TOKEN")
        own.add_argument("--run", metavar="ID", help="the run: the number in its address")
        own.add_argument("--attempt", metavar="N", type=_count(1), help="as it was after this attempt (default: all)")
        own.add_argument("--overwrite", action="store_true", help="write over files that no step has left like that")
    elif verb == "store":
        own.add_argument("--older-than", metavar="DURATION", type=_age, help="prune: delete what is older (7d)")
        own.add_argument("--keep", metavar="N", type=_count(0), default=1, help="prune: but no job's N newest (1)")
    elif verb == "completion":
        own.add_argument("shell_name", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")
    return parser


def _add_job_options(parser: argparse.ArgumentParser) -> None:
    job = parser.add_argument_group("the job")
    job.add_argument("--job", metavar="NAME", help="name of the job and of its state file")
    job.add_argument(
        "--step", metavar="ID:COMMAND", action="append", default=[], help="a step; give it as often as needed"
    )
    job.add_argument("-f", "--file", metavar="FILE", help="job file (default: checkpoint.yml or checkpoint.yaml here)")
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


def _add_limit_options(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("limits and failures")
    limits.add_argument("--timeout", metavar="DURATION", type=_limit, help="time each try of a step may take")
    limits.add_argument(
        "--step-timeout", metavar="ID:SECONDS", action="append", default=[], help="the same for one step"
    )
    limits.add_argument("--retry", metavar="N", type=_count(0), help="extra tries of a step that fails or times out")
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
        "--max-failures", metavar="N", type=_count(1), help="with --continue-on-error: stop after N failures"
    )


def _add_store_options(parser: argparse.ArgumentParser) -> None:
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


def _add_state_options(parser: argparse.ArgumentParser) -> None:
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
