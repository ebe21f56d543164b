"""A job's state as it is on the disk: where it lies, and what it says."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from hashlib import sha256
from typing import IO, TYPE_CHECKING

from checkpoint_action.errors import Kind, StateError
from checkpoint_action.runner.snapshot_rows import Digested, digest_of_file, read_pair
from checkpoint_action.runner.statefile import DamagedError, JournalReader, Snapshot, read_snapshot
from checkpoint_action.store.folders import check_owner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.model import Record
    from checkpoint_action.runner.snapshot_rows import Pair

__all__ = ["Loaded", "StatePaths", "load"]


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
    if known is not None and known.source == _source(paths):
        return known
    pair = read_pair(paths.snapshot, paths.journal)
    if pair is not None and pair.settled and pair.snapshot.job == paths.job:
        return Loaded(dict(pair.snapshot.records), pair.snapshot.sequence, settled=True, source=pair.digests)
    return _load_whole(paths, pair)


def _source(paths: StatePaths) -> tuple[bytes, ...] | None:
    """Digests of what the two files hold; ``None`` where one cannot be read."""
    try:
        return digest_of_file(paths.snapshot), digest_of_file(paths.journal)
    except OSError:
        return None


def _load_whole(paths: StatePaths, pair: Pair | None) -> Loaded:
    """A state of which not all is as a run that has ended leaves it.

    :param pair: what was read of it row by row, where that was possible.
    """
    warnings = []
    snapshot: Snapshot | None = None
    damaged = False
    data = None if pair is not None else _read(paths.snapshot)
    if pair is not None:
        snapshot, first = pair.snapshot, pair.digests[0]
    else:
        first = b"" if data is None else sha256(data).digest()
    if data is not None:
        try:
            snapshot = read_snapshot(data, str(paths.snapshot))
        except DamagedError as error:
            damaged = True
            warnings.append(
                f"{Kind.STATE_DAMAGED.value}: {paths.snapshot} is damaged ({error}); using the journal beside it"
            )
    reader = JournalReader(snapshot, str(paths.journal))
    second = _replay(reader, paths.journal)
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
    source = (first, second)
    return Loaded(reader.records, reader.sequence, tuple(warnings), damaged_snapshot=damaged, source=source)


def _replay(reader: JournalReader, path: Path) -> bytes:
    """Replay a journal, where there is one: a digest of it."""
    return _look_into(path, lambda file: _replayed(reader, file)) or b""


def _replayed(reader: JournalReader, file: IO[bytes]) -> bytes:
    lines = Digested(file)
    reader.read_from(lines)
    return lines.digest()


def _read(path: Path) -> bytes | None:
    return _look_into(path, lambda file: file.read())


def _look_into(path: Path, look: Callable[[IO[bytes]], bytes]) -> bytes | None:
    """What a look into a file gives; ``None`` where there is none.

    :raises StateError: it cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe in its place would keep us for ever
            raise StateError(f"{path} is no file; remove it, or choose another --state-dir")
        with path.open("rb") as file:
            return look(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}; choose another --state-dir") from None
