"""What stands in for a store where none is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreDeniedError, StoreMissingError

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.store.base import Found

__all__ = ["NoStore"]


class NoStore:
    """A :class:`~checkpoint_action.store.base.Store` that holds nothing and takes nothing."""

    name = "no store"
    reach = ""

    def find(self, prefix: str) -> Found | None:  # noqa: ARG002  # the protocol's names
        """There is nothing."""
        return None

    def save(self, key: str, source: Path) -> None:  # noqa: ARG002
        """Refuse it.

        :raises StoreDeniedError: always.
        """
        raise StoreDeniedError(f"{self.name} is used, so {key} is not kept")

    def fetch(self, found: Found, target: Path) -> None:  # noqa: ARG002
        """There is nothing.

        :raises StoreMissingError: always.
        """
        raise StoreMissingError(f"{self.name} is used, so there is no {found.key}")

    def read(self, found: Found, start: int, length: int) -> bytes:  # noqa: ARG002
        """There is nothing.

        :raises StoreMissingError: always.
        """
        raise StoreMissingError(f"{self.name} is used, so there is no {found.key}")
