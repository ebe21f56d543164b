"""What a part of the torture tests has to say for itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Outcome", "Part", "Scale"]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is tried.

    :param count: how many runs, kills, crash states …; what is counted is the part's own.
    :param seconds: time after which no new one is begun; of each of its halves where a part has several.
    :param seed: what chance starts from, so that a failure can be had again.
    """

    count: int
    seconds: float
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    """What was tried, how often, and what went wrong.

    :param tried: number of tries by kind, in words that stand in the documentation's table.
    :param faults: one line for each thing that was not as promised, with all it takes to have it again.
    """

    tried: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Part(Protocol):
    """One part: tries as much as the scale says, in a folder of its own."""

    def __call__(self, folder: Path, scale: Scale) -> Outcome:
        """Try it.

        :param folder: empty, and removed by the caller.
        """
        ...
