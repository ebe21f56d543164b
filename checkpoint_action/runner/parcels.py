"""What is on its way to a store: records and their packed layers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from checkpoint_action.model import ArchiveRef, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from checkpoint_action.model import Record

__all__ = ["Parcel", "remove"]


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

    def __str__(self) -> str:
        step = self.record.step
        return step if self.record.status is Status.DONE else f"what {step} has so far"


def remove(files: Iterable[Path]) -> None:
    """Remove files of ours, as far as that can be done."""
    for file in files:
        with suppress(OSError):
            file.unlink()
