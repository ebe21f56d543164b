"""What goes up to a store, beside the work: one upload at a time, in order; what gathers meanwhile goes up at once."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.model import ArchiveRef, Status
from checkpoint_action.runner.archives import SLICE
from checkpoint_action.runner.sources import Source, sources_to_json
from checkpoint_action.runner.stop import StoppedError
from checkpoint_action.store.bundle import write_archive
from checkpoint_action.store.codec import record_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from checkpoint_action.model import Record
    from checkpoint_action.runner.keys import KeyScheme
    from checkpoint_action.store.base import Store

__all__ = ["Parcel", "Uploads"]

_APART = 1.1
"""Seconds between two uploads: act and Forgejo know the age of an entry to the second only, and of two of the same
second either may pass for the newest. What finishes meanwhile goes up together."""


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """A record on its way up, with the layers that belong to it.

    :param name: its layers' name in the archive.
    :param files: packed layers; removed once they have gone up.
    :param pack: gives it packed, when it is its turn, where that is not done yet; it may take long, and fail. Then the
        record goes up with the progress that was kept of its step before.
    :param awaited: whether somebody waits for it, and is told of such a failure.
    """

    record: Record
    name: str
    files: tuple[Path, ...] = ()
    pack: Callable[[], Parcel] | None = None
    awaited: bool = False

    def at(self, key: str) -> Record:
        """The record as it is told once its layers lie under a key."""
        if not self.files:
            return self.record
        where = ArchiveRef(key, self.name)
        if self.record.status is Status.DONE:
            return replace(self.record, archive=where)
        partial = self.record.partial
        return self.record if partial is None else replace(self.record, partial=replace(partial, archive=where))


class Uploads:
    """The queue, and the thread that empties it.

    An archive begins with the snapshot of all records, so the newest tells the whole state. No failure here fails a
    job: the store is then off for this run, said once.

    :param folder: a folder of our own.
    :param warn: told of what a person should know; also from the thread that uploads.
    :param kept: told of the steps that have reached the store, of the unfinished ones whose progress has, and of the
        archive's bytes, from that thread.
    :param required: whether a failing store is an error instead.
    :param is_stopping: whether a stop was requested, which ends every wait.
    :param off: why the store is left alone from the beginning.
    """

    def __init__(
        self,
        store: Store,
        keys: KeyScheme,
        folder: Path,
        *,
        warn: Callable[[str], None],
        kept: Callable[[tuple[str, ...], tuple[str, ...], int], None],
        required: bool,
        is_stopping: Callable[[], bool],
        off: str = "",
    ) -> None:
        self._store = store
        self._keys = keys
        self._folder = folder
        self._warn = warn
        self._kept = kept
        self._required = required
        self._is_stopping = is_stopping
        self._lock = threading.Condition()
        self.off = off
        self.sources: dict[str, Source] = {}
        self._records: dict[str, Record] = {}
        self._waiting: list[Parcel] = []
        self._busy: tuple[Parcel, ...] = ()
        self._faults: dict[str, str] = {}
        self._last_upload = -_APART
        self._closed = False
        self._names = 0
        self._archives = 0
        self._worker = threading.Thread(target=self._work, name="upload-checkpoints", daemon=True)
        self._worker.start()

    def know(self, records: dict[str, Record]) -> None:
        """Take over what the store tells of the job."""
        with self._lock:
            self._records.update(records)

    def forget(self, step: str) -> None:
        """What was kept of a step is not handed on any more."""
        with self._lock:
            self._records.pop(step, None)

    def known(self, step: str) -> Record | None:
        """What is handed on of a step."""
        with self._lock:
            return self._records.get(step)

    def with_known_progress(self, record: Record) -> Record:
        """A record of an unfinished step, with the progress that is handed on of it as it is."""
        known = self.known(record.step)
        return record if known is None else replace(record, partial=known.partial)

    def next_name(self, step: str) -> str:
        """A name that no other layer of this run has."""
        with self._lock:
            self._names += 1
            return f"{self._names:06d}-{step}"

    def put(self, parcel: Parcel) -> None:
        """Have a parcel go up, in the place of any of the same step that waits."""
        with self._lock:
            if self.off:
                return
            older = [one for one in self._waiting if one.record.step == parcel.record.step]
            self._waiting = [one for one in self._waiting if one not in older] + [parcel]
            self._lock.notify_all()
        for one in older:
            _remove(one.files)

    def wait_for(self, parcel: Parcel, seconds: float) -> str:
        """Wait until a parcel has gone up; why it has not, or an empty text. A stop ends the wait.

        :param seconds: the longest wait.
        """
        limit = time.monotonic() + seconds
        with self._lock:
            while parcel in self._waiting or parcel in self._busy:
                if self.off:
                    break
                if self._is_stopping():
                    return "the run is being stopped"
                if time.monotonic() >= limit:
                    return f"the store takes more than {seconds:g} s"
                self._lock.wait(SLICE)
            return self._faults.pop(parcel.name, "") or self.off

    def _work(self) -> None:
        while self._begin():
            try:
                packed = [parcel for parcel in map(self._packed, self._busy) if parcel is not None]
                self._pause()
                if batch := self._with_ready(packed):
                    self._upload(batch)
            except StoreError as error:
                self.switch_off(error, during_upload=True)
            except Exception as error:  # no fault of ours may cost the job, nor leave it waiting
                self.switch_off(StoreError(f"unexpected {type(error).__name__}: {error}"), during_upload=True)
            finally:
                with self._lock:
                    self._busy = ()
                    self._lock.notify_all()

    def _begin(self) -> bool:
        """Wait for something to do; whether there is. Where nothing is packed yet, take what is to be.

        What is packed goes first, so that finished steps need not wait until an unfinished one is.
        """
        with self._lock:
            while not self._waiting and not self._closed:
                self._lock.wait()
            if all(parcel.pack is not None for parcel in self._waiting):
                self._busy, self._waiting = tuple(self._waiting), []
            return not self.off and bool(self._waiting or self._busy)

    def _pause(self) -> None:
        """Wait until it is time for the next upload."""
        with self._lock:
            while (early := self._last_upload + _APART - time.monotonic()) > 0 and not self.off:
                self._lock.wait(early)

    def _with_ready(self, packed: list[Parcel]) -> list[Parcel]:
        """What is to go up now: also what waits and is packed."""
        with self._lock:
            if self.off:
                return []
            ready = [parcel for parcel in self._waiting if parcel.pack is None]
            self._waiting = [parcel for parcel in self._waiting if parcel.pack is not None]
            self._busy = (*self._busy, *ready)
        newer = {parcel.record.step for parcel in ready}
        for parcel in packed:
            if parcel.record.step in newer:
                _remove(parcel.files)
        return [*(parcel for parcel in packed if parcel.record.step not in newer), *ready]

    def _packed(self, parcel: Parcel) -> Parcel | None:
        """A parcel once it is packed; ``None`` where it cannot be and somebody waits for it, who is told."""
        try:
            return parcel if parcel.pack is None else parcel.pack()
        except (StoreError, OSError, StoppedError) as error:
            fault = str(error) or "the run is being stopped"
        if parcel.awaited:
            with self._lock:
                self._faults[parcel.name] = fault
            return None
        if not self.off:
            self._warn(f"step '{parcel.record.step}': what it left unfinished is not kept: {fault}")
        return Parcel(self.with_known_progress(parcel.record), parcel.name)

    def _upload(self, batch: list[Parcel]) -> None:
        with self._lock:
            self._archives += 1
            key = self._keys.new(batch[-1].record.step, self._archives)
            added = {parcel.record.step: parcel.at(key) for parcel in batch}
            records = {**self._records, **added}
        header = {
            "job": self._keys.job,
            "records": {step: record_to_json(record) for step, record in records.items()},
            "sources": sources_to_json(self.sources),
        }
        archive = self._folder / f"{batch[-1].name}.tar.zst"
        files = [file for parcel in batch for file in parcel.files]
        try:
            write_archive(header, files, archive)
            size = archive.stat().st_size
            self._store.save(key, archive)
        except OSError as error:
            raise StoreError(f"cannot write the archive: {error}") from error
        finally:
            _remove((archive, *files))
        with self._lock:
            self._records.update(added)
            self._last_upload = time.monotonic()
        told = [parcel.record for parcel in batch if parcel.files]
        if told:
            done = tuple(record.step for record in told if record.status is Status.DONE)
            self._kept(done, tuple(record.step for record in told if record.status is not Status.DONE), size)

    def switch_off(self, error: StoreError, *, during_upload: bool = False) -> None:
        """Leave the store alone from now on.

        :raises StoreError: it is required.
        """
        with self._lock:
            first, self.off = not self.off, self.off or str(error)
            self._waiting.clear()
        if self._required and not during_upload:
            raise error
        if first:
            self._warn(f"{error}; going on without the store: steps of this run are not kept for other machines")

    def finish(self, seconds: float, seconds_on_stop: float = 3.0) -> None:
        """Wait until all is in the store.

        :param seconds: the longest wait.
        :param seconds_on_stop: the longest wait from when a stop is requested.
        :raises StoreError: not everything got there, and the store is required.
        """
        begin = time.monotonic()
        limit = seconds
        stopping = False
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            while (self._waiting or self._busy) and not self.off:
                if not stopping and self._is_stopping():
                    stopping = True
                    limit = min(limit, time.monotonic() - begin + seconds_on_stop)
                left = begin + limit - time.monotonic()
                if left <= 0:
                    break
                self._lock.wait(min(left, SLICE))
            left_behind = () if self.off else (*self._busy, *self._waiting)
            self.off = self.off or ("the end of the run" if left_behind else "")
            failed = self.off
            self._lock.notify_all()
        if left_behind:
            lost = ", ".join(_in_words(parcel) for parcel in left_behind)
            self._warn(f"{self._store.name}: not stored within {limit:.4g} s, so another machine does it again: {lost}")
        if failed and self._required:
            raise StoreError(f"{self._store.name}: not everything was stored: {failed}")


def _in_words(parcel: Parcel) -> str:
    step = parcel.record.step
    return step if parcel.record.status is Status.DONE else f"what {step} has so far"


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink()
