"""What a store tells of a job, taken over, and what its finished steps left, put back without a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.model import Action, Status
from checkpoint_action.runner.entries import entry_of
from checkpoint_action.runner.merging import choosing
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.plan import Planner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from checkpoint_action.model import Job, Layer, Record
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.journal import Journal
    from checkpoint_action.runner.progress import ProgressFolders

__all__ = ["AHEAD", "Pulled", "pull"]

AHEAD = 2
"""Archives that are fetched while another is put back: one line rarely takes all that a network gives."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """What was done.

    :param learned: ids of the steps of which the store told something new.
    :param restored: ids of the steps whose files were put back.
    :param there: ids of the done steps whose files were there already.
    :param continued: ids of the steps that are to run, and go on from what their last try left, which was put back.
    :param left: ids of the steps that are to run, with why.
    """

    learned: tuple[str, ...]
    restored: tuple[str, ...]
    there: tuple[str, ...]
    continued: tuple[str, ...]
    left: Mapping[str, str]


def pull(
    job: Job,
    journal: Journal,
    env: Mapping[str, str],
    checkpoints: Checkpoints,
    progress: ProgressFolders,
    *,
    may_overwrite: Callable[[list[str]], bool],
    restoring: Callable[[Record], None],
    failed: Callable[[Record], None],
    expected: Callable[[str], None] = lambda _key: None,
    digests: ContentDigests | None = None,
) -> Pulled | None:
    """Take over what the store tells, and put back what is missing.

    :param journal: the job's, which is held; it is opened when something is known to change.
    :param progress: the steps' own folders.
    :param may_overwrite: asked about the files that have another content here than any step knows, before anything is
        changed.
    :param restoring: told of each step before its files are put back.
    :param failed: told of each whose files could not be.
    :param expected: told of the archives that will be wanted after the one that is wanted now, again and again.
    :returns: ``None`` where the files must not be written over: then nothing was changed.
    :raises StoreError: the store fails, and it is required.
    :raises StateWriteError: what it tells cannot be recorded.
    """
    choose = choosing(job, env, digests)
    taken = checkpoints.learn([step.id for step in job.steps], journal.records, choose=choose)
    taken = {step.id: taken[step.id] for step in job.steps if step.id in taken}
    planner = Planner(job, {**journal.records, **taken}, env, digests=digests)
    found = _conflicts(job, planner, {**journal.records, **taken}, checkpoints.left_here)
    if found and not may_overwrite(sorted(found)):
        return None
    if checkpoints.in_store:
        journal.merge(taken)
        journal.open()

    def acceptable(path: str) -> Collection[str]:
        return {*planner.ownership.known_contents(path), *found.get(path, ())}

    restored: list[str] = []
    there: list[str] = []
    continued: list[str] = []
    left: dict[str, str] = {}
    upcoming = _Upcoming(job, journal.records)
    for step in job.steps:
        decision = planner.foresee(step)
        if decision.action is Action.RESTORE:
            record = journal.records[step.id]
            restoring(record)
            for key in upcoming.after(record):
                expected(key)
            try:
                checkpoints.restore(record, acceptable, planner.to_stay(record))
            except StoreError as error:
                failed(record)
                left[step.id] = str(error) or "it cannot be put back"
                continue
            planner.restored()
            restored.append(step.id)
        elif decision.action is Action.SKIP:
            there.append(step.id)
        else:
            left[step.id] = decision.detail if decision.action is Action.STOP else decision.reason.value
            unfinished = journal.records.get(step.id)
            if unfinished is None or unfinished.partial is None:
                continue
            try:
                if checkpoints.restore_progress(step.id, Path(progress.make(step.id))) is not None:
                    continued.append(step.id)
            except (StoreError, OSError) as error:
                failed(unfinished)
                left[step.id] += f", without what its last try left: {error}"
    progress.clear()
    return Pulled(tuple(taken), tuple(restored), tuple(there), tuple(continued), left)


class _Upcoming:
    """The archives that the job's done steps came from, in the order of the steps."""

    def __init__(self, job: Job, records: Mapping[str, Record]) -> None:
        self._root = job.root
        self._layers: dict[str, list[Layer]] = {}
        for record in (records[step.id] for step in job.steps if step.id in records):
            if record.status is Status.DONE and record.archive is not None:
                self._layers.setdefault(record.archive.key, []).append(record.layer)
        self._keys = list(self._layers)
        self._places = {key: place for place, key in enumerate(self._keys)}

    def after(self, record: Record) -> list[str]:
        """The next archives after a step's, without those of which it is not certain that they will be wanted."""
        begin = self._places.get(record.archive.key if record.archive else "", len(self._keys)) + 1
        return [key for key in self._keys[begin : begin + AHEAD] if self._is_wanted(key)]

    def _is_wanted(self, key: str) -> bool:
        paths = (entry.path for layer in self._layers[key] for entry in layer.entries)
        return any(not os.path.lexists(locate(self._root, path)) for path in paths)


def _conflicts(
    job: Job, planner: Planner, records: Mapping[str, Record], left_here: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, ...]]:
    """The paths that hold what no step has left or found there, each with what may be written over if so wanted."""
    layers = [record.layer for record in records.values() if record.status is Status.DONE and record.archive]
    found: dict[str, tuple[str, ...]] = {}
    for path in dict.fromkeys(path for layer in layers for path in _paths(layer)):
        try:
            entry = entry_of(locate(job.root, path), path, planner.digests)
        except OSError:  # it is told when the step is put back
            continue
        if entry is None or entry.type == "dir":
            continue
        known = {layer.before[path] for layer in layers if path in layer.before}
        if entry.content not in known.union(planner.ownership.known_contents(path), left_here.get(path, ())):
            found[path] = (entry.content,)
    return found


def _paths(layer: Layer) -> Iterable[str]:
    return (*(entry.path for entry in layer.entries), *layer.deleted)
