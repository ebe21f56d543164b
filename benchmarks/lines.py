"""One line of the table of all benchmarks: a work, ours beside a peer, and the goal.

Each benchmark's module gives its lines through a function of this form, beside the detailed table of its own `main`::

    def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:

`rounds`: runs of each contestant (its own default where there is none); `folder`: where large files go (the folder for
temporary files); `quick`: the smallest scale, to see that it works, with figures that say nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

__all__ = ["Goal", "Line", "at_most", "below", "faster", "load_now", "more_at_most", "speed_at_least"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a line should reach; made by the functions below.

    :param kind: what of ours is looked at: its ratio to the peer's (at most, or less), the peer's by ours (at least),
        what it is more than the peer's, or itself.
    :param bound: a ratio, or in the line's unit.
    """

    kind: Literal["ratio", "faster", "speed", "more", "value"]
    bound: float


def at_most(ratio: float) -> Goal:
    """Ours is at most so many times the peer's."""
    return Goal("ratio", ratio)


def faster() -> Goal:
    """Ours is less than the peer's."""
    return Goal("faster", 1.0)


def speed_at_least(ratio: float) -> Goal:
    """Our throughput is at least this part of the peer's: the ratio of times, the other way about."""
    return Goal("speed", ratio)


def more_at_most(difference: float) -> Goal:
    """Ours is at most so much more than the peer's, in the line's unit."""
    return Goal("more", difference)


def below(value: float) -> Goal:
    """Ours is less than a value in the line's unit, whatever the peer's."""
    return Goal("value", value)


def load_now() -> float | None:
    """The load of the last minute; ``None`` where the system does not tell. To be asked before measuring begins."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line.

    :param work: what was done, in a few words that stand alone ("verify 4 GiB of outputs").
    :param peer: what it is compared with, with its version; empty where it is compared with nothing.
    :param ours: our median, in ``unit``.
    :param theirs: the peer's; ``None`` where the peer is not installed or there is none.
    :param goal: ``None`` where the line is only shown.
    :param unit: of both: seconds by the wall clock, MiB of memory, or how much went wrong.
    :param load: :func:`load_now` when the measuring of this line began.
    :param note: a word or two about the line, where needed.
    """

    work: str
    peer: str = ""
    ours: float
    theirs: float | None = None
    goal: Goal | None = None
    unit: Literal["s", "MiB", "faults"] = "s"
    load: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of the peer's."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is; ``None`` where there is none, or no peer to tell by."""
        if self.goal is None:
            return None
        if self.goal.kind == "value":
            return self.ours < self.goal.bound
        if self.theirs is None or self.ratio is None:
            return None
        if self.goal.kind == "more":
            return self.ours - self.theirs <= self.goal.bound
        if self.goal.kind == "faster":
            return self.ratio < self.goal.bound
        if self.goal.kind == "speed":
            return 1 / self.ratio >= self.goal.bound
        return self.ratio <= self.goal.bound
