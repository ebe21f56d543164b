"""Finished steps kept in a store, and put back from it; of unfinished ones what the next try may continue from."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, StoreError, UsageError
from checkpoint_action.model import Status
from checkpoint_action.runner.archives import Archives, reason
from checkpoint_action.runner.finished import Finished
from checkpoint_action.runner.job_in_store import JobInStore
from checkpoint_action.runner.merging import to_take_over
from checkpoint_action.runner.parcels import Parcel
from checkpoint_action.runner.putting_back import PuttingBack
from checkpoint_action.runner.seen_workspace import SeenWorkspace
from checkpoint_action.runner.sources import restore_times, sources_of
from checkpoint_action.runner.unfinished import Unfinished
from checkpoint_action.runner.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from checkpoint_action.model import ArchiveRef, Job, Layer, Record, Step
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.keys import KeyScheme
    from checkpoint_action.runner.scan import Workspace
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store.base import Store

__all__ = ["Checkpoints"]

_ANNOUNCE = 60.0  # seconds that a step waits until its start is in the store, where that is asked for


class Checkpoints:
    """One job's checkpoints in one store.

    Packing happens at once, as the next step may change the files; uploads go on beside the steps
    (:class:`~checkpoint_action.runner.uploads.Uploads`).

    :param folder: an empty folder of our own, on the workspace's file system where possible.
    :param warn: told of what a person should know; also from the thread that uploads.
    :param kept: told of the steps that have reached the store, of the unfinished ones whose progress has, and of the
        archive's bytes, from that thread.
    :param required: whether a failing store is an error instead.
    :param stop: ends every wait for the store.
    :param restore_seconds: time that a run may wait for what it reads from the store, all in all.
    :param off: why the store is left alone from the beginning; then steps are only looked at.
    :param read_only: whether nothing is put into the store, though steps are put back from it.
    :param signing_key: what archives are signed with; those that are not signed with it are left alone. Not empty.
    :param max_size: bytes that the files a step left may have together to be kept for other machines.
    :param at_hand: the archive that a step came from, where it is still on this machine: later steps may have changed
        its files since.
    :param missed: told that the store has nothing of the job, with what it says of its reach (or nothing).
    :ivar in_store: all records that the store told of when it was asked.
    :ivar left_here: by path, what steps done on this machine left there whose records gave way to the store's.
    :ivar told: by step that was learned of, the key of the archive that was the first to tell its record.
    """

    def __init__(
        self,
        store: Store,
        keys: KeyScheme,
        folder: Path,
        workspace: Workspace,
        *,
        warn: Callable[[str], None],
        kept: Callable[[tuple[str, ...], tuple[str, ...], int], None] = lambda _done, _unfinished, _size: None,
        required: bool = False,
        stop: StopRequest | None = None,
        restore_seconds: float = 900.0,
        off: str = "",
        read_only: bool = False,
        signing_key: bytes | None = None,
        max_size: int | None = None,
        missed: Callable[[str], None] = lambda _reach: None,
        at_hand: Callable[[ArchiveRef], Path | None] = lambda _where: None,
    ) -> None:
        if signing_key is not None and not signing_key:
            raise UsageError("the signing key is empty", Kind.INPUT)
        self._store = store
        self._keys = keys
        self._workspace = workspace
        self._warn = warn
        self._required = required
        self._read_only = read_only
        self._unreadable = off
        self.in_store: Mapping[str, Record] = {}
        self.left_here: dict[str, set[str]] = {}

        def is_stopping() -> bool:
            return stop is not None and stop.signum is not None

        self._uploads = Uploads(
            store,
            keys,
            folder,
            warn=warn,
            kept=kept,
            required=required and not read_only,
            is_stopping=is_stopping,
            off=off or ("nothing is put into the store" if read_only else ""),
            signing_key=signing_key,
        )
        archives = Archives(
            store,
            keys,
            folder,
            warn=warn,
            failed=self._failed,
            is_off=lambda: self.off,
            stop=stop,
            seconds=restore_seconds,
            signing_key=signing_key,
        )
        self._job = JobInStore(
            store,
            keys,
            archives,
            warn=warn,
            failed=self._failed,
            is_off=lambda: self.off,
            missed=missed,
        )
        self._putting_back = PuttingBack(archives, workspace, folder)
        self._seen = SeenWorkspace(workspace)
        self._finished = Finished(
            self._uploads,
            self._seen,
            workspace.root,
            folder,
            at_hand,
            warn=warn,
            required=required,
            max_size=max_size,
        )
        self._unfinished = Unfinished(
            self._uploads,
            workspace,
            folder,
            self._putting_back.put_back,
            warn=warn,
            required=required,
            is_stopping=is_stopping,
            max_size=max_size,
        )
        self.told: Mapping[str, str] = {}

    @property
    def off(self) -> str:
        """Why the store is left alone, and not even read any more, or an empty text."""
        return self._unreadable if self._read_only else self._uploads.off

    def _failed(self, error: StoreError) -> None:
        """Leave the store alone from now on.

        :raises StoreError: it is required.
        """
        if not self._read_only:
            self._uploads.switch_off(error)
            return
        if self._required:
            raise error
        if not self._unreadable:
            self._warn(f"{error.told}; going on without the store")
        self._unreadable = self._unreadable or str(error)

    def learn(
        self,
        steps: Sequence[str] = (),
        local: Mapping[str, Record] = MappingProxyType({}),
        *,
        look_only: bool = False,
        choose: Callable[[Mapping[str, Record], Mapping[str, Record]], dict[str, Record]] = to_take_over,
    ) -> dict[str, Record]:
        """The records of steps that another machine has finished, or left unfinished, as far as they are to be used.

        Where the newest archive is not usable, the newest usable one of those that end with one of ``steps`` is taken.

        :param steps: ids of the job's steps.
        :param local: the records of this machine; see :func:`~checkpoint_action.runner.merging.to_take_over`.
        :param look_only: whether the workspace stays as it is.
        :param choose: which of the records that the store tells go before this machine's.
        :raises StoreError: the store fails, and it is required.
        """
        state = self._job.state(steps)
        if state is None:
            return {}
        self.in_store = state.records
        taken = choose(local, state.records)
        for record in (local[step] for step in taken if step in local and local[step].status is Status.DONE):
            for entry in record.layer.entries:
                self.left_here.setdefault(entry.path, set()).add(entry.content)
        others = {step: record for step, record in local.items() if step not in taken}
        mine = self._job.still_there(others, state.records)
        self._uploads.known.update({**state.records, **mine}, state.told)
        origins = [one for one in map(self._keys.origin, state.told.values()) if one is not None]
        self._uploads.numbering.go_past(max((one.sequence for one in origins), default=0))
        self.told = state.told
        self._uploads.known.sources = state.sources
        # Also what a run learned of that died before it came to it.
        same = {step: record for step, record in state.records.items() if local.get(step) == record}
        self._unfinished.learn({**same, **taken})
        if local or look_only:  # the files here have the times that this machine's steps have seen
            return taken
        try:
            restore_times(self._workspace, state.sources)
        except Exception as error:  # the times alone
            self._warn(f"{self._store.name}: the files did not all get their times back ({reason(error)})")
        return taken

    def pass_over(self) -> None:
        """Have what is kept from now on count as newer than all there is, without taking any of that over.

        :raises StoreError: the store fails, and it is required.
        """
        self._uploads.numbering.go_past(self._job.newest_sequence())

    def lost(self, records: Mapping[str, Record]) -> set[str]:
        """The done steps whose archives the store does not have any more: another machine has to do them again.

        :raises StoreError: the store fails, and it is required.
        """
        return self._job.lost(records)

    def restore(self, record: Record, acceptable: Callable[[str], Collection[str]], stay: Collection[str] = ()) -> None:
        """Put back what a step left: all of it, or nothing.

        Nothing at a path is as good as what was there before the step: it may have been there from an earlier try of
        it, and nothing is lost.

        :param acceptable: contents of a path, besides those the layer knows, that may be written over.
        :param stay: paths that stay as they are.
        :raises StoreError: it cannot be put back, for whatever reason.
        """
        if record.archive is None:
            raise StoreError("it was not kept")
        self._seen.forget()
        self._putting_back.put_back(
            record.archive,
            record.layer,
            self._workspace.root,
            lambda path: {"", *acceptable(path), *self.left_here.get(path, ())},
            stay,
        )

    def restore_progress(self, step: str, folder: Path) -> int | None:
        """Put back what an unfinished try on another machine left, all of it or nothing.

        :param folder: the step's own.
        :returns: bytes of what was put back, ``None`` where there is nothing to put back.
        :raises StoreError: it cannot be put back, for whatever reason.
        """
        return self._unfinished.restore(step, folder, self._seen.now)

    def look(self, step: str, digests: ContentDigests) -> None:
        """See what the workspace holds before a step runs.

        :param step: its id.
        """
        held = self._seen.now
        if held is None:
            held = self._seen.look(digests)
            if not self._uploads.known.sources:
                self._uploads.known.sources = sources_of(held)
        self._seen.start(step, held)

    def started(self, step: Step, record: Record) -> None:
        """A step runs again: what was kept of it as done is not handed on any more.

        Where it must not run twice, the store knows of its start before it starts.

        :param record: says that it runs.
        """
        known = self._uploads.known.of(step.id)
        if known is not None and known.status is Status.DONE:
            self._uploads.known.forget(step.id)
        if step.on_crash == "stop" and not self._uploads.off:
            parcel = Parcel(self._uploads.known.with_progress(record), self._uploads.next_name(step.id))
            self._uploads.put(parcel)
            if fault := self._uploads.wait_for(parcel, _ANNOUNCE):
                self._warn(f"step '{step.id}': another machine would not know that it has started: {fault}")

    def forget_look(self) -> None:
        """Something that no step answers for may have changed the workspace."""
        self._seen.forget()

    def changes(self, step: Step, declared: Layer, digests: ContentDigests) -> Layer:
        """The layer of a step that has just ended well.

        :param declared: what it declared and left, where it declared anything.
        """
        return self._seen.changes(step, declared, digests)

    def keep(self, record: Record) -> None:
        """Pack a finished step and see that it goes up; one that is too large is left out, as the user wants it.

        :raises StoreError: it cannot be packed, and the store is required.
        """
        self._finished.keep(record)

    def holds(self, record: Record) -> bool:
        """Whether other machines know that a step is done, with what it left here."""
        return self._finished.holds(record)

    def catch_up(self, step: Step, record: Record) -> str:
        """Have a step in the store that was done without it, as far as it is known what the step left.

        :returns: why it is not put there, or an empty text.
        :raises StoreError: it cannot be packed, and the store is required.
        """
        return self._finished.catch_up(step, record)

    def keep_unfinished(self, step: Step, job: Job, record: Record, folder: Path, *, stopping: bool) -> None:
        """See that a step that is not done goes up, with what its next try may continue from.

        :param folder: the step's own.
        :param stopping: whether no other step follows, so that packing may happen beside the end of the run.
        """
        if not self._uploads.off:
            self._unfinished.keep(step, job, record, folder, self._seen.before(step.id), stopping=stopping)

    def save_running(self, step: Step, job: Job, record: Record, folder: Path) -> str:
        """Have the progress of a running step in the store now; called from a thread of its own.

        :param record: says how the step would count if the machine died now.
        :returns: what became of it, as the end of a sentence.
        :raises StoreError: it is not there, and the store is required.
        """
        return self._unfinished.save(step, job, record, folder, self._seen.before(step.id))

    def finish(self, seconds: float, seconds_on_stop: float = 3.0) -> None:
        """Wait until all that is kept is in the store.

        :param seconds: the longest wait.
        :param seconds_on_stop: the longest wait from when a stop is requested.
        :raises StoreError: not everything got there, and the store is required.
        """
        self._uploads.finish(seconds, seconds_on_stop)
