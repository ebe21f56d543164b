"""What is fuzzed: a parser of ours, and what may come of any bytes that it is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["LONGEST_SECONDS", "LONGEST_WAIT", "MOST_MEMORY", "Target", "corpus_of"]

LONGEST_SECONDS = 20.0
"""An input that keeps the processor busy for longer than this hangs."""

LONGEST_WAIT = 300.0
"""So does one after which nothing has come of it in this time."""

MOST_MEMORY = 1 << 30
"""Bytes that a process may come to have while it is given one input after the other."""

_CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """One of them.

    :param make: given an empty folder, makes what tries one input there. That returns whether the input was taken (or
        refused, in a documented way); whatever it raises is a fault.
    :param seeds: inputs in good form, to begin with.
    :param words: what the inputs are made of.
    """

    name: str
    make: Callable[[Path], Callable[[bytes], bool]]
    seeds: Callable[[], Sequence[bytes]]
    words: Sequence[bytes] = ()


def corpus_of(target: Target) -> list[bytes]:
    """The inputs to begin with: those in good form, those that reach far, and each that once found a fault."""
    return [*target.seeds(), *(path.read_bytes() for path in sorted((_CORPUS / target.name).glob("*")))]
