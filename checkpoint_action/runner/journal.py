"""The durable local state of one job."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, StateError, StateWriteError, kind_of_write
from checkpoint_action.runner.appending import AppendedFile
from checkpoint_action.runner.durable import replace_file
from checkpoint_action.runner.statefile import (
    DamagedError,
    JournalReader,
    Snapshot,
    forgetting_line,
    journal_line,
    journal_of,
    read_snapshot,
    snapshot_pieces,
)
from checkpoint_action.store.folders import check_owner, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from checkpoint_action.model import Record
    from checkpoint_action.runner.lock import JobLock

__all__ = ["Journal", "Loaded", "StatePaths", "forget", "load"]


@dataclass(frozen=True, slots=True)
class StatePaths:
    """Where a job's state lies.

    :param folder: the state dir.
    """

    folder: Path
    job: str

    def _path(self, ending: str) -> Path:
        return self.folder / f".checkpoint-run-{self.job}{ending}"

    @property
    def snapshot(self) -> Path:
        """All records, readable."""
        return self._path(".json")

    @property
    def journal(self) -> Path:
        """One line a transition."""
        return self._path(".journal")

    @property
    def index(self) -> Path:
        """What is known of files; see :mod:`checkpoint_action.runner.digest_index`."""
        return self._path(".index")

    @property
    def answer(self) -> Path:
        """What ``plan`` has to say as long as nothing changes; see :mod:`checkpoint_action.runner.recall`."""
        return self._path(".plan")

    @property
    def logs(self) -> Path:
        """Folder of the steps' output, where no other place is asked for."""
        return self._path(".logs")

    @property
    def progress(self) -> Path:
        """Folder of the steps' own folders."""
        return self._path(".progress")

    @property
    def run(self) -> Path:
        """Folder that a run lends to its steps, for as long as it lasts."""
        return self._path(".run")

    @property
    def archives(self) -> Path:
        """Folder for archives of a store, while they are used."""
        return self._path(".archives")

    @property
    def fetched(self) -> Path:
        """Folder of what a ``pull`` has fetched so far."""
        return self._path(".fetched")

    @property
    def lock(self) -> Path:
        """What a run holds."""
        return self._path(".lock")

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file and folder of the job's state, there or not."""
        files = (self.snapshot, self.journal, self.index, self.answer, self.lock)
        return (*files, self.logs, self.progress, self.run, self.archives, self.fetched)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A job's state as read.

    :param warnings: lines a person should see.
    :param settled: whether the snapshot says it all, so that nothing needs to be written before going on.
    :param damaged_snapshot: whether the snapshot is to be moved aside.
    :param source: digests of what the snapshot and the journal held.
    """

    records: dict[str, Record] = field(default_factory=dict)
    sequence: int = 0
    warnings: tuple[str, ...] = ()
    settled: bool = False
    damaged_snapshot: bool = False
    source: tuple[bytes, ...] = field(default=(), compare=False, repr=False)


def load(paths: StatePaths, known: Loaded | None = None) -> Loaded:
    """Read a job's state; writes nothing.

    :param known: what was read before; that is it where the files hold the same.
    :raises StateError: it cannot be read, a newer version wrote it, or any of its files is another user's.
    """
    try:
        check_owner(paths.folder, paths.all)
    except PermissionError as error:
        raise StateError(f"cannot use {error.filename}: {error.strerror}; choose another --state-dir") from None
    warnings = []
    snapshot: Snapshot | None = None
    damaged = False
    data, lines = _read(paths.snapshot), _read(paths.journal)
    source = tuple(b"" if text is None else sha256(text).digest() for text in (data, lines))
    if known is not None and source == known.source:
        return known
    if data is not None:
        try:
            snapshot = read_snapshot(data, str(paths.snapshot))
        except DamagedError as error:
            damaged = True
            warnings.append(
                f"{Kind.STATE_DAMAGED.value}: {paths.snapshot} is damaged ({error}); using the journal beside it"
            )
    reader = JournalReader(snapshot, str(paths.journal))
    settled = snapshot is not None and data is not None and lines == journal_of(snapshot, data)
    if not settled:  # else it says what the snapshot says
        reader.read(lines or b"")
    if reader.damaged:
        warnings.append(
            f"{Kind.STATE_DAMAGED.value}: {paths.journal}: {reader.damaged} damaged line(s) left out; "
            "what they said runs again"
        )
    for path, job in ((paths.snapshot, snapshot.job if snapshot else ""), (paths.journal, reader.job)):
        if job and job != paths.job:
            raise StateError(
                f"{path} holds the state of the job '{job}'; use --job {job}, or remove the file", Kind.STATE_OF_ANOTHER
            )
    return Loaded(reader.records, reader.sequence, tuple(warnings), settled, damaged, source)


def _base_lines(snapshot: Snapshot) -> Iterator[bytes]:
    yield journal_line(snapshot.sequence, None, snapshot.job)
    for record in snapshot.records.values():
        yield journal_line(snapshot.sequence, record)


def _read(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe in its place would keep us for ever
            raise StateError(f"{path} is no file; remove it, or choose another --state-dir")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}; choose another --state-dir") from None


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
        self.order: tuple[str, Sequence[str]] | None = None

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

    def start(self, record: Record) -> None:
        """Record that a step starts; durable when this returns.

        :raises StateWriteError: it could not be recorded.
        """
        self._append(record, copies=2)

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
        replace_file(self._paths.snapshot, snapshot_pieces(self._paths.job, snapshot, self.order))
        replace_file(self._paths.journal, _base_lines(snapshot))
        self._settled = True

    def _move_aside(self) -> None:
        for number in range(1, 1000):
            target = Path(f"{self._paths.snapshot}.damaged-{number}")
            if not target.exists():
                self._paths.snapshot.replace(target)
                self._aside = False
                return
