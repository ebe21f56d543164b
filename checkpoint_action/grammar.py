"""The command line's grammar: its verbs and options, and which of these are for which verb."""

from __future__ import annotations

import argparse
import re

from checkpoint_action import __version__
from checkpoint_action.errors import UsageError
from checkpoint_action.options import (
    add_job_options,
    add_limit_options,
    add_state_options,
    add_store_options,
    age,
    count,
)

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["ABOUT_STEPS", "ABOUT_STORES", "CHANGES_NO_PLAN", "SHELLS", "TOP", "VERBS", "belongs", "parser_of"]

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
    "store": (*_WITH_STORE, "store", "doctor"),
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
CHANGES_NO_PLAN = frozenset(
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

TOP = """\
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
            return TOP
        idle = []
        for action in self._actions:
            if not belongs(action.dest, self.verb):
                action.help = argparse.SUPPRESS
            elif self.verb in ("plan", "graph") and action.dest in CHANGES_NO_PLAN:
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
_MEANS = {
    ("store", "dry_run"): "prune: say what would be deleted, and delete nothing",
    ("store", "json"): "for programs: what there is, or what was deleted",
    ("doctor", "json"): "for programs: all that was looked at",
    ("reset", "json"): "for programs: what was forgotten",
    ("accept", "json"): "for programs: what was accepted",
    ("pull", "json"): "for programs: what was taken over",
    ("push", "json"): "for programs: what was put there",
    ("plan", "json"): "for programs: the plan as one document",
    ("status", "json"): "for programs: the records as one document",
    ("run", "json"): "for programs: one event a line",
    ("init", "job"): "of a workflow: which of its jobs (default: the first that has run: steps)",
    ("init", "file"): "the job file to write (default: checkpoint.yml)",
}
"""What an option is for with one verb, where that is not what it is for with others."""

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
    add_job_options(parser)
    add_limit_options(parser)
    add_state_options(parser)
    add_store_options(parser)
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
        own.add_argument("--attempt", metavar="N", type=count(1), help="as it was after this attempt (default: all)")
        own.add_argument("--overwrite", action="store_true", help="write over files that no step has left like that")
    elif verb == "store":
        own.add_argument(
            "--older-than", metavar="DURATION", type=age, help="prune: delete what is older than this, such as 7d"
        )
        own.add_argument(
            "--keep", metavar="N", type=count(0), default=1, help="prune: but keep each job's N newest (1)"
        )
    elif verb == "completion":
        own.add_argument("shell_name", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")
    for action in parser._actions:  # noqa: SLF001  # the list of options
        action.help = _MEANS.get((verb or "run", action.dest), action.help)
    return parser
