"""Finished steps kept in a store, and put back from it."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from checkpoint_action.errors import BundleError, StoreError, StoreMissingError
from checkpoint_action.model import AUTO, ArchiveRef, Layer, Status
from checkpoint_action.runner.scan import Scan, difference
from checkpoint_action.runner.sources import (
    Source,
    restore_times,
    sources_from_json,
    sources_of,
    sources_to_json,
)
from checkpoint_action.store.apply import apply_layer
from checkpoint_action.store.base import Found
from checkpoint_action.store.bundle import pack_layer, read_header, unpack_layer, write_archive
from checkpoint_action.store.codec import record_from_json, record_to_json
from checkpoint_action.store.paths import check_layer, check_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from checkpoint_action.model import Record, Step
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.keys import KeyScheme, Origin
    from checkpoint_action.runner.scan import Workspace
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store.base import Store

__all__ = ["Checkpoints", "StoreStoppedError"]

_T = TypeVar("_T")

_APART = 1.1
"""Seconds between two uploads: act and Forgejo know the age of an entry to the second only, and of two of the same
second either may pass for the newest. What finishes meanwhile goes up together."""

_SLICE = 0.05
"""Seconds after which whoever waits for the store looks whether a stop was requested."""

_MOST_LOOKUPS = 100
_MOST_NAMED = 3
_LONGEST_REASON = 300


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
        self._stop = stop
        self._seconds = self._seconds_left = restore_seconds
        self._lock = threading.Condition()
        self._off = ""
        self._records: dict[str, Record] = {}
        self._sources: dict[str, Source] = {}
        self._waiting: list[_Packed] = []
        self._busy = False
        self._last_upload = -_APART
        self._closed = False
        self._sequence = 0
        self._archives: dict[str, Path] = {}
        self._unusable: dict[str, str] = {}
        self._fetched = 0
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
            state = self._newest_usable(steps)
        except StoreStoppedError:
            return {}
        except StoreError as error:
            self._switch_off(error)
            return {}
        except Exception as error:  # nothing that a store holds may cost the job
            self._warn(f"{self._store.name}: no checkpoint is usable ({_reason(error)}); starting afresh")
            return {}
        if state is None:
            return {}
        with self._lock:
            self._records.update(state.records)
            self._sources = state.sources
        try:
            restore_times(self._workspace, state.sources)
        except Exception as error:  # the times alone
            self._warn(f"{self._store.name}: the files did not all get their times back ({_reason(error)})")
        return dict(state.records)

    def _newest_usable(self, steps: Sequence[str]) -> _State | None:
        newest = self._ask(lambda: self._store.find(self._keys.prefix))
        if newest is None:
            return None
        state = self._state_in(newest)
        if state is not None:
            return state
        then = "starting afresh"
        for found in self._older_than(newest, steps):
            state = self._state_in(found)
            if state is not None:
                then = f"using an older checkpoint, {found.key}"
                break
        faults = [f"{_line(key)} is not usable ({fault})" for key, fault in self._unusable.items()]
        more = f" and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
        self._warn(f"{self._store.name}: {', '.join(faults[:_MOST_NAMED])}{more}; {then}")
        return state

    def _state_in(self, found: Found) -> _State | None:
        """What an archive tells; ``None`` where it is not usable, which is noted."""
        if found.key in self._unusable:
            return None
        try:
            return _state_of(read_header(self._archive(found)), self._keys.job)
        except (StoreMissingError, BundleError) as error:
            fault = _reason(error)
        except StoreError:
            raise
        except Exception as error:  # whatever is in there, it is not what we wrote
            fault = _reason(error)
        self._unusable[found.key] = fault
        path = self._archives.pop(found.key, None)
        if path is not None:
            with suppress(OSError):
                path.unlink()
        return None

    def _older_than(self, newest: Found, steps: Sequence[str]) -> list[Found]:
        """The archives that are not yet known to be unusable, newest first.

        A store only tells the newest entry of a prefix, so each step is asked for.
        """
        origin = self._keys.origin(newest.key)
        older: dict[str, tuple[Origin, Found]] = {}
        asked = 0
        for step in _nearest_first(steps, origin.step if origin else ""):
            for prefix in (self._keys.of_step(step), self._keys.of_step_in_run(step)):
                if asked == _MOST_LOOKUPS:
                    break
                asked += 1
                found = self._ask(partial(self._store.find, prefix))
                if found is None:
                    break
                origin = self._keys.origin(found.key)
                if origin is not None and found.key not in self._unusable:
                    older[found.key] = (origin, found)
                if origin is not None and origin.step == step.lower():
                    break  # else it is of a step whose id goes on after a hyphen, and may hide this one's
        return [found for _origin, found in sorted(older.values(), key=lambda pair: pair[0], reverse=True)]

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
            archive = self._archive(Found(record.archive.key))
            unpack_layer(archive, record.archive.layer, record.layer, side)
            apply_layer(side, self._workspace.root, record.layer, acceptable)
        except StoreError:
            raise
        except Exception as error:  # nothing that a store holds may cost the job
            raise StoreError(_reason(error)) from error
        finally:
            shutil.rmtree(side, ignore_errors=True)

    def _archive(self, found: Found) -> Path:
        """The archive on this machine.

        :raises StoreMissingError: it is gone, or is known to be unusable.
        :raises StoreError: it does not come; the store is then off, so that nothing else waits for it.
        """
        path = self._archives.get(found.key)
        if path is not None:
            return path
        if found.key in self._unusable:
            raise StoreMissingError(self._unusable[found.key])
        if self._off:
            raise StoreError(self._off)
        path = self._folder / f"fetched-{self._fetched}.tar.zst"
        self._fetched += 1
        try:
            self._ask(partial(self._store.fetch, found, path))
        except StoreMissingError as error:
            self._unusable[found.key] = _reason(error)
            raise
        except StoreStoppedError:
            raise
        except StoreError as error:
            self._switch_off(error)
            raise
        self._archives[found.key] = path
        return path

    def _ask(self, call: Callable[[], _T]) -> _T:
        """What the store answers; it is left alone when a stop is requested, or when all the time for it is used up.

        :raises StoreError: it fails, in whatever way.
        """
        answers: list[_T] = []
        failures: list[BaseException] = []
        ended = threading.Event()

        def work() -> None:
            try:
                answers.append(call())
            except BaseException as error:  # raised again where somebody waits
                failures.append(error)
            ended.set()

        begin = time.monotonic()
        if self._is_stopping():
            raise StoreStoppedError(f"{self._store.name}: stopped")
        threading.Thread(target=work, name="ask the store", daemon=True).start()
        try:
            while not ended.wait(_SLICE):
                if self._is_stopping():
                    raise StoreStoppedError(f"{self._store.name}: stopped")
                if time.monotonic() - begin >= self._seconds_left:
                    raise StoreError(f"{self._store.name}: reading from it takes more than {self._seconds:g} s")
        finally:
            self._seconds_left -= time.monotonic() - begin
        if not failures:
            return answers[0]
        if isinstance(failures[0], StoreError):
            raise failures[0]
        raise StoreError(f"{self._store.name}: {_reason(failures[0])}") from failures[0]

    def _is_stopping(self) -> bool:
        return self._stop is not None and self._stop.signum is not None

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
                if not stopping and self._is_stopping():
                    stopping = True
                    limit = min(limit, time.monotonic() - begin + seconds_on_stop)
                left = begin + limit - time.monotonic()
                if left <= 0:
                    break
                self._lock.wait(min(left, _SLICE))
            unfinished = bool(self._waiting or self._busy) and not self._off
            self._off = self._off or ("the end of the run" if unfinished else "")
            failed = self._off
        if unfinished:
            self._warn(
                f"{self._store.name}: the last checkpoint was not stored within {limit:.4g} s; its steps run again"
            )
        if failed and self._required:
            raise StoreError(f"{self._store.name}: not everything was stored: {failed}")


class StoreStoppedError(StoreError):
    """A stop was requested meanwhile; the store may be as well as ever."""


@dataclass(frozen=True, slots=True)
class _State:
    """What an archive's header tells."""

    records: dict[str, Record]
    sources: dict[str, Source]


def _state_of(header: dict[str, Any], job: str) -> _State:
    """Read a header, trusting nothing in it.

    :raises BundleError: it is another job's, or a path leads out of the workspace.
    :raises ValueError: it is something else.
    """
    if header.get("job") != job:
        raise BundleError("it is another job's")
    rows = header.get("records")
    if not isinstance(rows, dict):
        raise ValueError("records: must be an object")  # noqa: TRY004  # bad data, not a bug
    records = {step: record_from_json(value) for step, value in rows.items()}
    for record in records.values():
        check_layer(record.layer)
    sources = sources_from_json(header.get("sources", []))
    return _State(
        {step: record for step, record in records.items() if record.status is Status.DONE and record.step == step},
        {path: source for path, source in sources.items() if _is_inside(path)},
    )


def _is_inside(path: str) -> bool:
    try:
        check_path(path)
    except BundleError:
        return False
    return True


def _nearest_first(steps: Sequence[str], last: str) -> list[str]:
    """The steps in the order in which their archives are likely to be the newest, where ``last`` had the newest."""
    lower = [step.lower() for step in steps]
    position = lower.index(last) if last in lower else len(lower) - 1
    return [*lower[position::-1], *lower[position + 1 :]] if lower else []


def _line(text: str) -> str:
    """Text from elsewhere, fit for one line of a log."""
    return ascii(text)[1:-1] if not text.isprintable() else text


def _reason(error: BaseException) -> str:
    text = _line(" ".join(str(error).split())[:_LONGEST_REASON])
    expected = isinstance(error, (StoreError, OSError, ValueError)) and text
    return text if expected else f"unexpected {type(error).__name__}: {text}"
