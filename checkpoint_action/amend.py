"""The verbs that change what is recorded without running anything: ``reset`` and ``accept``."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from checkpoint_action.errors import CheckpointError, Kind, StateError, StateWriteError, UsageError, kind_of_write
from checkpoint_action.intent import check_ids, job_of, lock_wait, named_job, state_paths
from checkpoint_action.jobfile.values import log_name
from checkpoint_action.runner.journal import Journal, forget, load
from checkpoint_action.runner.lock import JobLock
from checkpoint_action.runner.progress import ProgressFolders
from checkpoint_action.store.folders import make_folder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator

    from checkpoint_action.intent import Surroundings
    from checkpoint_action.runner.journal import StatePaths

__all__ = ["accept", "reset"]


def reset(options: argparse.Namespace, around: Surroundings) -> int:
    """Forget what is recorded: of the steps named, or of all."""
    name, steps = named_job(options)
    paths = state_paths(options, name)
    names = list(dict.fromkeys(options.ids))
    recorded = _is_recorded(paths)
    if names:
        known = [*steps, *load(paths).records] if recorded else steps
        check_ids("reset", names, known)
    if not recorded:
        none = json.dumps({"job": name, "forgotten": []})
        around.answer(none if options.json else f"checkpoint-run: job {name}: nothing was recorded")
        return 0
    forgotten = names
    with _locked(paths, options) as lock:
        if names:
            forgotten = _forget_steps(paths, lock, names, around)
        else:
            with suppress(CheckpointError):  # what cannot be read can still be forgotten
                forgotten = list(load(paths).records)
            forget(paths)
    if options.json:
        around.answer(json.dumps({"job": name, "forgotten": forgotten}))
        return 0
    for step in names:
        told = f"what was recorded of '{step}' is forgotten"
        if step not in forgotten:
            told = f"nothing was recorded of '{step}', so there was nothing to forget"
        around.answer(f"checkpoint-run: job {name}: {told}")
    if not names:
        around.answer(f"checkpoint-run: job {name}: what was recorded is forgotten")
    return 0


def _forget_steps(paths: StatePaths, lock: JobLock, names: Collection[str], around: Surroundings) -> list[str]:
    """Forget steps, also what lies about of one that has no record; those that had one."""
    loaded = load(paths)
    around.warn(loaded.warnings)
    had = [step for step in names if step in loaded.records]
    journal = Journal(paths, loaded, lock=lock)
    journal.open()
    for step in names:  # first, so that no step that is forgotten ever goes on from it
        ProgressFolders(paths.progress).forget(step)
    journal.forget(names)
    journal.close()
    for step in names:
        with suppress(OSError):
            (paths.logs / log_name(step)).unlink()
    return had


def accept(options: argparse.Namespace, around: Surroundings) -> int:
    """Take steps as done, as they are now, without running them."""
    from checkpoint_action.runner.acceptance import accept_steps  # noqa: PLC0415  # only what the verb needs

    job = job_of(options)
    if not options.ids:
        raise UsageError(
            "accept takes steps as done without running them; name them: checkpoint-run accept ID", Kind.NO_SUCH_STEP
        )
    check_ids("accept", options.ids, [step.id for step in job.steps])
    paths = state_paths(options, job.name)
    _make_folder(paths)
    load(paths)  # a state that cannot be used is left alone: not even a lock file is made
    with _locked(paths, options) as lock:
        loaded = load(paths)
        around.warn(loaded.warnings)
        accepted = accept_steps(job, loaded.records, around.env, options.ids)
        records = [record for record in accepted.values() if record is not None]
        if records:
            journal = Journal(paths, loaded, lock=lock)
            journal.open()
            for record in records:
                journal.finish(record)
            journal.close()
        for record in records:
            ProgressFolders(paths.progress).forget(record.step)
    if options.json:
        around.answer(json.dumps({"job": job.name, "accepted": [record.step for record in records]}))
        return 0
    for step, taken in accepted.items():
        done = "is done as it is" if taken is None else "is taken as done, without running it"
        if taken is not None and not taken.tries:
            done += "; it hands nothing on, as no finished run of it is on record"
        around.answer(f"checkpoint-run: job {job.name}: '{step}' {done}")
    return 0


def _make_folder(paths: StatePaths) -> None:
    try:
        make_folder(paths.folder)
    except OSError as error:
        raise StateWriteError(
            f"cannot make the state dir {paths.folder}: {error.strerror}", kind_of_write(error)
        ) from None


def _is_recorded(paths: StatePaths) -> bool:
    try:
        return any(path.exists() for path in (paths.snapshot, paths.journal, paths.index))
    except OSError as error:
        raise StateError(
            f"cannot look into the state dir {paths.folder}: {error.strerror}", Kind.STATE_UNREADABLE
        ) from None


@contextmanager
def _locked(paths: StatePaths, options: argparse.Namespace) -> Iterator[JobLock]:
    """Hold the job's lock; its file goes where nothing is recorded, or nothing is any more."""
    lock = JobLock(paths.lock)
    lock.acquire(lock_wait(options))
    try:
        yield lock
    finally:
        lock.release(remove=not _is_recorded(paths))
