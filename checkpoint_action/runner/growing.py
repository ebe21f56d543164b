"""A layer that goes up while it is being packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.runner import sending
from checkpoint_action.store.base import FilePart

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from checkpoint_action.runner.parcels import Parcel

__all__ = ["GivenUpError", "Growing"]

_MOST_AT_ONCE = 8
"""Slices in one piece: between two pieces it is seen when packing fails."""


class GivenUpError(Exception):
    """What is on its way up will never be complete, or is not wanted any more."""


class Growing:
    """A parcel whose one file is being packed, and whose first bytes may go up meanwhile.

    :param lock: what everybody waits at who is concerned.
    :param is_off: whether the store is left alone.
    :ivar parcel: complete once the file is.
    :ivar is_packed: whether it is.
    :ivar is_given_up: whether it will never be.
    """

    def __init__(self, parcel: Parcel, lock: threading.Condition, is_off: Callable[[], bool]) -> None:
        self.parcel = parcel
        self.is_packed = False
        self.is_given_up = False
        self._file: Path = parcel.files[0]
        self._lock = lock
        self._is_off = is_off
        self._size = 0

    def grown(self, size: int) -> None:
        """Be told how many of the file's first bytes are final."""
        with self._lock:
            self._size = size
            if self.is_large:
                self._lock.notify_all()

    def settle(self, *, is_packed: bool) -> None:
        """Be told that it does not grow any more."""
        with self._lock:
            self.is_packed, self.is_given_up = is_packed, not is_packed
            self._lock.notify_all()

    @property
    def is_large(self) -> bool:
        """Whether it will not go up as one body, as is clear already."""
        return self._size > sending.ONE_BODY

    def slices(self) -> Iterator[FilePart]:
        """The parts of the file, each as soon as it is final.

        :raises GivenUpError: it will never be complete, or the store is left alone.
        """
        sent = 0
        while True:
            with self._lock:
                while not (self._settled or self._size - sent >= sending.SLICE_SIZE):
                    self._lock.wait()
                if self.is_given_up or self._is_off():
                    raise GivenUpError
                length, is_packed = self._size - sent, self.is_packed
            if is_packed and not length:
                return
            length = min(length, _MOST_AT_ONCE * sending.SLICE_SIZE)
            if not is_packed:
                length -= length % sending.SLICE_SIZE
            yield FilePart(self._file, sent, length)
            sent += length

    def comes_to_be_packed(self) -> bool:
        """Wait until it is clear whether the file will be complete; not once the store is left alone."""
        with self._lock:
            while not self._settled:
                self._lock.wait()
            return not self.is_given_up

    @property
    def _settled(self) -> bool:
        return self.is_packed or self.is_given_up or self._is_off()
