"""A clock that only moves when someone sleeps."""

from __future__ import annotations

__all__ = ["Clock"]


class Clock:
    """:ivar sleeps: the waits so far, in seconds."""

    def __init__(self) -> None:
        self.sleeps: list[float] = []
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_700_000_000.0 + self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
