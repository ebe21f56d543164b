"""A job's state, held and ready for a run."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, StateWriteError, UsageError, kind_of_write
from checkpoint_action.model import Status
from checkpoint_action.runner.journal import Journal, forget, load
from checkpoint_action.runner.lock import JobLock
from checkpoint_action.runner.shells import check_shells
from checkpoint_action.store.folders import check_owner, make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from checkpoint_action.model import Job, Record
    from checkpoint_action.runner.journal import StatePaths
    from checkpoint_action.runner.selection import Selection

__all__ = ["opened"]


@contextmanager
def opened(
    job: Job,
    paths: StatePaths,
    selection: Selection,
    env: Mapping[str, str],
    *,
    wait: float | None,
    logs: bool,
    warn: Callable[[Sequence[str]], None],
) -> Iterator[tuple[Job, Journal]]:
    """Hold a job's lock and have its journal open, for as long as the context is.

    Gives the job, each step of which has a log then, and the journal, which the caller closes after a run that ended.

    :param env: the environment whose ``PATH`` finds the shells.
    :param wait: seconds to wait for another run of the job; ``None`` for ever.
    :param logs: whether steps that name no log get one beside the state.
    :param warn: told of what a person should know of the state.
    :raises UsageError: the job cannot run like this.
    :raises StateError: the state cannot be used.
    :raises StateWriteError: the state cannot be written.
    :raises LockHeldError: another run holds the job.
    """
    check_shells(selection.scope(job), env)
    _check_logs(job, paths)
    try:
        make_folder(paths.folder)
    except OSError as error:
        raise StateWriteError(
            f"cannot make the state dir {paths.folder}: {error.strerror}", kind_of_write(error)
        ) from None
    seen = load(paths)  # a state that cannot be used is left alone: not even a lock file is made
    lock = JobLock(paths.lock)
    lock.acquire(wait)
    try:
        loaded = load(paths, seen)
        warn(loaded.warnings)
        if selection.everything:
            _check_decided(job, loaded.records, selection)
            forget(paths)
            loaded = load(paths)
        journal = Journal(paths, loaded, lock=lock)
        journal.open()
        if logs:
            with suppress(OSError):  # each log that cannot be written says so itself
                paths.logs.mkdir(mode=0o700, exist_ok=True)
            _check_ours(paths.folder, paths.logs)
            job = replace(job, logs=paths.logs.absolute())
        yield job, journal
    finally:
        lock.release()


def _check_ours(folder: Path, made: Path) -> None:
    """Whoever else may write to a folder may have been first to make something in it.

    :raises StateWriteError: somebody was.
    """
    try:
        check_owner(folder, [made])
    except PermissionError as error:
        raise StateWriteError(f"cannot use {made}: {error.strerror}; choose another --state-dir") from None


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
                f"'checkpoint-run accept {step.id}{job.words}' takes it as done, '--force {step.id}' runs it again",
                Kind.UNDECIDED,
            )


def _check_logs(job: Job, paths: StatePaths) -> None:
    """No log may be one of our own files.

    :raises UsageError: one is.
    """
    own = {
        os.path.normcase(path.absolute())
        for path in (paths.snapshot, paths.journal, paths.index, paths.answer, paths.lock)
    }
    for step in job.steps:
        if step.log is not None and os.path.normcase(os.path.normpath(step.log.absolute())) in own:
            raise UsageError(
                f"step '{step.id}': the log {step.log} is a file of the job's state; choose another", Kind.SAME_LOG
            )
