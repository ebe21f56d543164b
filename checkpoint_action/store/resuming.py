"""A store whose archives are fetched part by part, so that a fetch that broke off goes on where it was."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.store.base import ListingLook

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

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
        whole = self._whole(found.key)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not whole.exists():
                self._gather(found, whole.with_suffix(".part"))
                whole.with_suffix(".part").replace(whole)
            target.unlink(missing_ok=True)
            _link(whole, target)
        except OSError as error:
            raise StoreError(f"{self.name}: cannot keep what is fetched in {self._folder}: {error.strerror}") from error

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

    def _gather(self, found: Found, path: Path) -> None:
        """Read on from where the file ends. Parts are read side by side and written in order, after a first one."""
        failed, part, at_once = 0, self._least, 1
        with path.open("ab") as file, ThreadPoolExecutor(_AT_ONCE, "fetch") as pool:
            while True:
                begin, start = time.monotonic(), file.seek(0, os.SEEK_END)
                self._told(found.key, start)
                reads = [pool.submit(self._store.read, found, start + at * part, part) for at in range(at_once)]
                try:
                    for read in reads:
                        data = read.result()
                        file.write(data)
                        file.flush()
                        self._told(found.key, file.tell())
                        if len(data) < part:
                            os.fsync(file.fileno())  # before it gets the name of what is whole
                            return
                    failed, at_once = 0, _AT_ONCE
                    if time.monotonic() - begin < _BRISK:
                        part = min(2 * part, self._most)
                except StoreError as error:
                    failed, part = failed + 1, self._least
                    if failed == _TRIES or not _may_pass(error):
                        raise
                    time.sleep(min(2.0**failed, _LONGEST_PAUSE))
                finally:
                    for read in reads:
                        read.cancel()


def _may_pass(error: StoreError) -> bool:
    """Whether another try may do better: not where it is denied, or gone."""
    return type(error) is StoreError


def _link(source: Path, target: Path) -> None:
    """Have the content under another name too, without a copy where that can be."""
    try:
        os.link(source, target)
    except OSError:  # there are no hard links
        shutil.copyfile(source, target)
