"""Inputs, outputs and state of a step: the names of ``@actions/core``, in snake case.

Values for the runner go into the files it names (``GITHUB_OUTPUT``, ``GITHUB_ENV``, ``GITHUB_PATH``, ``GITHUB_STATE``,
``GITHUB_STEP_SUMMARY``); the older commands on stdout are used where it names none. Lines for the log come from
:mod:`checkpoint_action.toolkit.commands`, whose names are here too.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.commands import (
    add_mask,
    commands_stopped,
    debug,
    encode,
    end_group,
    error,
    group,
    info,
    issue_command,
    notice,
    resume_commands,
    set_command_echo,
    set_secret,
    start_group,
    stop_commands,
    warning,
    write_line,
)
from checkpoint_action.toolkit.errors import CommandFileError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

__all__ = [
    "SUMMARY_LIMIT",
    "add_mask",
    "add_path",
    "append_summary",
    "commands_stopped",
    "debug",
    "end_group",
    "error",
    "export_variable",
    "get_boolean_input",
    "get_input",
    "get_multiline_input",
    "get_state",
    "group",
    "info",
    "is_debug",
    "notice",
    "resume_commands",
    "save_state",
    "set_command_echo",
    "set_failed",
    "set_output",
    "set_secret",
    "start_group",
    "stop_commands",
    "to_command_value",
    "warning",
]

SUMMARY_LIMIT = 1024 * 1024
"""Bytes of a step's summary past which the runner drops all of it."""

_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})


def to_command_value(value: object) -> str:
    """A value as the runner takes it: text as it is, ``None`` as empty text, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def get_input(
    name: str, *, required: bool = False, trim_whitespace: bool = True, env: Mapping[str, str] | None = None
) -> str:
    """The text of an input (``INPUT_<NAME>``), or empty text.

    :raises InputError: it is required and empty.
    """
    env = os.environ if env is None else env
    value = env.get(f"INPUT_{name.replace(' ', '_').upper()}", "")
    if required and not value:
        raise InputError(f"Input required and not supplied: {name}")
    return value.strip() if trim_whitespace else value


def get_multiline_input(
    name: str, *, required: bool = False, trim_whitespace: bool = True, env: Mapping[str, str] | None = None
) -> list[str]:
    """The lines of an input that are not empty.

    :raises InputError: it is required and empty.
    """
    value = get_input(name, required=required, trim_whitespace=trim_whitespace, env=env)
    lines = [line for line in value.split("\n") if line]
    return [line.strip() for line in lines] if trim_whitespace else lines


def get_boolean_input(name: str, *, required: bool = False, env: Mapping[str, str] | None = None) -> bool:
    """An input as a boolean of YAML 1.2: ``true``, ``True``, ``TRUE``, ``false``, ``False`` or ``FALSE``.

    :raises InputError: it is anything else, empty included.
    """
    value = get_input(name, required=required, env=env)
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise InputError(f"Input {name} must be true or false (also True, TRUE, False, FALSE), not {value!r}")


def set_output(name: str, value: object, *, env: Mapping[str, str] | None = None) -> None:
    """Set an output of the step.

    :raises CommandFileError: the runner's file is missing, or ``name`` can be no name there.
    """
    if not _append_value("GITHUB_OUTPUT", name, value, env):
        write_line("")
        issue_command("set-output", to_command_value(value), {"name": name})


def export_variable(name: str, value: object, *, env: MutableMapping[str, str] | None = None) -> None:
    """Set an environment variable for this process (``env``) and for the job's later steps.

    :raises CommandFileError: as in :func:`set_output`.
    """
    env = os.environ if env is None else env
    text = to_command_value(value)
    env[name] = text
    if not _append_value("GITHUB_ENV", name, text, env):
        issue_command("set-env", text, {"name": name})


def add_path(folder: str | os.PathLike[str], *, env: MutableMapping[str, str] | None = None) -> None:
    """Put a folder in front of ``PATH``, for this process (``env``) and for the job's later steps.

    :raises CommandFileError: the runner's file is missing, or the folder's name has a line break in it.
    """
    env = os.environ if env is None else env
    path = os.fspath(folder)
    file = env.get("GITHUB_PATH")
    if file:
        if "\n" in path or "\r" in path:
            raise CommandFileError(f"a folder of PATH must have no line break in its name: {path!r}")
        _append(file, f"{path}\n")
    else:
        issue_command("add-path", path)
    before = env.get("PATH")
    env["PATH"] = f"{path}{os.pathsep}{before}" if before else path


def save_state(name: str, value: object, *, env: Mapping[str, str] | None = None) -> None:
    """Keep a value for the action's ``post`` part.

    :raises CommandFileError: as in :func:`set_output`.
    """
    if not _append_value("GITHUB_STATE", name, value, env):
        issue_command("save-state", to_command_value(value), {"name": name})


def get_state(name: str, *, env: Mapping[str, str] | None = None) -> str:
    """A value that the action's ``main`` part kept, or empty text."""
    env = os.environ if env is None else env
    return env.get(f"STATE_{name}", "")


def append_summary(markdown: str, *, env: Mapping[str, str] | None = None) -> bool:
    """Add text to the step's summary; ``False`` when the runner names no file for it.

    :raises CommandFileError: the file is missing, or would grow past :data:`SUMMARY_LIMIT`; it is unchanged then.
    """
    env = os.environ if env is None else env
    file = env.get("GITHUB_STEP_SUMMARY")
    if not file:
        return False
    size = Path(file).stat().st_size if Path(file).is_file() else 0
    if size + len(encode(markdown)) > SUMMARY_LIMIT:
        raise CommandFileError(f"the step's summary would be larger than the {SUMMARY_LIMIT} bytes that are shown")
    _append(file, markdown)
    return True


def is_debug(*, env: Mapping[str, str] | None = None) -> bool:
    """Whether the workflow was started with debug logging."""
    env = os.environ if env is None else env
    return env.get("RUNNER_DEBUG") == "1"


def set_failed(message: str | BaseException) -> int:
    """Say why the step fails and give the exit code that the process has to end with."""
    error(message)
    return 1


def _append_value(variable: str, name: str, value: object, env: Mapping[str, str] | None) -> bool:
    """Add ``name`` and ``value`` to the file that ``variable`` names; ``False`` when it names none.

    The value ends at a delimiter that nobody can know beforehand, so no text can end it early and set more names.
    """
    env = os.environ if env is None else env
    file = env.get(variable)
    if not file:
        return False
    text = to_command_value(value)
    if not name or "=" in name or "<<" in name or "\n" in name or "\r" in name:
        raise CommandFileError(
            f"{variable} takes no name that is empty or has '=', '<<' or a line break in it: {name!r}"
        )
    delimiter = f"ghadelimiter_{uuid.uuid4()}"
    if delimiter in name or delimiter in text:
        raise CommandFileError(f"{variable}: {name!r} has the delimiter {delimiter} in it")
    _append(file, f"{name}<<{delimiter}\n{text}\n{delimiter}\n")
    return True


def _append(file: str, text: str) -> None:
    path = Path(file)
    if not path.is_file():
        raise CommandFileError(f"the runner's file is missing: {file}")
    try:
        with path.open("ab") as stream:
            stream.write(encode(text))
    except OSError as failure:
        raise CommandFileError(f"cannot write the runner's file {file}: {failure.strerror or failure}") from failure
