"""What goes up to a store, beside the work: one upload at a time, in order; what gathers meanwhile goes up at once."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import StoreError
from checkpoint_action.model import Status
from checkpoint_action.runner import sending
from checkpoint_action.runner.archives import SLICE
from checkpoint_action.runner.growing import GivenUpError, Growing
from checkpoint_action.runner.known import Known
from checkpoint_action.runner.numbering import Numbering
from checkpoint_action.runner.parcels import Parcel, remove
from checkpoint_action.runner.stop import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from checkpoint_action.model import Record
    from checkpoint_action.runner.keys import KeyScheme
    from checkpoint_action.store.base import Store

__all__ = ["Uploads"]

_APART = 1.1
"""Seconds between two uploads: act and Forgejo know the age of an entry to the second only, and of two of the same
second either may pass for the newest. What finishes meanwhile goes up together."""


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
    :param signing_key: what archives are signed with, if they are.
    :ivar known: what is handed on of each step.
    :ivar numbering: what gives the archives their keys.
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
        signing_key: bytes | None = None,
    ) -> None:
        self._store = store
        self._folder = folder
        self._warn = warn
        self._kept = kept
        self._required = required
        self._is_stopping = is_stopping
        self.known = Known(keys.job, signing_key)
        self.numbering = Numbering(keys)
        self._lock = threading.Condition()
        self.off = off
        self._waiting: list[Parcel] = []
        self._busy: tuple[Parcel, ...] = ()
        self._growing: list[Growing] = []
        self._streamed: Growing | None = None
        self._faults: dict[str, str] = {}
        self._last_upload = -_APART
        self._is_failing = False
        self._closed = False
        self._names = 0
        self._worker = threading.Thread(target=self._work, name="upload-checkpoints", daemon=True)
        self._worker.start()

    def next_name(self, step: str) -> str:
        """A name that no other layer of this run has."""
        with self._lock:
            self._names += 1
            return f"{self._names:06d}-{step}"

    @contextmanager
    def growing(self, parcel: Parcel) -> Iterator[Callable[[int], None]]:
        """Have a parcel go up whose one file is packed in the block; begin with it meanwhile, where it is large.

        Gives what is to be told how many of the file's first bytes are final. Nobody waits in it for the store. Where
        the block is left by an exception, nothing of the parcel goes up.
        """
        one = Growing(parcel, self._lock, lambda: bool(self.off))
        with self._lock:
            self._growing.append(one)
        is_packed = False
        try:
            yield one.grown
            is_packed = True
        finally:
            with self._lock:
                self._growing.remove(one)
                one.settle(is_packed=is_packed)
                streamed = one is self._streamed and is_packed and not self.off
                if streamed:
                    self._busy = (*self._busy, parcel)
        if not streamed:
            self.put(parcel)

    def put(self, parcel: Parcel) -> None:
        """Have a parcel go up, in the place of any of the same step that waits."""
        with self._lock:
            older = [one for one in self._waiting if one.record.step == parcel.record.step]
            if self.off:
                older = [parcel]
            else:
                self._waiting = [one for one in self._waiting if one not in older] + [parcel]
            self._lock.notify_all()
        for one in older:
            remove(one.files)

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
                elif growing := self._next_growing():
                    self._upload_growing(growing)
            except StoreError as error:
                self.switch_off(error, during_upload=True)
            except Exception as error:  # no fault of ours may cost the job, nor leave it waiting
                self.switch_off(StoreError(f"unexpected {type(error).__name__}: {error}"), during_upload=True)
            finally:
                with self._lock:
                    self._busy = ()
                    self._streamed = None
                    self._lock.notify_all()

    def _begin(self) -> bool:
        """Wait for something to do; whether there is. Where nothing is packed yet, take what is to be.

        What is packed goes first, so that finished steps need not wait until an unfinished one is.
        """
        with self._lock:
            while not self._waiting and not self._closed and self._large() is None:
                self._lock.wait()
            if all(parcel.pack is not None for parcel in self._waiting):
                self._busy, self._waiting = tuple(self._waiting), []
            return not self.off and bool(self._waiting or self._busy or self._large() is not None)

    def _large(self) -> Growing | None:
        return next((one for one in self._growing if one.is_large), None)

    def _next_growing(self) -> Growing | None:
        """What is to go up while it is being packed, as it is large already and nothing else waits."""
        with self._lock:
            self._streamed = None if self.off else self._large()
            return self._streamed

    def _pause(self) -> None:
        """Wait until it is time for the next upload."""
        with self._lock:
            while (early := self._last_upload + _APART - time.monotonic()) > 0 and not self.off:
                self._lock.wait(early)

    def _with_ready(self, packed: list[Parcel], but: str = "") -> list[Parcel]:
        """What is to go up now: also what waits and is packed.

        :param but: id of a step of which it is to wait on.
        """
        with self._lock:
            if self.off:
                return []
            ready = [parcel for parcel in self._waiting if parcel.pack is None and parcel.record.step != but]
            self._waiting = [parcel for parcel in self._waiting if parcel not in ready]
            self._busy = (*self._busy, *ready)
        newer = {parcel.record.step for parcel in ready}
        for parcel in packed:
            if parcel.record.step in newer:
                remove(parcel.files)
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
        return Parcel(self.known.with_progress(parcel.record), parcel.name)

    def _upload(self, batch: list[Parcel]) -> None:
        """Have what is packed go up."""
        files = [file for parcel in batch for file in parcel.files]
        spool = self._folder / f"{batch[-1].name}.tar.zst"

        def send(key: str) -> None:
            added = _told(batch, key)
            header = self.known.header(key, added)
            if sum(file.stat().st_size for file in files) <= sending.ONE_BODY:
                size = sending.send_joined(self._store, key, header, files, spool)
            else:
                size = sending.send_in_pieces(self._store, key, spool, rest=lambda: (header, files))
            self._arrived(batch, key, added, size)

        try:
            self.numbering.send_under_new_key(batch[-1].record.step, send)
        except OSError as error:
            raise StoreError(f"cannot read what was packed: {error}") from error
        finally:
            remove(files)

    def _upload_growing(self, growing: Growing) -> None:
        """Have a layer go up while it is packed, and with it all that is ready when it is."""
        spool = self._folder / f"{growing.parcel.name}.tar.zst"

        def send(key: str) -> None:
            batch: list[Parcel] = []
            added: dict[str, Record] = {}

            def rest() -> tuple[dict[str, Any], list[Path]]:
                self._with_ready([], growing.parcel.record.step)
                batch[:] = self._busy
                added.update(_told(batch, key))
                return self.known.header(key, added), [
                    file for one in batch if one is not growing.parcel for file in one.files
                ]

            size = sending.send_in_pieces(self._store, key, spool, early=growing.slices(), rest=rest)
            self._arrived(batch, key, added, size)

        try:
            self.numbering.send_under_new_key(growing.parcel.record.step, send)
        except GivenUpError:
            pass
        except StoreError:
            if not growing.comes_to_be_packed():  # its file is gone, which is no fault of the store's
                return
            raise
        finally:
            remove(file for parcel in (*self._busy, growing.parcel) for file in parcel.files)

    def _arrived(self, batch: list[Parcel], key: str, added: dict[str, Record], size: int) -> None:
        self.known.update(added, dict.fromkeys(added, key))
        with self._lock:
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
            first = not self.off and not self._is_failing
            self._is_failing = True
        try:  # it is said before anybody sees that the store is off, and ends
            if first and (during_upload or not self._required):
                lost = "going on without the store: steps of this run are not kept for other machines"
                self._warn(f"{error.told}; {lost}")
        finally:
            with self._lock:
                self.off = self.off or str(error)
                dropped, self._waiting = self._waiting, []
                self._lock.notify_all()
        remove(file for parcel in dropped for file in parcel.files)
        if self._required and not during_upload:
            raise error

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
            lost = ", ".join(map(str, left_behind))
            self._warn(f"{self._store.name}: not stored within {limit:.4g} s, so another machine does it again: {lost}")
        if failed and self._required:
            raise StoreError(f"{self._store.name}: not everything was stored: {failed}")


def _told(batch: list[Parcel], key: str) -> dict[str, Record]:
    """The records as an archive with this key tells them."""
    return {parcel.record.step: parcel.at(key) for parcel in batch}
