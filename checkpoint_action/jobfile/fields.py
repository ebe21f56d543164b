"""The values of a job file's keys, each read from its place in the document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from checkpoint_action.errors import Kind
from checkpoint_action.jobfile.values import (
    NO_VARIABLE,
    is_variable,
    nearest,
    parse_endpoint,
    parse_retry_cause,
    parse_shell,
)
from checkpoint_action.model import AUTO, Retry

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Literal

    from checkpoint_action.jobfile.document import Value

__all__ = [
    "check_not_secret",
    "endpoint_of",
    "env_of",
    "folder_of",
    "leftovers_of",
    "on_crash_of",
    "outputs_of",
    "patterns_of",
    "retry_of",
    "shell_of",
    "variables_of",
]

RETRY_KEYS = ("max", "on", "backoff", "backoff-max", "jitter")
LEFTOVERS = ("leave", "kill")
ON_CRASH = ("rerun", "stop")


def folder_of(fields: dict[str, Value], base: Path, inherited: Path) -> Path:
    """Where a step or the job runs."""
    if "working-directory" not in fields:
        return inherited
    return Path(base, fields["working-directory"].text())


def shell_of(value: Value) -> str:
    """A shell by name, or a command for it."""
    try:
        return parse_shell(value.text())
    except ValueError as error:
        value.fail(f"{value.what}: {error}")


def env_of(value: Value) -> dict[str, str]:
    """Variables and their values; an empty value is an empty text."""
    env = {}
    for key, item in value.pairs():
        name = _variable(key, value.what)
        env[name] = "" if item.is_null else item.text()
    return env


def variables_of(value: Value) -> tuple[str, ...]:
    """Names of variables, each once."""
    names: dict[str, None] = {}
    for item in value.members():
        names[_variable(item, value.what)] = None
    return tuple(names)


def _variable(value: Value, what: str) -> str:
    """The name of a variable, as any system may have it: also ``ProgramFiles(x86)``."""
    name = value.text()
    if not is_variable(name):
        value.fail(f"{what}: '{name}' {NO_VARIABLE}", Kind.VARIABLE_NAME)
    return name


def check_not_secret(value: Value, secrets: Collection[str]) -> None:
    """See that no variable that is to count is a secret: what is recorded of it would tell of its value."""
    for item in value.members():
        if item.text() in secrets:
            item.fail(
                f"{value.what}: '{item.text()}' is among the secrets, and a secret never counts; take it out here",
                Kind.SECRET_COUNTS,
            )


def patterns_of(value: Value) -> tuple[str, ...]:
    """Paths and globs."""
    patterns = []
    for item in value.members():
        pattern = item.text()
        if not pattern.strip("!"):
            item.fail(f"{value.what}: an empty path")
        patterns.append(pattern)
    if patterns and all(pattern.startswith("!") for pattern in patterns):
        value.fail(f"{value.what} has only what to leave out ('{patterns[0]}'); add what to take, such as '**'")
    return tuple(patterns)


def outputs_of(value: Value) -> tuple[str, ...] | Literal["auto"]:
    """Paths and globs, or the word for all that changed."""
    if value.is_scalar and value.text() == AUTO:
        return "auto"
    return patterns_of(value)


def endpoint_of(value: Value) -> str:
    """``HOST:PORT``."""
    text = value.text()
    try:
        parse_endpoint(text)
    except ValueError as error:
        value.fail(f"{value.what}: {error}")
    return text


def leftovers_of(value: Value) -> Literal["leave", "kill"]:
    """What becomes of background processes."""
    return cast("Literal['leave', 'kill']", _word(value, LEFTOVERS))


def on_crash_of(value: Value) -> Literal["rerun", "stop"]:
    """What a run does with a step in which an earlier one died."""
    return cast("Literal['rerun', 'stop']", _word(value, ON_CRASH))


def _word(value: Value, valid: tuple[str, ...]) -> str:
    text = value.text()
    if text in valid:
        return text
    value.fail(f"{value.what} must be {' or '.join(valid)}, not '{text}'{nearest(text, valid)}")


def retry_of(value: Value, base: Retry) -> Retry:
    """A number of extra tries, or all about them."""
    if value.is_scalar:
        return replace(base, max=value.integer())
    fields = value.fields(RETRY_KEYS)
    retry = base
    if "max" in fields:
        retry = replace(retry, max=fields["max"].integer())
    if "on" in fields:
        retry = replace(retry, on=tuple(_retry_cause(item) for item in fields["on"].members()))
    if "backoff" in fields:
        retry = replace(retry, backoff=fields["backoff"].duration())
    if "jitter" in fields:
        retry = replace(retry, jitter=fields["jitter"].boolean())
    if "backoff-max" in fields:
        retry = replace(retry, backoff_max=fields["backoff-max"].duration())
    return retry


def _retry_cause(value: Value) -> Literal["error", "timeout"] | int:
    try:
        return parse_retry_cause(value.text())
    except ValueError as error:
        value.fail(f"{value.what}: {error}")
