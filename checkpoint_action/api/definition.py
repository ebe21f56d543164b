"""What a user writes: jobs and steps, with the words of a job file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from os import PathLike
from typing import Literal, TypeAlias

__all__ = ["Duration", "Job", "Paths", "Retry", "Step"]

Duration: TypeAlias = float | str | timedelta
"""Seconds, a text such as ``"1h30m"``, or a :class:`~datetime.timedelta`."""

Paths: TypeAlias = str | PathLike[str] | Iterable[str | PathLike[str]]
"""One path or glob, or several."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Extra tries of a step. What is ``None`` is the job's own word, or the default.

    :param max: extra tries after the first.
    :param on: what is tried again: ``"error"``, ``"timeout"`` and exit codes.
    :param backoff: the wait before the first extra try; doubled for each further one.
    :param backoff_max: what a wait never exceeds.
    :param jitter: whether each wait is drawn between nothing and its full length.
    """

    max: int | None = None
    _: KW_ONLY
    on: Sequence[Literal["error", "timeout"] | int] | None = None
    backoff: Duration | None = None
    backoff_max: Duration | None = None
    jitter: bool | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One named shell command and what it needs, reads and leaves. Nothing is checked before it is used in a run.

    :param id: its name, unique in the job without regard to case.
    :param command: the text handed to the shell.
    :param shell: ``"bash"``, ``"sh"``, ``"pwsh"``, ``"python"``, or a command with ``{0}`` for the script; else as the
        job says.
    :param cwd: folder it starts in, from the current one; else the job's.
    :param env: variables and their values; they count.
    :param pass_env: names of variables from outside that count too.
    :param needs: ids of the steps it needs; ``None`` is the step before, ``()`` none.
    :param inputs: paths and globs whose content counts; ``None`` where it says nothing of them.
    :param outputs: paths and globs that it must leave, ``"auto"`` for all that changes where a store is used, or
        ``None`` where it says nothing of them.
    :param partial: paths and globs that an unfinished try leaves for the next to go on from.
    :param timeout: the time a try may take.
    :param idle_timeout: the time it may go without output.
    :param retry: extra tries: a number, or a :class:`Retry`; else the job's.
    :param wait_online: ``"HOST:PORT"`` that must take a connection before another try; else the job's.
    :param interactive: whether it reads our standard input; else its own is empty.
    :param leftovers: what becomes of background processes that outlive its shell.
    :param always: whether it is never skipped.
    :param on_crash: what a run does with it where an earlier one died in it: run it again, or ask a person.
    :param log: file for the output of its last try; else one beside the state.
    """

    id: str
    command: str
    _: KW_ONLY
    shell: str | None = None
    cwd: str | PathLike[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: Iterable[str] = ()
    needs: str | Iterable[str] | None = None
    inputs: Paths | None = None
    outputs: Paths | None = None
    partial: Paths = ()
    timeout: Duration | None = None
    idle_timeout: Duration | None = None
    retry: int | Retry | None = None
    wait_online: str | None = None
    interactive: bool = False
    leftovers: Literal["leave", "kill"] = "leave"
    always: bool = False
    on_crash: Literal["rerun", "stop"] = "rerun"
    log: str | PathLike[str] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A name and its steps, in order. Nothing is checked before it is used.

    :param name: its name; the state's files are called after it.
    :param steps: the steps; each needs the one before, unless it says otherwise.
    :param shell: of steps that name none.
    :param cwd: folder that steps start in, from the current one.
    :param env: variables for all steps; they count, and give way to what steps hand on.
    :param pass_env: names of variables from outside that count in every step.
    :param secrets: names of variables from outside whose values never reach state, logs or events, and never count.
    :param continue_on_error: whether to go on after a failure with what does not need the failed step.
    :param max_failures: failures after which no further step starts then.
    :param budget: the time a run may take before it stops by itself.
    :param timeout: of steps that have none; so are the next three.
    """

    name: str
    steps: Iterable[Step]
    _: KW_ONLY
    shell: str = "bash"
    cwd: str | PathLike[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: Iterable[str] = ()
    secrets: Iterable[str] = ()
    continue_on_error: bool = False
    max_failures: int | None = None
    budget: Duration | None = None
    timeout: Duration | None = None
    idle_timeout: Duration | None = None
    retry: int | Retry | None = None
    wait_online: str | None = None
