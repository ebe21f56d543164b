"""What every store can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Found", "Store"]


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that a store holds.

    :param key: its complete key.
    :param locator: whatever the store needs to fetch it; empty when the key is enough.
    """

    key: str
    locator: str = ""


class Store(Protocol):
    """A place that keeps archives under keys that are never used twice.

    Every method is bounded in time and raises :class:`~checkpoint_action.errors.StoreError` (or its
    :class:`~checkpoint_action.errors.StoreDeniedError`) when the store cannot do what is asked; nothing else. A call
    may come from any thread.
    """

    @property
    def name(self) -> str:
        """What people call it, for messages."""
        ...

    def find(self, prefix: str) -> Found | None:
        """The newest entry whose key starts with ``prefix`` (or equals it), or ``None``."""
        ...

    def save(self, key: str, source: Path) -> None:
        """Keep the content of the file ``source`` under ``key``, all or nothing."""
        ...

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: the entry is gone.
        """
        ...
