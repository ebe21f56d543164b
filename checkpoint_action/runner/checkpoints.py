"""Finished steps kept in a store, and put back from it."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError, StoreError
from checkpoint_action.model import AUTO, ArchiveRef, Layer
from checkpoint_action.runner.archives import SLICE, Archives, StoreStoppedError, reason
from checkpoint_action.runner.scan import Scan, difference
from checkpoint_action.runner.sources import Source, restore_times, sources_of, sources_to_json
from checkpoint_action.store.apply import apply_layer
from checkpoint_action.store.base import Found
from checkpoint_action.store.bundle import pack_layer, unpack_layer, write_archive
from checkpoint_action.store.codec import record_to_json
from checkpoint_action.store.paths import check_layer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from checkpoint_action.model import Record, Step
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.keys import KeyScheme
    from checkpoint_action.runner.scan import Workspace
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store.base import Store

__all__ = ["Checkpoints"]

_APART = 1.1
"""Seconds between two uploads: act and Forgejo know the age of an entry to the second only, and of two of the same
second either may pass for the newest. What finishes meanwhile goes up together."""


@dataclass(frozen=True, slots=True)
class _Packed:
    """A finished step waiting to go up."""

    record: Record
    name: str
    file: Path


class Checkpoints:
    """One job's checkpoints in one store.

    Packing happens at once, as the next step may change the files. Uploads go on beside the steps: one at a time, in
    order, and what finishes meanwhile goes up together. An archive begins with the snapshot of all records, so the
    newest tells the whole state. No failure here fails a job: the store is then off for this run, said once.

    :param folder: an empty folder of our own, on the workspace's file system where possible.
    :param identity: what tells the job from others; an archive that says otherwise is not ours.
    :param warn: told of what a person should know; also from the thread that uploads.
    :param kept: told of the steps that have reached the store and the archive's bytes, from that thread.
    :param required: whether a failing store is an error instead.
    :param stop: ends every wait for the store.
    :param restore_seconds: time that a run may wait for what it reads from the store, all in all.
    """

    def __init__(
        self,
        store: Store,
        keys: KeyScheme,
        folder: Path,
        workspace: Workspace,
        *,
        warn: Callable[[str], None],
        kept: Callable[[tuple[str, ...], int], None] = lambda _steps, _size: None,
        required: bool = False,
        stop: StopRequest | None = None,
        restore_seconds: float = 900.0,
    ) -> None:
        self._store = store
        self._keys = keys
        self._folder = folder
        self._workspace = workspace
        self._warn = warn
        self._kept = kept
        self._required = required
        self._lock = threading.Condition()
        self._off = ""
        self._records: dict[str, Record] = {}
        self._sources: dict[str, Source] = {}
        self._waiting: list[_Packed] = []
        self._busy = False
        self._last_upload = -_APART
        self._closed = False
        self._sequence = 0
        self._archives = Archives(
            store,
            keys,
            folder,
            warn=warn,
            failed=self._switch_off,
            is_off=lambda: self._off,
            stop=stop,
            seconds=restore_seconds,
        )
        self._before: Scan | None = None
        self._unseen: set[str] = set()
        self._worker = threading.Thread(target=self._upload_all, name="upload-checkpoints", daemon=True)
        self._worker.start()

    def learn(self, steps: Sequence[str] = ()) -> dict[str, Record]:
        """The records of steps that another machine has finished.

        Where the newest archive is not usable, the newest usable one of those that end with one of ``steps`` is taken.

        :param steps: ids of the job's steps.
        :raises StoreError: the store fails, and it is required.
        """
        try:
            state = self._archives.newest_usable(steps)
        except StoreStoppedError:
            return {}
        except StoreError as error:
            self._switch_off(error)
            return {}
        except Exception as error:  # nothing that a store holds may cost the job
            self._warn(f"{self._store.name}: no checkpoint is usable ({reason(error)}); starting afresh")
            return {}
        if state is None:
            return {}
        with self._lock:
            self._records.update(state.records)
            self._sources = state.sources
        try:
            restore_times(self._workspace, state.sources)
        except Exception as error:  # the times alone
            self._warn(f"{self._store.name}: the files did not all get their times back ({reason(error)})")
        return dict(state.records)

    def restore(self, record: Record, acceptable: Callable[[str], Collection[str]]) -> None:
        """Put back what a step left: all of it, or nothing.

        :param acceptable: contents of a path, besides those the layer knows, that may be written over.
        :raises StoreError: it cannot be put back, for whatever reason.
        """
        if record.archive is None:
            raise StoreError("it was not kept")
        side = self._folder / "side"
        self._before = None
        try:
            check_layer(record.layer)
            archive = self._archives.fetch(Found(record.archive.key))
            unpack_layer(archive, record.archive.layer, record.layer, side)
            apply_layer(side, self._workspace.root, record.layer, acceptable)
        except StoreError:
            raise
        except Exception as error:  # nothing that a store holds may cost the job
            raise StoreError(reason(error)) from error
        finally:
            shutil.rmtree(side, ignore_errors=True)

    def look(self, digests: ContentDigests) -> None:
        """See what the workspace holds before a step runs."""
        if self._before is None:
            self._before = self._workspace.scan(digests)
            if not self._sources:
                self._sources = sources_of(self._before)

    def started(self, step: str) -> None:
        """A step runs again: what was kept of it before is not handed on any more."""
        with self._lock:
            self._records.pop(step, None)

    def forget_look(self) -> None:
        """Something that no step answers for may have changed the workspace."""
        self._before = None

    def changes(self, step: Step, declared: Layer, digests: ContentDigests) -> Layer:
        """The layer of a step that has just ended well.

        :param declared: what it declared and left, where it declared anything.
        """
        before = Scan() if self._before is None else self._before
        self._unseen = set()
        if step.outputs == AUTO:
            self._before = self._workspace.scan(digests)
            self._unseen = self._before.closed - before.closed
            return difference(before, self._before)
        self._before = None
        known = {entry.path: before[entry.path].content for entry in declared.entries if entry.path in before}
        return replace(declared, before=known)

    def keep(self, record: Record) -> None:
        """Pack a finished step and see that it goes up.

        :raises StoreError: it cannot be packed, and the store is required.
        """
        if self._off:
            return
        self._sequence += 1
        name = f"{self._sequence:06d}-{record.step}"
        file = self._folder / f"{name}.layer"
        try:
            self._pack(record, name, file)
        except (BundleError, OSError) as error:
            if self._required:
                raise StoreError(f"step '{record.step}' could not be packed: {error}") from error
            self._warn(f"step '{record.step}' is done but not kept for other machines: {error}")
            with self._lock:
                self._records.pop(record.step, None)  # what another machine kept of it is not what it left now
            return
        with self._lock:
            self._waiting.append(_Packed(record, name, file))
            self._lock.notify_all()

    def _pack(self, record: Record, name: str, file: Path) -> None:
        if self._unseen:
            raise BundleError(f"it left {min(self._unseen)}, which we may not look into")
        pack_layer(self._workspace.root, name, record.layer, file)

    def _upload_all(self) -> None:
        while True:
            with self._lock:
                while not self._waiting and not self._closed:
                    self._lock.wait()
                while self._waiting and (early := self._last_upload + _APART - time.monotonic()) > 0:
                    self._lock.wait(early)
                if not self._waiting or self._off:
                    return
                batch, self._waiting = self._waiting, []
                self._busy = True
            try:
                self._upload(batch)
            except StoreError as error:
                self._switch_off(error, during_upload=True)
            except Exception as error:  # no fault of ours may cost the job, nor leave it waiting
                self._switch_off(StoreError(f"unexpected {type(error).__name__}: {error}"), during_upload=True)
            finally:
                with self._lock:
                    self._busy = False
                    self._last_upload = time.monotonic()
                    self._lock.notify_all()

    def _upload(self, batch: list[_Packed]) -> None:
        key = self._keys.new(batch[-1].record.step, self._sequence)
        added = {one.record.step: replace(one.record, archive=ArchiveRef(key, one.name)) for one in batch}
        with self._lock:
            records = {**self._records, **added}
        header = {
            "job": self._keys.job,
            "records": {step: record_to_json(record) for step, record in records.items()},
            "sources": sources_to_json(self._sources),
        }
        archive = self._folder / f"{batch[-1].name}.tar.zst"
        try:
            write_archive(header, [one.file for one in batch], archive)
            size = archive.stat().st_size
            self._store.save(key, archive)
        except OSError as error:
            raise StoreError(f"cannot write the archive: {error}") from error
        finally:
            archive.unlink(missing_ok=True)
            for one in batch:
                one.file.unlink(missing_ok=True)
        with self._lock:
            self._records.update(added)
        self._kept(tuple(one.record.step for one in batch), size)

    def _switch_off(self, error: StoreError, *, during_upload: bool = False) -> None:
        with self._lock:
            first, self._off = not self._off, self._off or str(error)
            self._waiting.clear()
        if self._required and not during_upload:
            raise error
        if first:
            self._warn(f"{error}; going on without the store: steps of this run are not kept for other machines")

    def finish(self, seconds: float, seconds_on_stop: float = 3.0) -> None:
        """Wait until all that is kept is in the store.

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
            while (self._waiting or self._busy) and not self._off:
                if not stopping and self._archives.is_stopping():
                    stopping = True
                    limit = min(limit, time.monotonic() - begin + seconds_on_stop)
                left = begin + limit - time.monotonic()
                if left <= 0:
                    break
                self._lock.wait(min(left, SLICE))
            unfinished = bool(self._waiting or self._busy) and not self._off
            self._off = self._off or ("the end of the run" if unfinished else "")
            failed = self._off
        if unfinished:
            self._warn(
                f"{self._store.name}: the last checkpoint was not stored within {limit:.4g} s; its steps run again"
            )
        if failed and self._required:
            raise StoreError(f"{self._store.name}: not everything was stored: {failed}")
