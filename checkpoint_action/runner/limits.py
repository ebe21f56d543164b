"""How much a step may leave to be kept for other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from checkpoint_action.model import Entry

__all__ = ["excess_of"]


def excess_of(entries: Iterable[Entry], max_size: int | None) -> str:
    """In how far files are too large to be kept, as the end of a sentence; or an empty text.

    :param max_size: bytes that they may have together, before they are packed; ``None``: any number.
    """
    if max_size is None:
        return ""
    files = [entry for entry in entries if entry.size]
    size = sum(entry.size for entry in files)
    if size <= max_size:
        return ""
    largest = max(files, key=lambda entry: entry.size)
    return (
        f"it left {size} bytes, and the limit (max-size) is {max_size}; "
        f"the largest file is {largest.path} with {largest.size}"
    )
