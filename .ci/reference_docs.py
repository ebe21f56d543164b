"""Writes docs/command-line.md from the grammar of the command line, and docs/job-file.md from the schema of job files.

``python .ci/reference_docs.py`` writes them, ``--check`` only tells whether they are stale.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from checkpoint_action.grammar import CHANGES_NO_PLAN, VERBS, belongs, parser_of
from checkpoint_action.jobfile.schema import job_schema

__all__ = ["command_line", "job_file", "main"]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
EXAMPLE = re.compile(r"^## A job file\n.*?^(```yaml\n.*?^```)$", re.MULTILINE | re.DOTALL)
MADE = "<!-- Made by .ci/reference_docs.py from {}; do not edit. -->"


def command_line() -> str:
    """The page of verbs and options."""
    lines = ["# Command line", "", MADE.format("checkpoint_action/grammar.py"), ""]
    lines += [
        "`checkpoint-run [VERB] [options]`; without a verb it is `run`. Durations are `90`, `90s`, `10m` or `1h30m`."
    ]
    lines += ["What the verbs around a job are for is told in [The verbs around a job](cli.md), exit codes below.", ""]
    lines += ["| verb | |", "|---|---|"]
    lines += [f"| [`{verb}`](#{verb}) | {_cell(told)} |" for verb, told in VERBS.items()]
    for verb, told in VERBS.items():
        parser = parser_of(verb)
        usage = (parser.usage or "").replace("%(prog)s", parser.prog)
        lines += ["", f"## `{verb}`", "", f"{told[0].upper()}{told[1:]}.", "", "```text", usage, "```"]
        for group in parser._action_groups:  # noqa: SLF001  # argparse shows its groups nowhere else
            rows = [_row(action) for action in group._group_actions if _shown(action, verb)]  # noqa: SLF001
            if rows:
                lines += ["", f"| {_group(group.title)} | |", "|---|---|", *rows]
        if idle := [f"`{one.option_strings[-1]}`" for one in parser._actions if _idle(one, verb)]:  # noqa: SLF001
            lines += ["", f"A run's other options may stand here too; they change nothing: {', '.join(idle)}."]
    lines += ["", "## Exit codes", "", "| code | |", "|---|---|"]
    lines += [f"| {code} | {told} |" for code, told in EXIT_CODES.items()]
    return "\n".join(lines) + "\n"


EXIT_CODES = {
    "0": "all steps are done",
    "1": "a step failed or timed out, or waits for a person (`on-crash: stop`)",
    "2": "the command line, the job file or the state cannot be used, or `--only` leaves out what would have to run",
    "4": "another run holds this job",
    "5": "the state, or an answer that was asked for, could not be written, or memory or threads ran out",
    "70": "a bug in checkpoint-run",
    "75": "stopped before the end on purpose (`--budget`): run it again",
    "128+n": "stopped by signal n; the state is saved",
}


def _group(title: str | None) -> str:
    return {"positional arguments": "words", "options": "general"}.get(title or "", title or "")


def _shown(action: argparse.Action, verb: str) -> bool:
    mine = not action.option_strings or belongs(action.dest, verb)
    return action.help != argparse.SUPPRESS and mine and not _idle(action, verb)


def _idle(action: argparse.Action, verb: str) -> bool:
    return verb in ("plan", "graph") and action.dest in CHANGES_NO_PLAN


def _row(action: argparse.Action) -> str:
    words = ", ".join(f"`{word}`" for word in action.option_strings) or f"`{action.metavar or action.dest}`"
    takes = action.metavar if isinstance(action.metavar, str) else "|".join(map(str, action.choices or ())) or "VALUE"
    if action.option_strings and action.nargs != 0:
        word = {"?": f"[{takes}]", "*": f"[{takes} …]", "+": f"{takes} …"}.get(str(action.nargs), takes)
        words += f" `{word}`"
    return f"| {_cell(words)} | {_cell((action.help or '').replace('%%', '%'))} |"


def job_file() -> str:
    """The page of the job file's keys."""
    schema = job_schema()
    lines = ["# The job file", "", MADE.format("checkpoint_action/jobfile/schema.py"), ""]
    lines += ["`checkpoint.yml` or `checkpoint.yaml` here, or `-f FILE`. Paths start from the current folder."]
    lines += ["An unknown key, one that is there twice or a wrong value is an error with its place, and nothing runs."]
    lines += ["Only `steps` is needed, and of each step `id` and `run`. Editors explain the keys as you type, with"]
    lines += ["[the schema](cli.md#schema-the-job-file-in-an-editor). What makes a step run again: [done](done.md)."]
    example = EXAMPLE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    if example is None:
        raise SystemExit("the README has no example below '## A job file'")
    lines += ["", example[1], ""]
    lines += ["A duration is `90`, `90s`, `10m` or `1h30m`. A list may be a single text: `outputs: dist/`."]
    definitions = schema["definitions"]
    for title, keys in (
        ("The job", schema["properties"]),
        ("A step", definitions["step"]["properties"]),
        ("`defaults`", definitions["defaults"]["properties"]),
        ("`retry`", definitions["retry"]["anyOf"][1]["properties"]),
    ):
        lines += ["", f"## {title}", "", "| key | takes | |", "|---|---|---|"]
        lines += [f"| `{key}` | {_cell(_takes(told))} | {_cell(_told(told))} |" for key, told in keys.items()]
    return "\n".join(lines) + "\n"


KINDS = {
    "name": "a name",
    "names": "ids of steps",
    "text": "a text",
    "command": "a command",
    "shell": "a shell",
    "env": "names and values",
    "variables": "names of variables",
    "patterns": "paths and globs",
    "number": "a whole number",
    "count": "a whole number from 1",
    "duration": "a duration",
    "limit": "a duration",
    "endpoint": "`HOST:PORT`",
    "retry": "a number, or [`retry`](#retry)",
    "defaults": "[`defaults`](#defaults)",
}


def _takes(told: dict[str, Any]) -> str:
    if "allOf" in told:
        return KINDS[told["allOf"][0]["$ref"].rpartition("/")[2]]
    if "enum" in told:
        return " or ".join(f"`{word}`" for word in told["enum"])
    if told.get("type") == "boolean":
        return "`true` or `false`"
    if told.get("type") == "array":
        return "a list of [steps](#a-step)"
    if told["anyOf"][0].get("enum"):
        return f"`{told['anyOf'][0]['enum'][0]}`, or paths and globs"
    return "`error`, `timeout`, exit codes"


def _told(told: dict[str, Any]) -> str:
    default = told.get("default")
    shown = str(default).lower() if isinstance(default, bool) else default
    return f"{told['description']}{'' if default is None else f' Default: `{shown}`.'}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(argv: list[str]) -> int:
    """Write or check the pages.

    :returns: 0, or 1 where one is stale.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is stale")
    options = parser.parse_args(argv)
    status = 0
    for name, text in (("command-line.md", command_line()), ("job-file.md", job_file())):
        path = DOCS / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            print(f"docs/{name} is stale; run python .ci/reference_docs.py", file=sys.stderr)
            status = 1
        else:
            path.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
