"""What becomes of a run's steps beyond this machine, and what their tries leave on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import StateWriteError, StoreError, TornError, kind_of_write
from checkpoint_action.model import Status
from checkpoint_action.runner import events
from checkpoint_action.runner.progress import NoDigests, progress_of, sync_progress
from checkpoint_action.runner.stop import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from checkpoint_action.model import Job, Record, Step
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.events import Event
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.lent import Lent
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["Keeping"]


class Keeping:
    """A run's checkpoints, where it keeps any.

    :param lent: the steps' own folders.
    """

    def __init__(
        self, job: Job, checkpoints: Checkpoints | None, lent: Lent, stop: StopRequest, tell: Callable[[Event], None]
    ) -> None:
        self._job = job
        self._checkpoints = checkpoints
        self._lent = lent
        self._stop = stop
        self._tell = tell

    @property
    def is_active(self) -> bool:
        """Whether anything is kept beyond this machine."""
        return self._checkpoints is not None

    def restore(self, record: Record, acceptable: Callable[[str], Collection[str]], stay: Collection[str]) -> str:
        """Put back what a done step left; why that cannot be, or an empty text.

        :param acceptable: contents of a path, besides those the layer knows, that may be written over.
        :param stay: paths that stay as they are.
        :raises StoppedError: the run is being stopped.
        :raises TornError: half of it is there, and what was there before is not.
        """
        if self._checkpoints is None:
            return "no store is used"
        try:
            self._checkpoints.restore(record, acceptable, stay)
        except StoreError as error:
            if self._stop.signum is not None:
                raise StoppedError from error
            if isinstance(error, TornError):
                raise
            return str(error) or "it cannot be put back"
        return ""

    def begin(self, position: int, step: Step, digests: ContentDigests) -> events.Event | None:
        """Look at the workspace before a step starts, and put back what an unfinished try on another machine left.

        :returns: what there is to tell of it, once it is told that the step starts.
        :raises StoppedError: the run is being stopped.
        :raises TornError: half of it is there, and what was there before is not.
        """
        if self._checkpoints is None:
            return None
        self._checkpoints.look(step.id, digests)
        try:
            size = self._checkpoints.restore_progress(step.id, Path(self._lent.progress.make(step.id)))
        except (StoreError, OSError) as error:
            if self._stop.signum is not None:
                raise StoppedError from error
            if isinstance(error, TornError):
                raise
            return events.Warned(f"step '{step.id}' starts without what an unfinished try left: {error}")
        return None if size is None else events.ProgressRestored(position, size)

    def started(self, step: Step, record: Record) -> None:
        """A step starts.

        :param record: says that it runs.
        """
        if self._checkpoints is not None:
            self._checkpoints.started(step, record)

    def save(self, step: Step, pending: Record) -> str:
        """Have the progress of a running step on the disk, and in the store; from whatever thread.

        :param pending: its record so far.
        :returns: what became of it.
        :raises CheckpointError: it is not there.
        """
        folder = self._lent.progress.of(step.id)
        try:
            progress = progress_of(step, self._job, folder, {}, NoDigests())
            sync_progress(progress, self._job.root, folder)
        except OSError as error:
            raise StateWriteError(f"{error.filename}: {error.strerror}", kind_of_write(error)) from None
        if not progress.count:
            return "there is nothing to save: no path in 'partial' is there, and $CHECKPOINT_DIR is empty"
        said = f"{progress.count} paths with {progress.size} bytes are on this disk"
        if self._checkpoints is None:
            return said
        record = replace(pending, error="the machine was lost after it had saved its progress")
        return f"{said}, {self._checkpoints.save_running(step, self._job, record, folder)}"

    def seen(self, step: Step, record: Record, digests: ContentDigests) -> Record:
        """The record of a step that has just ended well, with all that it changed where that is looked at."""
        if self._checkpoints is None:
            return record
        return replace(record, layer=self._checkpoints.changes(step, record.layer, digests))

    def keep(self, step: Step, record: Record, *, stopping: bool) -> None:
        """Have a step in the store, done or not.

        :param stopping: whether no other step follows.
        :raises StoreError: it cannot be there, and the store is required.
        """
        if self._checkpoints is None:
            return
        if record.status is Status.DONE:
            self._checkpoints.keep(record)
            return
        folder = self._lent.progress.of(step.id)
        self._checkpoints.keep_unfinished(step, self._job, record, folder, stopping=stopping)
        self._checkpoints.forget_look()

    def skipped(self, step: Step, record: Record) -> None:
        """See that a step that was done before is in the store too.

        :raises StoreError: it cannot be there, and the store is required.
        """
        if self._checkpoints is not None and not self._checkpoints.holds(record):
            self._checkpoints.catch_up(step, record)

    def finish(self, seconds: float, seconds_on_stop: float) -> None:
        """Wait until all that is kept is in the store.

        :param seconds: the longest wait.
        :param seconds_on_stop: the longest wait from when a stop is requested.
        :raises StoreError: not everything got there, and the store is required.
        """
        if self._checkpoints is not None:
            self._checkpoints.finish(seconds, seconds_on_stop)
