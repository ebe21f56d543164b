"""The job file described for editors: a JSON Schema made from the key tables that the parser itself reads by."""

from __future__ import annotations

import json
from typing import Any

from checkpoint_action.jobfile.fields import LEFTOVERS, ON_CRASH, RETRY_KEYS
from checkpoint_action.jobfile.resolve import DEFAULTS_KEYS, JOB_KEYS, STEP_KEYS
from checkpoint_action.jobfile.values import SHELLS
from checkpoint_action.model import AUTO

__all__ = ["DIALECT", "job_schema", "schema_text"]

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest dialect that all editors' YAML servers know in full."""

_ADDRESS = "https://raw.githubusercontent.com/agenticaotearoa/checkpoint-run/main/docs/checkpoint.schema.json"
_LONGEST = 315_360_000  # ten years in seconds
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
_DURATION = r"^\s*(\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?=\d)(\d+h)?(\d+m)?(\d+(\.\d+)?s)?)\s*$"
_SOME_TIME = r"^(?=.*[1-9])"
_PORT = r"(6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|0*[1-9]\d{0,3})"

Schema = dict[str, Any]


def _ref(name: str, description: str, **more: object) -> Schema:
    # Beside a bare "$ref" draft-07 takes nothing else into account, so it is put into a list of one.
    return {"description": description, "allOf": [{"$ref": f"#/definitions/{name}"}], **more}


def _flag(description: str, *, default: bool = False) -> Schema:
    return {"description": description, "type": "boolean", "default": default}


def _word(description: str, words: tuple[str, ...], default: str) -> Schema:
    return {"description": description, "enum": list(words), "default": default}


_SHELL = "Shell of the commands: bash (with -e -o pipefail), sh, pwsh, python, or a command with {0} for the script."
_ENV = "Variables of the steps. Their values count: a changed one runs the steps again."
_PASS_ENV = "Outside variables whose values count too. Unset, empty and 1 are three different things."  # noqa: S105
_RETRY = "Extra tries of a step that fails or times out: a number, or all about them."

_SHARED: dict[str, Schema] = {
    "timeout": _ref("limit", "Longest time of each try; over it the whole process tree is ended.", examples=["45m"]),
    "idle-timeout": _ref("limit", "Longest time without any output before a try counts as hung.", examples=["10m"]),
    "retry": _ref("retry", _RETRY),
    "wait-online": _ref("endpoint", "Before another try, wait until this HOST:PORT takes a connection."),
}
"""Keys that a step and ``defaults`` have in common."""

_JOB: dict[str, Schema] = {
    "job": _ref("name", "Name of the job and of its state file. Default: the name of the job file's folder."),
    "shell": _ref("shell", _SHELL, default="bash"),
    "env": _ref("env", _ENV),
    "pass-env": _ref("variables", _PASS_ENV),
    "secrets": _ref("variables", "Outside variables whose values never reach state, log files or reports."),
    "working-directory": _ref("text", "Folder the steps run in, from the current folder."),
    "continue-on-error": _flag("Go on after a step has failed, with the steps that do not need it."),
    "max-failures": _ref("count", "With continue-on-error: no further step starts after so many failures."),
    "budget": _ref("limit", "Stop before this much time has passed, with exit code 75; run again to go on."),
    "defaults": _ref("defaults", "What holds for each step that does not say otherwise."),
    "steps": {
        "description": "The steps, a chain: each needs the one before, unless it says what it needs.",
        "type": "array",
        "items": {"$ref": "#/definitions/step"},
        "minItems": 1,
    },
}

_STEP: dict[str, Schema] = {
    "id": _ref("name", "Name of the step, unique without regard to case."),
    "run": _ref("command", "The command, handed to the shell exactly as written."),
    "shell": _ref("shell", _SHELL),
    "env": _ref("env", "Variables of this step. Their values count."),
    "pass-env": _ref("variables", _PASS_ENV),
    "working-directory": _ref("text", "Folder this step runs in, from the current folder; in place of the job's."),
    "needs": _ref("names", "Steps whose results count. Default: the step before; [] is independent."),
    "inputs": _ref("patterns", "Files, folders and globs whose content and mode count; !glob takes away."),
    "outputs": {
        "description": "Files, folders and globs the step leaves: they must be there afterwards, and unchanged to be "
        f"skipped. {AUTO}: all that changed in the workspace. []: nothing.",
        "anyOf": [{"enum": [AUTO]}, {"$ref": "#/definitions/patterns"}],
    },
    **_SHARED,
    "interactive": _flag("The step reads our standard input; otherwise its own is empty."),
    "leftovers": _word("What becomes of background processes that outlive the shell.", LEFTOVERS, LEFTOVERS[0]),
    "always": _flag("Never skipped."),
    "partial": _ref("patterns", "What an unfinished try leaves for the next to go on from."),
    "on-crash": _word("What to do with the step in which a run died: again, or ask a person.", ON_CRASH, ON_CRASH[0]),
}

_RETRY_FIELDS: dict[str, Schema] = {
    "max": _ref("number", "Extra tries after the first.", default=0),
    "on": {
        "description": "What is tried again: error, timeout, exit codes.",
        "anyOf": [
            {"$ref": "#/definitions/cause"},
            {"type": "array", "items": {"$ref": "#/definitions/cause"}},
        ],
    },
    "backoff": _ref("duration", "Wait before the first extra try, doubled for each further one.", default="1s"),
    "backoff-max": _ref("duration", "Longest such wait.", default="1h"),
    "jitter": _flag("Draw each wait between nothing and its full length."),
}


def job_schema() -> Schema:
    """The JSON Schema of a job file, in the dialect :data:`DIALECT`.

    A scalar may be written in any way that YAML takes for a text, a number or a truth value where the parser takes the
    text as it stands. What no schema can say (a need that is no step, a circle, ids that differ only in case) is left
    to the parser.
    """
    return {
        "$schema": DIALECT,
        "$id": _ADDRESS,
        "title": "checkpoint-run job file",
        "description": "A long job as named shell steps, of which a run does only what is left.",
        **_object(JOB_KEYS, _JOB, required=("steps",)),
        "definitions": _definitions(),
    }


def schema_text() -> str:
    """The same as it is printed and published: indented, with a line end."""
    return json.dumps(job_schema(), indent=2, ensure_ascii=False) + "\n"


def _object(keys: tuple[str, ...], described: dict[str, Schema], *, required: tuple[str, ...] = ()) -> Schema:
    """A mapping with these keys and no other; each must be described."""
    found: Schema = {"type": "object", "properties": {key: described[key] for key in keys}}
    return {**found, **({"required": list(required)} if required else {}), "additionalProperties": False}


def _definitions() -> Schema:
    scalar = ["string", "number", "boolean"]
    number: Schema = {"type": "number", "minimum": 0, "maximum": _LONGEST}
    pattern: Schema = {"$ref": "#/definitions/pattern"}
    variable: Schema = {"type": scalar, "pattern": r"^[^=*?\s]+$"}
    return {
        "step": _object(STEP_KEYS, _STEP, required=("id", "run")),
        "defaults": _object(DEFAULTS_KEYS, _SHARED),
        "retry": {"anyOf": [{"$ref": "#/definitions/number"}, _object(RETRY_KEYS, _RETRY_FIELDS)]},
        "name": {"type": scalar, "pattern": _NAME},
        "names": {"anyOf": [{"$ref": "#/definitions/name"}, _list({"$ref": "#/definitions/name"})]},
        "text": {"type": scalar},
        "command": {"type": scalar, "pattern": r"\S"},
        "shell": {"anyOf": [{"enum": list(SHELLS)}, {"type": "string", "pattern": r"\{0\}"}]},
        "env": {
            "type": "object",
            "propertyNames": {"pattern": variable["pattern"]},
            "additionalProperties": {"type": [*scalar, "null"]},
        },
        "variables": {"anyOf": [variable, _list(variable)]},
        "pattern": {"type": scalar, "pattern": r"[^!]"},
        "patterns": {
            "anyOf": [
                {"type": scalar, "pattern": r"^[^!]"},
                {
                    **_list(pattern),
                    # A list that only takes away would take nothing.
                    "anyOf": [{"maxItems": 0}, {"contains": {"not": {"type": "string", "pattern": "^!"}}}],
                },
            ]
        },
        "number": _digits(0),
        "count": _digits(1),
        "duration": {"anyOf": [number, {"type": "string", "pattern": _DURATION}]},
        "limit": {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": _LONGEST},
                {"type": "string", "pattern": _SOME_TIME + _DURATION.removeprefix("^")},
            ]
        },
        "endpoint": {"type": "string", "pattern": rf"^.+:{_PORT}$"},
        "cause": {
            "anyOf": [
                {"enum": ["error", "timeout"]},
                {"type": "integer", "minimum": 1, "maximum": 9_999_999_999},
                {"type": "string", "pattern": r"^0*[1-9]\d{0,9}$"},
            ]
        },
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _digits(least: int) -> Schema:
    """A whole number, also in quotes."""
    texts = r"^\d{1,9}$" if least == 0 else r"^(?=.*[1-9])\d{1,9}$"
    return {
        "anyOf": [
            {"type": "integer", "minimum": least, "maximum": 999_999_999},
            {"type": "string", "pattern": texts},
        ]
    }
