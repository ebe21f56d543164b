"""Which step may be looked at next."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.model import Job, Step

__all__ = ["Schedule"]


class Schedule:
    """The steps of a job whose needs are all settled, the earlier ones first.

    :param steps: those that are looked at at all; what they need is among them.
    """

    def __init__(self, job: Job, steps: Sequence[Step]) -> None:
        self._waiting_for = {step.id: len(step.needs) for step in steps}
        self._dependents: dict[str, list[tuple[int, str]]] = {}
        self._ready: list[int] = []
        for position, step in enumerate(job.steps):
            if step.id not in self._waiting_for:
                continue
            for need in step.needs:
                self._dependents.setdefault(need, []).append((position, step.id))
            if not step.needs:
                self._ready.append(position)
        heapq.heapify(self._ready)

    def __bool__(self) -> bool:
        return bool(self._ready)

    def next(self) -> int:
        """The place in the job of the step that :meth:`take` gives."""
        return self._ready[0]

    def take(self) -> int:
        """The place in the job of the next step."""
        return heapq.heappop(self._ready)

    def settled(self, step: str) -> None:
        """A step is settled, in whatever way: those that waited for it alone may be looked at."""
        for position, waiting in self._dependents.get(step, ()):
            self._waiting_for[waiting] -= 1
            if not self._waiting_for[waiting]:
                heapq.heappush(self._ready, position)
