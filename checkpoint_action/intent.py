"""What a command line means: a job, the steps it is about, and where the state lies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from checkpoint_action.arguments import VERBS
from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.flags import Overrides, apply_overrides, steps_from_flags
from checkpoint_action.jobfile.values import NAME_RULE, is_name, name_from, unknown_id
from checkpoint_action.model import SYSTEM_SHELL, Job
from checkpoint_action.report.lines import answer, say
from checkpoint_action.runner.journal import StatePaths
from checkpoint_action.runner.recall import JOB_FILES, mark_of
from checkpoint_action.runner.selection import Selection

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping, Sequence

__all__ = [
    "SIGNING_KEY",
    "STORE",
    "Surroundings",
    "asks_for_store",
    "check_ids",
    "job_of",
    "lock_wait",
    "mark_of_file",
    "marked_job_of",
    "named_job",
    "selection_of",
    "state_paths",
]

STORE = "CHECKPOINT_STORE"
"""The variable that names a store where no option does."""

SIGNING_KEY = "CHECKPOINT_SIGNING_KEY"
"""The variable that has the key that archives are signed with. No step sees it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a verb is handed of the process it runs in; it looks at nothing else of it.

    :param env: the environment.
    :param out: for what was asked for.
    :param err: for what should be known besides.
    """

    env: Mapping[str, str]
    out: TextIO
    err: TextIO

    def answer(self, text: str) -> None:
        """Say a line of what was asked for.

        :raises OutputError: it cannot be written.
        """
        answer(self.out, text)

    def warn(self, warnings: Sequence[str]) -> None:
        """Tell of what a person should know."""
        for text in warnings:
            say(self.err, f"checkpoint-run: warning: {text}")


def job_of(options: argparse.Namespace) -> Job:
    """The job that a command line means.

    :raises UsageError: it means none, or it is not usable.
    """
    if options.file is not None and options.step:
        raise UsageError("--file and --step exclude each other; put the step into the file", Kind.EXCLUSIVE)
    try:
        cwd = Path.cwd()
    except OSError as error:
        raise UsageError(f"the current folder cannot be used: {error.strerror}; give -C DIR", Kind.FOLDER) from None
    path = _job_file(options)
    if path is not None:
        from checkpoint_action.jobfile.resolve import JobDefaults, load_job, read_job_file  # noqa: PLC0415  # YAML

        for flag in ("shell", "chain"):
            if getattr(options, flag):
                raise UsageError(f"--{flag} is for --step; write it into {path}", Kind.EXCLUSIVE)
        folder = path.resolve().parent.name
        job = load_job(
            read_job_file(path, str(path)),
            str(path),
            JobDefaults(name=name_from(folder, "job"), root=cwd, base=cwd),
        )
    elif options.step:
        steps = steps_from_flags(options.step, cwd=cwd, shell=options.shell or SYSTEM_SHELL, chain=options.chain)
        if options.job is None:
            raise UsageError("--job is missing; give the job a name, for example --job build", Kind.NO_STEPS)
        job = Job(name=options.job, root=cwd, steps=tuple(steps), in_order=options.jobs == 1)
    else:
        raise UsageError(
            f"no steps; give --step ID:COMMAND or a job file (-f FILE, or {' or '.join(JOB_FILES)} here); "
            "'checkpoint-run init' writes a first one",
            Kind.NO_STEPS,
        )
    # State that lies elsewhere does not move with the folder, and may serve several.
    movable = Path(options.state_dir).resolve().is_relative_to(cwd.resolve())
    changed = apply_overrides(job, _overrides(options, cwd))
    return replace(changed, name=_name(options, job.name), movable=movable, words=_words(options))


def _words(options: argparse.Namespace) -> str:
    """What names the job again in a command that is to be copied: of steps on the command line nothing short does."""
    given = (("-C", options.directory), ("-f", options.file), ("--job", options.job))
    named = [word for flag, value in given if value is not None for word in (flag, value)]
    if options.state_dir != ".":
        named += ["--state-dir", options.state_dir]
    if options.step or not named:
        return ""
    import shlex  # noqa: PLC0415  # only where there is something to quote

    return " " + shlex.join(named)


def marked_job_of(options: argparse.Namespace) -> tuple[Job, str]:
    """The job that a command line means, and the mark of its job file; empty where there is none, or it changes now.

    :raises UsageError: as for :func:`job_of`.
    """
    before = mark_of_file(options)
    job = job_of(options)
    return job, before if options.job is None and before == mark_of_file(options) else ""


def mark_of_file(options: argparse.Namespace) -> str:
    """The mark of the job file as it is now; empty where there is none, or it cannot be read."""
    try:
        path = _job_file(options)
        return mark_of(str(path)) if path is not None else ""
    except (OSError, ValueError):
        return ""  # whoever reads it says why


def _job_file(options: argparse.Namespace) -> Path | None:
    if options.file is not None:
        return Path(options.file)
    if options.step:
        return None
    return next((path for name in JOB_FILES if (path := Path(name)).is_file()), None)


def _overrides(options: argparse.Namespace, cwd: Path) -> Overrides:
    return Overrides(
        step_timeouts=tuple(options.step_timeout),
        step_artifacts=tuple(options.step_artifact),
        step_logs=tuple(options.step_log),
        logs_dir=Path(options.logs_dir) if options.logs_dir else None,
        timeout=options.timeout,
        retries=options.retry,
        backoff=options.backoff,
        backoff_max=options.backoff_max,
        continue_on_error=True if options.continue_on_error else None,
        max_failures=options.max_failures,
        jitter=options.jitter,
        retry_on=options.retry_on,
        idle_timeout=options.idle_timeout,
        wait_online=options.wait_online,
        budget=options.budget,
        base=cwd,
    )


def _name(options: argparse.Namespace, default: str) -> str:
    name = default if options.job is None else options.job
    if not is_name(name):
        raise UsageError(f"--job '{name}' is not valid; use {NAME_RULE}", Kind.BAD_NAME)
    return str(name)


def named_job(options: argparse.Namespace) -> tuple[str, list[str]]:
    """Name and step ids of the job, as far as the state is enough: then a name alone will do."""
    if options.job is not None and not options.step and options.file is None:
        return _name(options, options.job), []
    job = job_of(options)
    return job.name, [step.id for step in job.steps]


def selection_of(options: argparse.Namespace, job: Job) -> Selection:
    """The steps that ``--only``, ``--from`` and ``--force`` mean.

    :raises UsageError: the job has no such step, or the flags contradict each other.
    """
    ids = [step.id for step in job.steps]
    only, forced = options.only or [], [name for names in options.force or () for name in names]
    everything = any(not names for names in options.force or ())
    for flag, names in (("--only", only), ("--from", [options.first] if options.first else []), ("--force", forced)):
        check_ids(flag, names, ids)
    if only and options.first:
        raise UsageError(
            "--only and --from exclude each other; name all steps that are to run with --only", Kind.EXCLUSIVE
        )
    if only and everything:
        raise UsageError("--only runs its steps whatever is recorded of them; leave --force out", Kind.EXCLUSIVE)
    outside = next((name for name in forced if only and name not in only), None)
    if outside is not None:
        raise UsageError(f"--force '{outside}': --only leaves this step out; name it there instead", Kind.EXCLUSIVE)
    selected = only or (ids[ids.index(options.first) :] if options.first else [])
    named = frozenset([*forced, *only, *([options.first] if options.first else [])])
    return Selection(everything, frozenset(forced), frozenset(selected), only=bool(only), named=named)


def asks_for_store(options: argparse.Namespace, env: Mapping[str, str]) -> bool:
    """Whether a command line has a word to say about stores, or the environment names one."""
    named = options.store or env.get(STORE)
    words = (options.scope, options.run_id, options.exclude, options.max_size, options.read_only)
    return bool(named or any(words) or options.fail_on_store_error)


def check_ids(what: str, names: Collection[str], valid: Collection[str]) -> None:
    """See that each of the names is the id of a step.

    :param what: the flag or verb they were given to.
    :raises UsageError: one is not.
    """
    for name in names:
        if name not in valid:
            several = (
                "give the first one; all after it run too" if what == "--from" else "give ids with a space between them"
            )
            first = f"; a verb comes first: checkpoint-run {name} and then the options"
            hint = first if name in VERBS else unknown_id(name, valid, several)
            raise UsageError(f"{what} '{name}': no step has this id{hint}", Kind.NO_SUCH_STEP)


def state_paths(options: argparse.Namespace, job: str) -> StatePaths:
    """Where the job's state lies."""
    return StatePaths(Path(options.state_dir), job)


def lock_wait(options: argparse.Namespace) -> float | None:
    """Seconds to wait for another run of the job; ``None`` for ever."""
    return None if options.wait_lock < 0 else float(options.wait_lock)
