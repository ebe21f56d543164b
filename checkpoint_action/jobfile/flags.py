"""The original flags: steps from ``ID:COMMAND`` words, and the words that change single steps of any job."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.values import (
    NAME_RULE,
    is_name,
    log_name,
    parse_limit,
    parse_retry_cause,
    parse_shell,
    unknown_id,
)
from checkpoint_action.model import SYSTEM_SHELL, Job, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Overrides", "apply_overrides", "split_flag", "steps_from_flags"]


@dataclass(frozen=True, slots=True)
class Overrides:
    """What flags change in a job, wherever its steps come from. ``None`` and empty leave the job's own words.

    :param step_timeouts: ``ID:DURATION`` words of ``--step-timeout``.
    :param step_artifacts: ``ID:PATH`` words of ``--step-artifact``.
    :param step_logs: ``ID:PATH`` words of ``--step-log``.
    :param logs_dir: folder for a log of each step that has none of its own.
    :param timeout: seconds, for each step without its own ``--step-timeout``.
    """

    step_timeouts: tuple[str, ...] = ()
    step_artifacts: tuple[str, ...] = ()
    step_logs: tuple[str, ...] = ()
    logs_dir: Path | None = None
    timeout: float | None = None
    retries: int | None = None
    backoff: float | None = None
    backoff_max: float | None = None
    jitter: bool = False
    retry_on: str | None = None
    idle_timeout: float | None = None
    wait_online: str | None = None
    budget: float | None = None
    continue_on_error: bool | None = None
    max_failures: int | None = None
    base: Path = field(default_factory=Path)


def split_flag(flag: str, word: str, second: str) -> tuple[str, str]:
    """``ID:REST`` cut at the first colon.

    :param second: what comes behind the colon, for the message.
    :raises UsageError: there is no colon, no id or nothing behind it.
    """
    name, colon, rest = word.partition(":")
    if not colon or not name or not rest.strip():
        raise UsageError(f"{flag} '{word}': write {flag} ID:{second}")
    return name, rest


def steps_from_flags(words: Iterable[str], *, cwd: Path, shell: str = SYSTEM_SHELL, chain: bool = False) -> list[Step]:
    """Steps from ``ID:COMMAND`` words.

    :param cwd: absolute folder the commands run in.
    :param chain: whether each step needs the one before, as in a job file.
    :raises UsageError: an id is missing, not valid or there twice, a command is empty, or the shell is not known.
    """
    if shell != SYSTEM_SHELL:
        try:
            parse_shell(shell)
        except ValueError as error:
            raise UsageError(f"--shell: {error}", Kind.BAD_VALUE) from None
    steps: dict[str, Step] = {}
    last: str | None = None
    for word in words:
        name, command = split_flag("--step", word, "COMMAND")
        if not is_name(name):
            raise UsageError(f"--step '{name}': the id is not valid; use {NAME_RULE}", Kind.BAD_NAME)
        if "\0" in command:
            raise UsageError(f"--step '{name}': the command holds a NUL character", Kind.BAD_VALUE)
        folded = name.casefold()
        if folded in steps:
            other = steps[folded].id
            also = "" if other == name else f" (as '{other}'; upper and lower case count as one)"
            raise UsageError(f"--step '{name}' is there twice{also}; rename one", Kind.DUPLICATE_STEP)
        needs = (last,) if chain and last is not None else ()
        steps[folded] = Step(id=name, command=command, shell=shell, cwd=cwd, needs=needs, outputs_assumed=True)
        last = name
    return list(steps.values())


def apply_overrides(job: Job, overrides: Overrides) -> Job:
    """The job with what the flags say laid over it.

    :raises UsageError: a flag names a step that the job does not have, or its value is not usable.
    """
    steps = {step.id: _general(step, overrides) for step in job.steps}
    for word in overrides.step_timeouts:
        name, text = _named("--step-timeout", word, "SECONDS", steps)
        try:
            steps[name] = replace(steps[name], timeout=parse_limit(text))
        except ValueError as error:
            raise UsageError(f"--step-timeout '{name}': {error}", Kind.BAD_VALUE) from None
    for word in overrides.step_artifacts:
        name, text = _named("--step-artifact", word, "PATH", steps)
        outputs = steps[name].outputs
        declared = () if isinstance(outputs, str) else outputs
        steps[name] = replace(steps[name], outputs=(*declared, _literal(text)), outputs_assumed=False)
    logs: dict[str, str] = {}
    for word in overrides.step_logs:
        name, text = _named("--step-log", word, "PATH", steps)
        steps[name] = replace(steps[name], log=overrides.base / text)
    for step in steps.values():
        if step.log is not None:
            other = logs.setdefault(os.path.normcase(os.path.normpath(step.log)), step.id)
            if other != step.id:
                raise UsageError(
                    f"steps '{other}' and '{step.id}' would write the same log {step.log}; rename one", Kind.SAME_LOG
                )
    changed = replace(job, steps=tuple(steps.values()))
    if overrides.continue_on_error is not None:
        changed = replace(changed, continue_on_error=overrides.continue_on_error)
    if overrides.budget is not None:
        changed = replace(changed, budget=overrides.budget)
    if overrides.max_failures is not None:
        changed = replace(changed, max_failures=overrides.max_failures)
    return changed


def _literal(path: str) -> str:
    """A path as a pattern that matches it and nothing else."""
    pattern = re.sub(r"[*?\[]", r"[\g<0>]", path)
    return f"./{pattern}" if pattern.startswith("!") else pattern


def _general(step: Step, overrides: Overrides) -> Step:
    retry = step.retry
    if overrides.retries is not None:
        retry = replace(retry, max=overrides.retries)
    if overrides.backoff is not None:
        retry = replace(retry, backoff=overrides.backoff)
    if overrides.backoff_max is not None:
        retry = replace(retry, backoff_max=overrides.backoff_max)
    if overrides.jitter:
        retry = replace(retry, jitter=True)
    if overrides.retry_on is not None:
        retry = replace(retry, on=tuple(_cause(word) for word in overrides.retry_on.split(",")))
    changes: dict[str, Any] = {}
    if retry is not step.retry:
        changes["retry"] = retry
    if step.log is None and overrides.logs_dir is not None:
        changes["log"] = overrides.base / overrides.logs_dir / log_name(step.id)
    if overrides.timeout is not None:
        changes["timeout"] = overrides.timeout
    if overrides.idle_timeout is not None:
        changes["idle_timeout"] = overrides.idle_timeout
    if overrides.wait_online is not None:
        changes["wait_online"] = overrides.wait_online
    return replace(step, **changes) if changes else step


def _cause(word: str) -> Literal["error", "timeout"] | int:
    try:
        return parse_retry_cause(word.strip())
    except ValueError as error:
        raise UsageError(f"--retry-on: {error}", Kind.BAD_VALUE) from None


def _named(flag: str, word: str, second: str, steps: dict[str, Step]) -> tuple[str, str]:
    name, rest = split_flag(flag, word, second)
    if name not in steps:
        hint = unknown_id(name, steps, f"give {flag} once for each step")
        raise UsageError(f"{flag} '{name}': no step has this id{hint}", Kind.NO_SUCH_STEP)
    return name, rest
