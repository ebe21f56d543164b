"""A store whose archives are fetched part by part, so that a fetch that broke off goes on where it was."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.store.base import ListingLook, StreamStore
from checkpoint_action.store.folders import check_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from checkpoint_action.store.base import Found, Store

__all__ = ["ResumingStore"]

_LEAST = 1 << 20
_MOST = 32 << 20
_BRISK = 5.0  # seconds; parts that come faster are made larger, as each may cost a request against a limit
_AT_ONCE = 4
_TRIES = 5
_LONGEST_PAUSE = 30.0


class ResumingStore:
    """Another :class:`~checkpoint_action.store.base.Store`, read by parts into files that stay.

    One entry is to be fetched by one thread at a time, :meth:`begin_fetch` apart.
    What is fetched is not trusted for being there: whoever unpacks it checks it, and a file that turns out to be
    damaged is to be forgotten. What an archive says first is read from the store each time, as all depends on it.

    :param folder: where the files are; made where it is missing.
    :param told: gets the bytes that are there of what is being fetched, and its key; from any thread.
    :param least: bytes of a part at first, and on a slow line; four of them are read at a time.
    :param most: bytes of a part on a fast one.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        *,
        told: Callable[[str, int], None] = lambda _key, _size: None,
        least: int = _LEAST,
        most: int = _MOST,
    ) -> None:
        self._store = store
        self._folder = folder
        self._told = told
        self._least = least
        self._most = most
        self._begun: dict[str, Thread] = {}

    @property
    def name(self) -> str:
        """The store's."""
        return self._store.name

    @property
    def reach(self) -> str:
        """The store's."""
        return self._store.reach

    def find(self, prefix: str) -> Found | None:
        """The newest entry whose key starts with ``prefix``, or ``None``."""
        return self._store.find(prefix)

    def find_each(self, prefixes: Sequence[str]) -> list[Found | None]:
        """For each prefix what :meth:`find` gives."""
        if isinstance(self._store, ListingLook):
            return self._store.find_each(prefixes)
        return [self._store.find(prefix) for prefix in prefixes]

    def save(self, key: str, source: Path) -> None:
        """Keep a file in the store."""
        self._store.save(key, source)

    def read(self, found: Found, start: int, length: int) -> bytes:
        """Read a part of an entry."""
        return self._store.read(found, start, length)

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``; what was fetched before is not fetched again.

        :raises StoreMissingError: the entry is gone.
        :raises StoreError: it does not come, after some tries; what has come stays.
        """
        begun = self._begun.pop(found.key, None)
        if begun is not None:
            begun.join()
        try:
            whole = self._gathered(found)
            target.unlink(missing_ok=True)
            _link(whole, target)
        except OSError as error:
            raise StoreError(f"{self.name}: cannot keep what is fetched in {self._folder}: {error.strerror}") from error

    def begin_fetch(self, found: Found) -> None:
        """Begin to fetch, in a thread, what will be wanted next; where that fails, :meth:`fetch` tries again."""

        def work() -> None:
            with suppress(StoreError, OSError):
                self._gathered(found)

        if found.key not in self._begun:
            thread = Thread(target=work, name="fetch", daemon=True)
            with suppress(RuntimeError):  # the system gives no thread: it is fetched when it is wanted
                thread.start()
                self._begun[found.key] = thread

    def at_hand(self, key: str) -> Path | None:
        """The file with an entry's content that was fetched before; ``None`` where there is none."""
        path = self._whole(key)
        return path if path.is_file() else None

    def drop(self, key: str) -> None:
        """Remove what was fetched of an entry, so that it is fetched anew: it is not what it should be."""
        with suppress(OSError):
            self._whole(key).unlink()

    def forget(self) -> None:
        """Remove all that was fetched."""
        for ending in ("*.archive", "*.part"):
            for path in self._folder.glob(ending):
                with suppress(OSError):
                    path.unlink()
        with suppress(OSError):
            self._folder.rmdir()

    def _whole(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.archive"

    def _gathered(self, found: Found) -> Path:
        """The file with an entry's content, fetched where it is not there yet."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_owner(self._folder.parent, [self._folder])
        whole = self._whole(found.key)
        if not whole.exists():
            self._gather(found, whole.with_suffix(".part"))
            whole.with_suffix(".part").replace(whole)
        return whole

    def _gather(self, found: Found, path: Path) -> None:
        """Read on from where the file ends.

        Nothing is made to reach the disk: what a power loss takes or garbles is found out when it is unpacked.
        """
        failed = 0
        parts = _Parts(self._least)
        with path.open("ab") as file:
            while True:
                start = file.seek(0, os.SEEK_END)
                self._told(found.key, start)
                try:
                    if self._streamed(found, start, file):
                        return
                    while self._read_parts(found, file, parts):
                        failed = 0
                    return
                except StoreError as error:
                    file.flush()
                    failed = 1 if file.tell() > start else failed + 1
                    if failed == _TRIES or not _may_pass(error):
                        raise
                    parts = _Parts(self._least)
                    time.sleep(min(2.0**failed, _LONGEST_PAUSE))

    def _streamed(self, found: Found, start: int, file: BinaryIO) -> bool:
        if not isinstance(self._store, StreamStore):
            return False

        over = Event()

        def take(data: bytes) -> None:
            if over.is_set():  # the call was given up, and another one writes
                raise StoreError(f"{self.name}: out of time")
            file.write(data)
            self._told(found.key, file.tell())

        try:
            return self._store.stream(found, start, take)
        finally:
            over.set()

    def _read_parts(self, found: Found, file: BinaryIO, parts: _Parts) -> bool:
        """Read the next parts side by side, and write them in order; whether there may be more."""
        begin, start = time.monotonic(), file.tell()
        with ThreadPoolExecutor(_AT_ONCE, "fetch") as pool:
            reads = [
                pool.submit(self._store.read, found, start + at * parts.size, parts.size) for at in range(parts.at_once)
            ]
            try:
                for read in reads:
                    data = read.result()
                    file.write(data)
                    self._told(found.key, file.tell())
                    if len(data) < parts.size:
                        return False
            finally:
                for read in reads:
                    read.cancel()
        parts.at_once = _AT_ONCE
        if time.monotonic() - begin < _BRISK:
            parts.size = min(2 * parts.size, self._most)
        return True


@dataclass(slots=True)
class _Parts:
    """What is read next.

    :param size: bytes of each part.
    :param at_once: how many; the first one comes alone, as it may be all there is.
    """

    size: int
    at_once: int = 1


def _may_pass(error: StoreError) -> bool:
    """Whether another try may do better: not where it is denied, or gone."""
    return type(error) is StoreError


def _link(source: Path, target: Path) -> None:
    """Have the content under another name too, without a copy where that can be."""
    try:
        os.link(source, target)
    except OSError:  # there are no hard links
        shutil.copyfile(source, target)
