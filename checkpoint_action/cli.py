"""The command line: one of the two faces. Only here are environment, terminal and exit codes."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action import __version__
from checkpoint_action.arguments import STEPS_OF_WORDS, parse_arguments
from checkpoint_action.errors import CheckpointError, OutputError, StateWriteError, UsageError
from checkpoint_action.intent import Surroundings, job_of, lock_wait, selection_of, state_paths
from checkpoint_action.jobfile.values import log_name
from checkpoint_action.model import Status
from checkpoint_action.report.lines import Answers, say
from checkpoint_action.runner.journal import Journal, forget, load
from checkpoint_action.runner.lock import JobLock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from checkpoint_action.model import Job, Record
    from checkpoint_action.report.html_report import HtmlReport
    from checkpoint_action.runner.events import Event, Listener
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.journal import StatePaths
    from checkpoint_action.runner.selection import Selection
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["main", "open_standard_streams"]

_BUG = 70
_INTERRUPTED = 130


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


def _save(_options: argparse.Namespace) -> int:
    from checkpoint_action.runner.save_requests import VARIABLE, request_save  # noqa: PLC0415  # only what the verb needs

    prefix = os.environ.get(VARIABLE)
    if not prefix:
        raise UsageError("save is for a running step: call it from the step's command")
    say(sys.stderr, f"checkpoint-run: {request_save(prefix)}")
    return 0


def _run(options: argparse.Namespace) -> int:
    from checkpoint_action.runner.shells import check_shells  # noqa: PLC0415  # only what the verb needs

    job = job_of(options)
    selection = selection_of(options, job)
    check_shells(selection.scope(job), os.environ)
    paths = state_paths(options, job.name)
    _check_logs(job, paths)
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateWriteError(f"cannot make the state dir {paths.folder}: {error.strerror}") from None
    load(paths)  # a state that cannot be used is left alone: not even a lock file is made
    lock = JobLock(paths.lock)
    lock.acquire(lock_wait(options))
    try:
        loaded = load(paths)
        _around().warn(loaded.warnings)
        if selection.everything:
            _check_decided(job, loaded.records, selection)
            forget(paths)
            loaded = load(paths)
        journal = Journal(paths, loaded, lock=lock)
        journal.open()
        if not options.no_logs:
            with suppress(OSError):  # each log that cannot be written says so itself
                paths.logs.mkdir(mode=0o700, exist_ok=True)
            job = _with_logs(job, paths.logs.absolute())
        return _run_locked(options, job, selection, journal)
    finally:
        lock.release()


def _check_decided(job: Job, records: Mapping[str, Record], selection: Selection) -> None:
    """A fresh start is no decision about a step in which a run died and that must not run twice.

    :raises UsageError: there is such a step, and it is not named.
    """
    for step in job.steps:
        record = records.get(step.id)
        died = record is not None and record.status is Status.RUNNING
        if died and step.on_crash == "stop" and step.id not in selection.named:
            raise UsageError(
                f"--force: the run died in '{step.id}', which may have done its work; "
                f"'checkpoint-run accept {step.id}' takes it as done, '--force {step.id}' runs it again"
            )


def _check_logs(job: Job, paths: StatePaths) -> None:
    """No log may be one of our own files.

    :raises UsageError: one is.
    """
    own = {os.path.normcase(path.absolute()) for path in (paths.snapshot, paths.journal, paths.index, paths.lock)}
    for step in job.steps:
        if step.log is not None and os.path.normcase(os.path.normpath(step.log.absolute())) in own:
            raise UsageError(f"step '{step.id}': the log {step.log} is a file of the job's state; choose another")


def _with_logs(job: Job, folder: Path) -> Job:
    steps = (step if step.log else replace(step, log=folder / log_name(step.id)) for step in job.steps)
    return replace(job, steps=tuple(steps))


def _run_locked(options: argparse.Namespace, job: Job, selection: Selection, journal: Journal) -> int:
    from checkpoint_action.report.hiding import Hiding  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.report.jsonlines import JsonReport  # noqa: PLC0415
    from checkpoint_action.report.terminal import REMINDER, StepOutput, TerminalReport, same_place  # noqa: PLC0415
    from checkpoint_action.runner.descendants import adopt_orphans  # noqa: PLC0415
    from checkpoint_action.runner.engine import Engine, RunOptions  # noqa: PLC0415
    from checkpoint_action.runner.guardian import Guardian  # noqa: PLC0415
    from checkpoint_action.runner.masks import secret_texts  # noqa: PLC0415
    from checkpoint_action.runner.signals import stop_on_signals  # noqa: PLC0415
    from checkpoint_action.runner.stop import StopRequest  # noqa: PLC0415

    # With --json the events have stdout to themselves.
    target = 2 if options.json else 1
    stop = StopRequest()
    output = StepOutput(target, shared=same_place(1, 2) or target == 2, stop=stop)
    report = TerminalReport(sys.stderr, output, quiet=options.quiet)
    answers = Answers(sys.stdout)
    listen: Listener = JsonReport(answers.write) if options.json else report
    if not (sys.stdout if options.json else sys.stderr).isatty():
        listen = Hiding(listen, secret_texts(job.secrets, os.environ))
    pages = None
    if options.report:
        from checkpoint_action.report.html_report import HtmlReport  # noqa: PLC0415  # only where it is asked for

        pages = HtmlReport(secret_texts(job.secrets, os.environ))
        listen = _both(listen, pages)
    if options.json and not options.quiet:
        say(sys.stderr, f"checkpoint-run: job {job.name}: {REMINDER}")
    adopt_orphans()
    guardian = Guardian()
    guardian.start()
    lost = None
    try:
        with (
            stop_on_signals(stop, ignore_hangup=options.on_hangup == "continue"),
            _digests(options, state_paths(options, job.name), stop) as digests,
        ):
            engine = Engine(
                job,
                journal,
                dict(os.environ),
                listener=listen,
                write=(lambda _data: None) if options.quiet else output.write,
                stop=stop,
                options=RunOptions(
                    selection=selection,
                    jobs=options.jobs,
                    mask_output=not os.isatty(target),
                    terminal=os.isatty(1) and not options.no_pty and not options.json and sys.platform != "win32",
                ),
                guardian=guardian,
                state=state_paths(options, job.name),
                digests=digests,
            )
            ended = engine.run()
            journal.close()
    finally:
        guardian.stop()
        if pages is not None:
            lost = _write_report(pages, options.report)
    if ended.exit_code == 0:
        if lost is not None:
            raise lost
        answers.check()
    elif lost is not None:
        say(sys.stderr, f"checkpoint-run: warning: {lost}")
    return ended.exit_code


def _both(first: Listener, second: Listener) -> Listener:
    def listen(event: Event) -> None:
        second(event)
        first(event)

    return listen


def _write_report(pages: HtmlReport, name: str) -> OutputError | None:
    """Write the page of the run.

    :returns: why it could not be written, which never hides the run's own result.
    """
    try:
        pages.write(Path(name))
    except OutputError as error:
        return error
    return None


def _digests(
    options: argparse.Namespace, paths: StatePaths, stop: StopRequest
) -> AbstractContextManager[ContentDigests | None]:
    """What is known of files from earlier runs, where that is to be trusted."""
    if options.verify == "full":
        return nullcontext()
    from checkpoint_action.runner.digest_index import kept_digests  # noqa: PLC0415  # only where it is asked for

    return kept_digests(paths.index, lambda: stop.signum is not None, lost=lambda text: _around().warn([text]))


def _view(options: argparse.Namespace) -> int:
    from checkpoint_action import views  # noqa: PLC0415  # only what the verb needs

    verb: Callable[[argparse.Namespace, Surroundings], int] = getattr(views, options.verb)
    return verb(options, _around())


def _amend(options: argparse.Namespace) -> int:
    from checkpoint_action import amend  # noqa: PLC0415  # only what the verb needs

    verb: Callable[[argparse.Namespace, Surroundings], int] = getattr(amend, options.verb)
    return verb(options, _around())


def _aid(options: argparse.Namespace) -> int:
    from checkpoint_action import aids  # noqa: PLC0415  # only what the verb needs

    verb: Callable[[argparse.Namespace, Surroundings], int]
    verb = aids.step_ids if options.verb == STEPS_OF_WORDS else getattr(aids, options.verb)
    return verb(options, _around())


def _around() -> Surroundings:
    return Surroundings(os.environ, sys.stdout, sys.stderr)


_VERBS = {
    "run": _run,
    "plan": _view,
    "graph": _view,
    "status": _view,
    "report": _view,
    "reset": _amend,
    "accept": _amend,
    "logs": _view,
    "save": _save,
    "init": _aid,
    "schema": _aid,
    "completion": _aid,
    "doctor": _aid,
    STEPS_OF_WORDS: _aid,
}
