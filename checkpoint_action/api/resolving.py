"""What a user wrote in Python, checked and resolved into :class:`checkpoint_action.model.Job`."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeVar

from checkpoint_action import model
from checkpoint_action.api import definition
from checkpoint_action.api.checking import boolean, of_kind, path_text, several, text, variables, whole
from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.ordering import CircleError, in_order
from checkpoint_action.jobfile.values import (
    NAME_RULE,
    NO_VARIABLE,
    is_name,
    is_variable,
    parse_endpoint,
    parse_limit,
    parse_retry_cause,
    parse_shell,
    unknown_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from checkpoint_action.api.definition import Duration, Job, Paths, Retry, Step

__all__ = ["resolve_job"]

_Word = TypeVar("_Word", bound=str)


def resolve_job(job: Job, folder: Path) -> model.Job:
    """Check a job and fill in what its steps leave to it.

    :param folder: the absolute folder that paths start from.
    :raises UsageError: something in it is not as documented.
    """
    if not is_name(text("job name", job.name)):
        raise UsageError(f"job name '{job.name}' is not valid; use {NAME_RULE}", Kind.BAD_NAME)
    steps = tuple(several("steps", job.steps, "a list of Step"))
    if not steps:
        raise UsageError(f"job '{job.name}' has no steps; give it at least one Step", Kind.NO_STEPS)
    secrets = _variables("secrets", job.secrets)
    base = model.Step(
        id="",
        command="",
        shell=_parsed("shell", parse_shell, job.shell),
        cwd=_folder("cwd", folder, job.cwd, folder),
        inherited_env=_env("env", job.env),
        pass_env=_counting("pass_env", job.pass_env, secrets),
        timeout=_limit("timeout", job.timeout),
        idle_timeout=_limit("idle_timeout", job.idle_timeout),
        retry=_retry("retry", job.retry, model.Retry()),
        wait_online=_endpoint("wait_online", job.wait_online),
    )
    resolved: dict[str, model.Step] = {}
    last: tuple[str, ...] = ()
    for step in steps:
        one = _step(step, base, folder, secrets, last)
        if one.id.casefold() in (known.casefold() for known in resolved):
            raise UsageError(
                f"step id '{one.id}' is there twice (upper and lower case count as one); rename one",
                Kind.DUPLICATE_STEP,
            )
        resolved[one.id] = one
        last = (one.id,)
    _check_logs(resolved.values())
    return model.Job(
        name=job.name,
        root=folder,
        steps=_ordered(resolved),
        secrets=secrets,
        continue_on_error=boolean("continue_on_error", job.continue_on_error),
        max_failures=_count("max_failures", job.max_failures, 1),
        budget=_limit("budget", job.budget),
    )


def _ordered(steps: Mapping[str, model.Step]) -> tuple[model.Step, ...]:
    for step in steps.values():
        for need in step.needs:
            if need not in steps:
                raise UsageError(
                    f"step '{step.id}' needs '{need}', which is no step{unknown_id(need, steps)}", Kind.UNKNOWN_NEED
                )
    try:
        return tuple(steps[name] for name in in_order({step.id: step.needs for step in steps.values()}))
    except CircleError as error:
        raise UsageError(str(error), Kind.CIRCLE) from None


def _step(step: Step, base: model.Step, folder: Path, secrets: tuple[str, ...], last: tuple[str, ...]) -> model.Step:
    of_kind("each of the steps", step, definition.Step, "a Step")
    if not is_name(text("a step's id", step.id)):
        raise UsageError(f"step id '{step.id}' is not valid; use {NAME_RULE}", Kind.BAD_NAME)
    where = f"step '{step.id}'"
    if not text(f"{where}: the command", step.command).strip():
        raise UsageError(f"{where} has an empty command", Kind.BAD_VALUE)
    outputs: tuple[str, ...] | Literal["auto"] = ()
    if step.outputs == model.AUTO:
        outputs = "auto"
    elif step.outputs is not None:
        outputs = _paths(f"{where}: outputs", step.outputs)
    return replace(
        base,
        id=step.id,
        command=step.command,
        shell=base.shell if step.shell is None else _parsed(f"{where}: shell", parse_shell, step.shell),
        cwd=_folder(f"{where}: cwd", folder, step.cwd, base.cwd),
        env=_env(f"{where}: env", step.env),
        pass_env=tuple(dict.fromkeys([*base.pass_env, *_counting(f"{where}: pass_env", step.pass_env, secrets)])),
        inputs=None if step.inputs is None else _paths(f"{where}: inputs", step.inputs),
        outputs=outputs,
        outputs_assumed=step.outputs is None,
        partial=_paths(f"{where}: partial", step.partial),
        needs=last if step.needs is None else _texts(f"{where}: needs", step.needs),
        timeout=base.timeout if step.timeout is None else _limit(f"{where}: timeout", step.timeout),
        idle_timeout=(
            base.idle_timeout if step.idle_timeout is None else _limit(f"{where}: idle_timeout", step.idle_timeout)
        ),
        retry=_retry(f"{where}: retry", step.retry, base.retry),
        wait_online=_endpoint(f"{where}: wait_online", step.wait_online) or base.wait_online,
        interactive=boolean(f"{where}: interactive", step.interactive),
        leftovers=_word(f"{where}: leftovers", step.leftovers, ("leave", "kill")),
        always=boolean(f"{where}: always", step.always),
        on_crash=_word(f"{where}: on_crash", step.on_crash, ("rerun", "stop")),
        log=None if step.log is None else folder / path_text(f"{where}: log", step.log),
    )


def _check_logs(steps: Iterable[model.Step]) -> None:
    logs: dict[str, str] = {}
    for step in steps:
        if step.log is not None:
            other = logs.setdefault(os.path.normcase(os.path.normpath(step.log)), step.id)
            if other != step.id:
                raise UsageError(
                    f"steps '{other}' and '{step.id}' would write the same log {step.log}; rename one", Kind.SAME_LOG
                )


def _folder(what: str, base: Path, given: str | os.PathLike[str] | None, inherited: Path) -> Path:
    return inherited if given is None else base / path_text(what, given)


def _parsed(what: str, parse: Callable[[str], str], given: str) -> str:
    try:
        return parse(text(what, given))
    except ValueError as error:
        raise UsageError(f"{what}: {error}", Kind.BAD_VALUE) from None


def _limit(what: str, given: Duration | None) -> float | None:
    return None if given is None else _seconds(what, given, least=None)


def _seconds(what: str, given: Duration, least: float | None = 0.0) -> float:
    """Seconds of a duration.

    :param least: what a number may be; ``None`` for anything above nothing.
    """
    if isinstance(given, timedelta):
        given = given.total_seconds()
    if not isinstance(given, str):
        words = "a number of seconds, a text such as '1h30m', or a timedelta"
        of_kind(what, given, (int, float), words)  # type: ignore[arg-type]  # isinstance takes both
    if least is not None and given == least:
        return float(given)
    try:
        return parse_limit(given if isinstance(given, str) else repr(float(given)))
    except ValueError as error:
        raise UsageError(f"{what}: {error}", Kind.BAD_VALUE) from None


def _endpoint(what: str, given: str | None) -> str:
    if not given:
        return ""
    try:
        parse_endpoint(text(what, given))
    except ValueError as error:
        raise UsageError(f"{what}: {error}", Kind.BAD_VALUE) from None
    return given


def _env(what: str, given: Mapping[str, str]) -> dict[str, str]:
    found = variables(what, given)
    for name in found:
        _check_variable(what, name)
    return found


def _texts(what: str, given: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(text(what, one) for one in ([given] if isinstance(given, str) else several(what, given)))


def _variables(what: str, given: Iterable[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_texts(what, given)))
    for name in names:
        _check_variable(what, name)
    return names


def _check_variable(what: str, name: str) -> None:
    if not is_variable(name):
        raise UsageError(f"{what}: '{name}' {NO_VARIABLE}", Kind.VARIABLE_NAME)


def _counting(what: str, given: Iterable[str], secrets: tuple[str, ...]) -> tuple[str, ...]:
    names = _variables(what, given)
    for name in names:
        if name in secrets:
            raise UsageError(
                f"{what}: '{name}' is among the secrets, and a secret never counts; take it out here",
                Kind.SECRET_COUNTS,
            )
    return names


def _paths(what: str, given: Paths) -> tuple[str, ...]:
    alone = isinstance(given, (str, os.PathLike))
    patterns = tuple(path_text(what, one) for one in ([given] if alone else several(what, given, "paths")))
    if not all(pattern.strip("!") for pattern in patterns):
        raise UsageError(f"{what}: an empty path", Kind.BAD_VALUE)
    if patterns and all(pattern.startswith("!") for pattern in patterns):
        raise UsageError(
            f"{what} has only what to leave out ('{patterns[0]}'); add what to take, such as '**'", Kind.BAD_VALUE
        )
    return patterns


def _count(what: str, given: int | None, least: int) -> int | None:
    return None if given is None else whole(what, given, least)


def _retry(what: str, given: int | Retry | None, base: model.Retry) -> model.Retry:
    if given is None:
        return base
    if not isinstance(given, definition.Retry):
        return replace(base, max=whole(what, given, 0))
    retry = base
    if given.max is not None:
        retry = replace(retry, max=_count(f"{what}: max", given.max, 0) or 0)
    if given.on is not None:
        retry = replace(retry, on=tuple(_cause(f"{what}: on", one) for one in several(f"{what}: on", given.on)))
    if given.backoff is not None:
        retry = replace(retry, backoff=_seconds(f"{what}: backoff", given.backoff))
    if given.backoff_max is not None:
        retry = replace(retry, backoff_max=_seconds(f"{what}: backoff_max", given.backoff_max))
    return retry if given.jitter is None else replace(retry, jitter=boolean(f"{what}: jitter", given.jitter))


def _cause(what: str, given: Literal["error", "timeout"] | int) -> Literal["error", "timeout"] | int:
    try:
        return parse_retry_cause(str(given))
    except ValueError as error:
        raise UsageError(f"{what}: {error}", Kind.BAD_VALUE) from None


def _word(what: str, given: _Word, valid: tuple[_Word, ...]) -> _Word:
    if given not in valid:
        raise UsageError(f"{what} must be {' or '.join(valid)}, not '{given}'", Kind.BAD_VALUE)
    return given
