"""The command line: one of the two faces. Only here are environment, terminal and exit codes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action import __version__
from checkpoint_action.arguments import parse_arguments
from checkpoint_action.errors import CheckpointError, StateError, StateWriteError, UsageError
from checkpoint_action.jobfile.flags import Overrides, apply_overrides, steps_from_flags
from checkpoint_action.jobfile.values import NAME_RULE, is_name, log_name, name_from, nearest
from checkpoint_action.model import SYSTEM_SHELL, Job, Status
from checkpoint_action.report.terminal import say
from checkpoint_action.runner.journal import Journal, StatePaths, forget, load
from checkpoint_action.runner.lock import JobLock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from checkpoint_action.model import Record

__all__ = ["main", "open_standard_streams"]

_BUG = 70
_INTERRUPTED = 130
_FILES = ("checkpoint.yml", "checkpoint.yaml")


def open_standard_streams() -> None:
    """Have descriptors 0 to 2 lead nowhere where they were closed, so that no file of ours gets one of the numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
            if number > 0:
                stream = os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
                setattr(sys, ("stdout", "stderr")[number - 1], stream)


def main(argv: Sequence[str]) -> int:
    """Run a command line.

    :returns: the documented exit code.
    """
    try:
        options = parse_arguments(argv)
        if options.directory:
            _go_to(options.directory)
        return _VERBS[options.verb](options)
    except CheckpointError as error:
        say(sys.stderr, f"checkpoint-run: error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception:  # the third ending: a fault of ours, with all that is needed to report it
        return _report_bug(argv)


def _go_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise UsageError(f"-C {folder}: {error.strerror}") from None


def _report_bug(argv: Sequence[str]) -> int:
    import platform  # noqa: PLC0415  # only for a bug
    import tempfile  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    trace = traceback.format_exc()
    text = f"checkpoint-run {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text += f"{len(argv)} arguments\n\n{trace}"
    rest = ""
    try:
        number, name = tempfile.mkstemp(prefix="checkpoint-run-bug-", suffix=".log")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        where = f"please report it with the file {name}"
    except OSError:
        where, rest = "please report it with what follows", text
    say(sys.stderr, f"checkpoint-run: this is a bug: {trace.splitlines()[-1]}; {where}")
    for line in rest.splitlines():
        say(sys.stderr, line)
    return _BUG


def _job_file(options: argparse.Namespace) -> Path | None:
    if options.file is not None:
        return Path(options.file)
    if options.step:
        return None
    return next((path for name in _FILES if (path := Path(name)).is_file()), None)


def _job(options: argparse.Namespace) -> Job:
    """The job that the command line means.

    :raises UsageError: it means none, or it is not usable.
    """
    if options.file is not None and options.step:
        raise UsageError("--file and --step exclude each other; put the step into the file")
    try:
        cwd = Path.cwd()
    except OSError as error:
        raise UsageError(f"the current folder cannot be used: {error.strerror}; give -C DIR") from None
    path = _job_file(options)
    if path is not None:
        from checkpoint_action.jobfile.resolve import JobDefaults, load_job, read_job_file  # noqa: PLC0415  # YAML

        for flag in ("shell", "chain"):
            if getattr(options, flag):
                raise UsageError(f"--{flag} is for --step; write it into {path}")
        folder = path.resolve().parent.name
        job = load_job(
            read_job_file(path, str(path)),
            str(path),
            JobDefaults(name=name_from(folder, "job"), root=cwd, base=cwd),
        )
    elif options.step:
        steps = steps_from_flags(options.step, cwd=cwd, shell=options.shell or SYSTEM_SHELL, chain=options.chain)
        if options.job is None:
            raise UsageError("--job is missing; give the job a name, for example --job build")
        job = Job(name=options.job, root=cwd, steps=tuple(steps), in_order=True)
    else:
        raise UsageError(f"no steps; give --step ID:COMMAND or a job file (-f FILE, or {' or '.join(_FILES)} here)")
    overrides = Overrides(
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
    # State that lies elsewhere does not move with the folder, and may serve several.
    movable = Path(options.state_dir).resolve().is_relative_to(cwd.resolve())
    return replace(apply_overrides(job, overrides), name=_name(options, job.name), movable=movable)


def _selected(options: argparse.Namespace, job: Job) -> tuple[str, ...]:
    """The step of ``--from`` and all after it.

    :raises UsageError: the job has no such step.
    """
    if options.first is None:
        return ()
    ids = [step.id for step in job.steps]
    if options.first not in ids:
        raise UsageError(f"--from '{options.first}': no step has this id{nearest(options.first, ids)}")
    return tuple(ids[ids.index(options.first) :])


def _name(options: argparse.Namespace, default: str) -> str:
    name = default if options.job is None else options.job
    if not is_name(name):
        raise UsageError(f"--job '{name}' is not valid; use {NAME_RULE}")
    return str(name)


def _paths(options: argparse.Namespace, job: str) -> StatePaths:
    return StatePaths(Path(options.state_dir), job)


def _named_job(options: argparse.Namespace) -> tuple[str, list[str]]:
    """Name and step ids of the job, as far as a view needs them: a name alone is enough."""
    if options.job is not None and not options.step and options.file is None:
        return _name(options, options.job), []
    job = _job(options)
    return job.name, [step.id for step in job.steps]


def _plan(options: argparse.Namespace) -> int:
    from checkpoint_action.report.jsonlines import plan_json  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.report.terminal import plan_lines  # noqa: PLC0415
    from checkpoint_action.runner.plan import plan_job  # noqa: PLC0415

    job = _job(options)
    loaded = load(_paths(options, job.name))
    _warn(loaded.warnings)
    if JobLock(_paths(options, job.name).lock).held():
        _warn(["a run of this job is going on; this is how things stand in the middle of it"])
    plan = plan_job(job, loaded.records, os.environ, forced=options.force, selected=_selected(options, job))
    for line in [plan_json(plan)] if options.json else plan_lines(plan):
        say(sys.stdout, line)
    return 0


def _status(options: argparse.Namespace) -> int:
    from checkpoint_action.report.jsonlines import status_json  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.report.terminal import status_lines  # noqa: PLC0415

    name, steps = _named_job(options)
    loaded = load(_paths(options, name))
    _warn(loaded.warnings)
    steps += [step for step in loaded.records if step not in steps]
    records = loaded.records
    if not JobLock(_paths(options, name).lock).held():
        records = {step: _after_death(record) for step, record in records.items()}
    lines = [status_json(name, steps, records)] if options.json else status_lines(name, steps, records)
    for line in lines:
        say(sys.stdout, line)
    return 0


def _after_death(record: Record) -> Record:
    """A record as it reads when no run is on: what still says that it runs was cut off."""
    if record.status is not Status.RUNNING:
        return record
    return replace(record, status=Status.INTERRUPTED, error="the run ended without a word")


def _reset(options: argparse.Namespace) -> int:
    name, _ = _named_job(options)
    paths = _paths(options, name)
    try:
        recorded = any(path.exists() for path in (paths.snapshot, paths.journal))
    except OSError as error:
        raise StateError(f"cannot look into the state dir {paths.folder}: {error.strerror}") from None
    if not recorded:
        say(sys.stdout, f"checkpoint-run: job {name}: nothing was recorded")
        return 0
    lock = JobLock(paths.lock)
    lock.acquire(_wait(options))
    try:
        forget(paths)
    finally:
        lock.release(remove=True)
    say(sys.stdout, f"checkpoint-run: job {name}: what was recorded is forgotten")
    return 0


def _logs(options: argparse.Namespace) -> int:
    from checkpoint_action.report.follow import follow_log  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.report.terminal import StepOutput  # noqa: PLC0415

    name, steps = _named_job(options)
    paths = _paths(options, name)
    records = load(paths).records
    record = records.get(options.id)
    if record is None:
        raise UsageError(f"nothing is recorded of a step '{options.id}'{nearest(options.id, [*steps, *records])}")
    if not record.log:
        raise UsageError(f"step '{options.id}' has no log; it ran with --no-logs")

    def running() -> bool:
        now = load(paths).records.get(options.id)
        return options.follow and now is not None and now.status is Status.RUNNING and JobLock(paths.lock).held()

    path = Path(record.log)
    if not path.exists():  # it was named from another folder
        path = paths.logs / log_name(options.id)
    try:
        follow_log(path, StepOutput(1, shared=False).write, running)
    except OSError as error:
        raise UsageError(f"cannot read the log {record.log}: {error.strerror}") from None
    return 0


def _wait(options: argparse.Namespace) -> float | None:
    return None if options.wait_lock < 0 else float(options.wait_lock)


def _warn(warnings: Sequence[str]) -> None:
    for text in warnings:
        say(sys.stderr, f"checkpoint-run: warning: {text}")


def _run(options: argparse.Namespace) -> int:
    from checkpoint_action.runner.shells import check_shells  # noqa: PLC0415  # only what the verb needs

    job = _job(options)
    check_shells(job.steps, os.environ)
    _selected(options, job)  # a wrong name is said before anything is written
    paths = _paths(options, job.name)
    _check_logs(job, paths)
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateWriteError(f"cannot make the state dir {paths.folder}: {error.strerror}") from None
    load(paths)  # a state that cannot be used is left alone: not even a lock file is made
    lock = JobLock(paths.lock)
    lock.acquire(_wait(options))
    try:
        loaded = load(paths)
        _warn(loaded.warnings)
        if options.force:
            forget(paths)
            loaded = load(paths)
        journal = Journal(paths, loaded, lock=lock)
        journal.open()
        if not options.no_logs:
            with suppress(OSError):  # each log that cannot be written says so itself
                paths.logs.mkdir(mode=0o700, exist_ok=True)
            job = _with_logs(job, paths.logs.absolute())
        return _run_locked(options, job, journal)
    finally:
        lock.release()


def _check_logs(job: Job, paths: StatePaths) -> None:
    """No log may be one of our own files.

    :raises UsageError: one is.
    """
    own = {os.path.normcase(path.absolute()) for path in (paths.snapshot, paths.journal, paths.lock)}
    for step in job.steps:
        if step.log is not None and os.path.normcase(os.path.normpath(step.log.absolute())) in own:
            raise UsageError(f"step '{step.id}': the log {step.log} is a file of the job's state; choose another")


def _with_logs(job: Job, folder: Path) -> Job:
    steps = (step if step.log else replace(step, log=folder / log_name(step.id)) for step in job.steps)
    return replace(job, steps=tuple(steps))


def _run_locked(options: argparse.Namespace, job: Job, journal: Journal) -> int:
    from checkpoint_action.report.jsonlines import JsonReport  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.report.terminal import REMINDER, StepOutput, TerminalReport, same_place  # noqa: PLC0415
    from checkpoint_action.runner.descendants import adopt_orphans  # noqa: PLC0415
    from checkpoint_action.runner.engine import Engine, RunOptions  # noqa: PLC0415
    from checkpoint_action.runner.guardian import Guardian  # noqa: PLC0415
    from checkpoint_action.runner.signals import stop_on_signals  # noqa: PLC0415
    from checkpoint_action.runner.stop import StopRequest  # noqa: PLC0415

    # With --json the events have stdout to themselves.
    target = 2 if options.json else 1
    stop = StopRequest()
    output = StepOutput(target, shared=same_place(1, 2) or target == 2, stop=stop)
    report = TerminalReport(sys.stderr, output, quiet=options.quiet)
    listen = JsonReport(lambda line: say(sys.stdout, line)) if options.json else report
    if options.json and not options.quiet:
        say(sys.stderr, f"checkpoint-run: job {job.name}: {REMINDER}")
    adopt_orphans()
    guardian = Guardian()
    guardian.start()
    engine = Engine(
        job,
        journal,
        dict(os.environ),
        listener=listen,
        write=(lambda _data: None) if options.quiet else output.write,
        stop=stop,
        options=RunOptions(
            forced=options.force,
            selected=_selected(options, job),
            jobs=options.jobs,
            mask_output=not os.isatty(target),
            terminal=os.isatty(1) and not options.no_pty and not options.json and sys.platform != "win32",
        ),
        guardian=guardian,
    )
    try:
        with stop_on_signals(stop, ignore_hangup=options.on_hangup == "continue"):
            ended = engine.run()
            journal.close()
    finally:
        guardian.stop()
    return ended.exit_code


_VERBS = {"run": _run, "plan": _plan, "status": _status, "reset": _reset, "logs": _logs}
