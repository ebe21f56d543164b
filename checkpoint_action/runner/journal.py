"""The durable local state of one job."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import StateWriteError, kind_of_write
from checkpoint_action.runner.appending import AppendedFile
from checkpoint_action.runner.durable import replace_file
from checkpoint_action.runner.loading import Loaded, StatePaths, load
from checkpoint_action.runner.statefile import Snapshot, forgetting_line, journal_line, snapshot_pieces
from checkpoint_action.store.folders import sync_folder

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from checkpoint_action.model import Record
    from checkpoint_action.runner.lock import JobLock

__all__ = ["Journal", "Loaded", "StatePaths", "forget", "load"]


def _base_lines(snapshot: Snapshot) -> Iterator[bytes]:
    yield journal_line(snapshot.sequence, None, snapshot.job)
    for record in snapshot.records.values():
        yield journal_line(snapshot.sequence, record)


def _digested(pieces: Iterator[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def forget(paths: StatePaths) -> bool:
    """Remove a job's state (the caller holds its lock).

    :returns: whether there was any.
    :raises StateWriteError: it cannot be removed.
    """
    import shutil  # noqa: PLC0415  # most verbs forget nothing

    from checkpoint_action.runner.progress import discard  # noqa: PLC0415

    discard(paths.progress)  # first, so that no step that is forgotten ever goes on from it
    found = False
    for path in (paths.snapshot, paths.journal, paths.index, paths.answer):
        try:
            path.unlink()
            found = True
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StateWriteError(f"cannot remove {path}: {error.strerror}", kind_of_write(error)) from None
    for folder in (paths.logs, paths.archives, paths.fetched):
        shutil.rmtree(folder, ignore_errors=True)
    sync_folder(paths.folder)
    return found


class Journal:
    """Records transitions so that a step once recorded stays so.

    The cost of recording a step does not grow with the number of steps: the snapshot is written at the start (where
    it must be) and at the end, a line in between. The journal begins with all that the snapshot says, so that either
    file alone is enough. The caller holds the job's lock.

    :param lock: that lock, taken anew when somebody has removed its file.
    :param lost: told once when the state cannot be written, which then is no error: the run goes on without.
    :ivar order: the mark of the job file, and the ids of its steps in order, for who looks at the snapshot alone.
    """

    def __init__(
        self,
        paths: StatePaths,
        loaded: Loaded,
        *,
        lock: JobLock | None = None,
        lost: Callable[[str], None] | None = None,
    ) -> None:
        self._paths = paths
        self._lock = lock
        self._lost = lost
        self._given_up = False
        self.records: dict[str, Record] = dict(loaded.records)
        self._sequence = loaded.sequence
        self._file: AppendedFile | None = None
        self._settled = loaded.settled
        self._aside = loaded.damaged_snapshot
        self._source = loaded.source
        self.order: tuple[str, Sequence[str]] | None = None

    @property
    def loaded(self) -> Loaded:
        """What a look at the files says, as long as nobody else has written to them; not while it is open."""
        return Loaded(self.records, self._sequence, settled=self._settled, source=self._source)

    def open(self) -> None:
        """Make ready to record.

        :raises StateWriteError: the state folder cannot be written; what it held is as it was.
        """
        try:
            if self._aside:
                self._move_aside()
            if not self._settled:
                self._fold()
            self._file = AppendedFile(self._paths.journal)
        except OSError as error:
            self._fail(
                f"cannot write the state in {self._paths.folder}: {error.strerror}; choose another --state-dir", error
            )

    def start(self, record: Record, *, sync: bool = True) -> None:
        """Record that a step starts; durable when this returns.

        :param sync: see :meth:`finish`.
        :raises StateWriteError: it could not be recorded.
        """
        self._append(record, copies=2, sync=sync)

    def finish(self, record: Record, *, sync: bool = True) -> None:
        """Record how a step ended; durable when this returns.

        :param sync: whether to wait for the disk; else it is durable with the next step's start or :meth:`sync`.
        :raises StateWriteError: it could not be recorded.
        """
        self._append(record, copies=1, sync=sync)

    def sync(self) -> None:
        """Have all that was recorded durable.

        :raises StateWriteError: it did not get to the disk.
        """
        if self._file is None or self._file.is_synced:
            return
        try:
            self._file.sync()
        except OSError as error:
            self._fail(f"what was recorded last did not get into {self._paths.journal}: {error.strerror}", error)

    def _append(self, record: Record, copies: int, *, sync: bool = True) -> None:
        if self._file is None and not self._given_up:
            raise StateWriteError("the journal is not open")
        self._sequence += 1
        self._settled = False
        before = self.records.get(record.step)
        self.records[record.step] = record
        if self._file is None:
            return
        try:
            self._file.append(journal_line(self._sequence, record) * copies, sync=sync)
            self._stay_in_place(self._file)
        except OSError as error:
            if self._lost is None:
                self._put_back(record.step, before)
            self._fail(
                f"step '{record.step}': its {record.status.value} could not be recorded in {self._paths.journal}: "
                f"{error.strerror}; the state before it is intact",
                error,
            )

    def _put_back(self, step: str, before: Record | None) -> None:
        if before is None:
            del self.records[step]
        else:
            self.records[step] = before

    def _stay_in_place(self, file: AppendedFile) -> None:
        """See that what was written can be found again: a clean-up of the folder may have removed the files.

        :raises OSError: they cannot be made anew.
        :raises LockHeldError: another run has begun meanwhile.
        """
        if file.is_in_place():
            return
        if self._lock is not None:
            self._lock.renew()
        self._fold()
        self._file = AppendedFile(self._paths.journal)
        file.close()

    def _fail(self, text: str, cause: OSError) -> None:
        """The state cannot be written: an error, or where that is not wanted one line.

        :raises StateWriteError: it is an error.
        """
        failure = StateWriteError(text, kind_of_write(cause))
        if self._lost is None:
            raise failure
        if not self._given_up:
            self._lost(f"{failure.told}; going on without")
        self._given_up = True
        if self._file is not None:
            self._file.close()
            self._file = None

    def forget(self, steps: Collection[str]) -> None:
        """Take away what is recorded of steps; durable when this returns, and the snapshot is written with the close.

        The snapshot goes first, so that there is never a file that still tells of them beside one that does not: the
        journal alone holds everything.

        :raises StateWriteError: it could not be recorded.
        """
        if self._file is None:
            raise StateWriteError("the journal is not open")
        self._sequence += 1
        self._settled = False
        try:
            self._paths.snapshot.unlink(missing_ok=True)
            sync_folder(self._paths.folder)
            self._file.append(forgetting_line(self._sequence, steps) * 2)
        except OSError as error:
            self._fail(
                f"what is recorded of {', '.join(steps)} could not be taken out of {self._paths.journal}: "
                f"{error.strerror}; the state before it is intact",
                error,
            )
        for step in steps:
            self.records.pop(step, None)

    def merge(self, records: Mapping[str, Record]) -> None:
        """Take over records from elsewhere; durable when this returns, where the journal is open.

        :raises StateWriteError: they could not be recorded.
        """
        if not records:
            return
        self.records.update(records)
        self._settled = False
        if self._file is None:
            return
        try:
            self._fold()
            journal = AppendedFile(self._paths.journal)
        except OSError as error:
            self._fail(f"cannot write the state in {self._paths.folder}: {error.strerror}", error)
        else:
            self._file.close()
            self._file = journal

    def close(self) -> None:
        """Fold the journal into the snapshot.

        :raises StateWriteError: that could not be written; the journal still holds everything.
        """
        if self._file is None:
            return
        self._file.close()
        self._file = None
        if self._settled:
            return
        try:
            self._fold()
        except OSError as error:
            beside = "; the journal beside it holds the state" if self._paths.journal.exists() else ""
            self._fail(f"cannot write {self._paths.snapshot}: {error.strerror}{beside}", error)

    def _fold(self) -> None:
        snapshot = Snapshot(self._sequence, self.records, self._paths.job)
        digests = sha256(), sha256()
        pieces = snapshot_pieces(self._paths.job, snapshot, self.order)
        replace_file(self._paths.snapshot, _digested(pieces, digests[0]))
        replace_file(self._paths.journal, _digested(_base_lines(snapshot), digests[1]))
        self._source = tuple(digest.digest() for digest in digests)
        self._settled = True

    def _move_aside(self) -> None:
        for number in range(1, 1000):
            target = Path(f"{self._paths.snapshot}.damaged-{number}")
            if not target.exists():
                self._paths.snapshot.replace(target)
                self._aside = False
                return
