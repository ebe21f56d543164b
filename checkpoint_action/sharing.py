"""The verbs that exchange state with other machines: ``pull``, ``push`` and ``store``."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, StateWriteError, UsageError, kind_of_write
from checkpoint_action.intent import job_of, lock_wait, state_paths
from checkpoint_action.report.words import size
from checkpoint_action.runner.journal import Journal, load
from checkpoint_action.runner.lock import JobLock
from checkpoint_action.runner.progress import ProgressFolders, discard
from checkpoint_action.runner.pulling import pull as take_over
from checkpoint_action.runner.pushing import push as hand_over
from checkpoint_action.runner.signals import stop_on_signals
from checkpoint_action.runner.stop import StopRequest
from checkpoint_action.store.base import Found
from checkpoint_action.store.folders import make_folder
from checkpoint_action.store.prune import prune
from checkpoint_action.store.resuming import ResumingStore
from checkpoint_action.store.urls import store_for
from checkpoint_action.store_use import archives_folder, store_use_of, url_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from checkpoint_action.intent import Surroundings
    from checkpoint_action.model import Job, Record
    from checkpoint_action.runner.journal import StatePaths
    from checkpoint_action.runner.pulling import Pulled
    from checkpoint_action.store_use import StoreUse

__all__ = ["pull", "push", "store"]

_MOST_NAMED = 10


def pull(options: argparse.Namespace, around: Surroundings, ask: Callable[[str], bool] | None) -> int:
    """Take over what a store, or a run of GitHub Actions, has of a job, with the files of its finished steps.

    :param ask: asks a person a question; ``None`` where nobody is there.
    """
    job = job_of(options)
    use = _source(options, job, around)
    if not options.github:
        job = use.prepared(job, around.env)
    stop = StopRequest()
    with stop_on_signals(stop), _held(options, job, around) as (paths, journal):
        seen = _Progress(around)
        lost: list[Record] = []
        kept = ResumingStore(use.store, paths.fetched, told=seen.fetched)
        use = use.reading(kept)
        checkpoints = use.checkpoints(job, paths, warn=lambda text: around.warn([text]), stop=stop)
        pulled = take_over(
            job,
            journal,
            around.env,
            checkpoints,
            ProgressFolders(paths.progress, [step.id for step in job.steps]),
            may_overwrite=lambda names: _may_overwrite(names, options, ask),
            restoring=seen.restoring,
            failed=lost.append,
            expected=lambda key: kept.begin_fetch(Found(key)),
        )
        seen.end()
        journal.close()
        if stop.signum is not None:
            return 128 + stop.signum
        if pulled is None:
            around.answer("nothing was changed")
            return 1
        if options.github:
            _take_logs(options, use, paths, around)
        if not checkpoints.in_store:
            raise UsageError(
                f"{use.store.name}: there is no checkpoint of job {job.name} ({use.store.reach})", Kind.NO_CHECKPOINT
            )
        for record in lost:  # what has come is perhaps damaged: it is fetched anew
            for where in (record.archive, record.partial and record.partial.archive):
                kept.drop(where.key if where else "")
        if not options.github and not lost:
            kept.forget()  # from elsewhere nothing can be had again for a push, once later steps have changed the files
    return _tell_pulled(options, job, pulled, around)


def push(options: argparse.Namespace, around: Surroundings, _ask: Callable[[str], bool] | None) -> int:
    """Put what is done here into a store."""
    job = job_of(options)
    use = store_use_of(options, job, around.env)
    if use is None:
        raise UsageError("push needs a store: --store URL", Kind.NO_STORE)
    job = use.prepared(job, around.env)
    stop = StopRequest()
    with stop_on_signals(stop), _held(options, job, around) as (paths, journal):
        sizes: list[int] = []
        arrived: set[str] = set()
        problems: list[str] = []

        def warn(text: str) -> None:
            problems.append(text)
            around.warn([text])

        def arrive(done: tuple[str, ...], unfinished: tuple[str, ...], bytes_: int) -> None:
            arrived.update(done, unfinished)
            sizes.append(bytes_)

        use = use.trusted(job, journal.records, around.env, warn)
        checkpoints = use.checkpoints(job, paths, warn=warn, kept=arrive, stop=stop)
        progress = ProgressFolders(paths.progress, [step.id for step in job.steps])
        pushed = hand_over(job, journal, around.env, checkpoints, progress)
        if problems:  # then the store may have taken only some, or none
            lost = {step: "it did not get there" for step in pushed.sent if step not in arrived}
            sent = tuple(step for step in pushed.sent if step in arrived)
            pushed = replace(pushed, sent=sent, left={**pushed.left, **lost})
        elif stop.signum is None:
            discard(paths.fetched)
    if stop.signum is not None:
        return 128 + stop.signum
    if options.json:
        told = {"job": job.name, "pushed": pushed.sent, "there": pushed.there, "left": dict(pushed.left)}
        around.answer(json.dumps(told))
    else:
        if pushed.there:
            around.answer(f"{_names(pushed.there)}: in the store already")
        if pushed.sent:
            around.answer(f"{_names(pushed.sent)}: put into {use.store.name} ({size(sum(sizes))})")
        for step, why in pushed.left.items():
            around.answer(f"{step}: stays here: {why}")
    return 1 if problems else 0


def store(options: argparse.Namespace, around: Surroundings, _ask: Callable[[str], bool] | None) -> int:
    """List what a store holds, or delete what is old in it."""
    url = url_of(options, around.env)
    if not url:
        raise UsageError(f"store {options.ids[0]} needs a store: write its URL, or set CHECKPOINT_STORE", Kind.NO_STORE)
    place = store_for(url)
    now = time.time()
    if options.ids[0] == "ls":
        rows = sorted(place.entries(), key=lambda row: (row.modified, row.key))
        if options.json:
            told = [{"key": row.key, "size": row.size, "age": round(now - row.modified)} for row in rows]
            around.answer(json.dumps({"store": place.name, "entries": told}))
            return 0
        for row in rows:
            around.answer(f"{_age(now - row.modified):>6}  {size(row.size):>10}  {row.key}")
        around.answer(f"{place.name}: {len(rows)} archives, {size(sum(row.size for row in rows))}")
        return 0
    done = prune(place, older_than=options.older_than, keep=options.keep, now=now, dry_run=options.dry_run)
    freed = sum(row.size for row in done.deleted)
    if options.json:
        told_ = {"deleted": [row.key for row in done.deleted], "bytes": freed, "kept": done.kept, "failed": done.failed}
        around.answer(json.dumps(told_))
    else:
        for row in done.deleted:
            around.answer(f"{'would delete' if options.dry_run else 'deleted'} {row.key} ({size(row.size)})")
        around.answer(f"{len(done.deleted)} archives with {size(freed)}; {done.kept} stay")
        around.warn([f"{key}: {why}" for key, why in done.failed.items()])
    return 1 if done.failed else 0


def _source(options: argparse.Namespace, job: Job, around: Surroundings) -> StoreUse:
    """Where to pull from."""
    if options.github:
        from checkpoint_action.github_run import use_of_run  # noqa: PLC0415  # only for this

        if options.store or options.scope or options.run_id:
            raise UsageError(
                "--github says where to pull from; leave --store, --scope and --run-id out", Kind.EXCLUSIVE
            )
        return use_of_run(options, job.name, around)
    for flag, value in (("--run", options.run), ("--attempt", options.attempt)):
        if value is not None:
            raise UsageError(f"{flag} is for --github OWNER/REPO", Kind.EXCLUSIVE)
    use = store_use_of(options, job, around.env)
    if use is None:
        raise UsageError("pull needs a place to take from: --store URL, or --github OWNER/REPO --run ID", Kind.NO_STORE)
    return use


def _take_logs(options: argparse.Namespace, use: StoreUse, paths: StatePaths, around: Surroundings) -> None:
    from checkpoint_action.github_run import fetch_logs  # noqa: PLC0415  # only for this

    fetch_logs(options, use.keys, paths.logs, around)


@contextmanager
def _held(options: argparse.Namespace, job: Job, around: Surroundings) -> Iterator[tuple[StatePaths, Journal]]:
    """Hold the job, with an empty folder for archives."""
    paths = state_paths(options, job.name)
    try:
        make_folder(paths.folder)
    except OSError as error:
        raise StateWriteError(
            f"cannot make the state dir {paths.folder}: {error.strerror}", kind_of_write(error)
        ) from None
    load(paths)  # a state that cannot be used is left alone: not even a lock file is made
    lock = JobLock(paths.lock)
    lock.acquire(lock_wait(options))
    try:
        loaded = load(paths)
        around.warn(loaded.warnings)
        with archives_folder(paths):
            yield paths, Journal(paths, loaded, lock=lock)
    finally:
        lock.release(remove=not (paths.snapshot.exists() or paths.journal.exists()))


def _may_overwrite(names: list[str], options: argparse.Namespace, ask: Callable[[str], bool] | None) -> bool:
    if options.overwrite:
        return True
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    listed = ", ".join(names[:_MOST_NAMED]) + more
    if ask is None:
        raise UsageError(
            f"pull would write over files that no step has left like that: {listed}; give --overwrite",
            Kind.WOULD_OVERWRITE,
        )
    return ask(f"pull writes over files that no step has left like that: {listed}. Go on? [y/N] ")


def _tell_pulled(options: argparse.Namespace, job: Job, pulled: Pulled, around: Surroundings) -> int:
    if options.json:
        around.answer(
            json.dumps(
                {
                    "job": job.name,
                    "learned": pulled.learned,
                    "restored": pulled.restored,
                    "there": pulled.there,
                    "continued": pulled.continued,
                    "left": dict(pulled.left),
                }
            )
        )
        return 0
    if pulled.restored:
        around.answer(f"{_names(pulled.restored)}: done, with files put back")
    if pulled.there:
        around.answer(f"{_names(pulled.there)}: done, with files as they are")
    for step, why in pulled.left.items():
        more = ", from what its last try left" if step in pulled.continued else ""
        around.answer(f"{step}: to run: {why}{more}")
    given = f" -f {options.file}" if options.file else ""
    around.answer(f"go on with: checkpoint-run{given}" if pulled.left else "nothing is left to run")
    return 0


def _names(steps: tuple[str, ...]) -> str:
    more = f" and {len(steps) - _MOST_NAMED} more" if len(steps) > _MOST_NAMED else ""
    return ", ".join(steps[:_MOST_NAMED]) + more


def _age(seconds: float) -> str:
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


class _Progress:
    """What is fetched and put back, as it goes; one line that is written over on a terminal."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._live = around.err.isatty()
        self._open = False

    def fetched(self, _key: str, there: int) -> None:
        """Tell how much of an archive is there."""
        if self._live:
            self._around.err.write(f"\rfetched {size(there)}   ")
            self._around.err.flush()
            self._open = True

    def restoring(self, record: Record) -> None:
        """Tell which step's files are put back next."""
        self.end()
        whole = sum(entry.size for entry in record.layer.entries)
        self._around.err.write(f"{record.step}: {len(record.layer.entries)} paths, {size(whole)}\n")
        self._around.err.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._open:
            self._around.err.write("\n")
        self._open = False
