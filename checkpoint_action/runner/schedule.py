"""Which step may be looked at next."""

from __future__ import annotations

import heapq
from array import array
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
        positions = {step.id: position for position, step in enumerate(job.steps)}
        looked_at = [positions[step.id] for step in steps]
        self._waiting_for = array("l", [0]) * len(job.steps)
        # The steps that wait for the one at a position: the stretch of the second from where the first says, to where
        # it says of the next. There may be very many steps, and a list for each takes far more.
        self._begins = array("l", [0]) * (len(job.steps) + 1)
        for position in looked_at:
            for need in job.steps[position].needs:
                self._waiting_for[position] += 1
                self._begins[positions[need]] += 1
        for position in range(1, len(self._begins)):
            self._begins[position] += self._begins[position - 1]
        self._dependents = array("l", [0]) * self._begins[-1]
        for position in looked_at:
            for need in job.steps[position].needs:
                self._begins[positions[need]] -= 1
                self._dependents[self._begins[positions[need]]] = position
        self._ready = [position for position in looked_at if not self._waiting_for[position]]
        heapq.heapify(self._ready)

    def __bool__(self) -> bool:
        return bool(self._ready)

    def next(self) -> int:
        """The place in the job of the step that :meth:`take` gives."""
        return self._ready[0]

    def take(self) -> int:
        """The place in the job of the next step."""
        return heapq.heappop(self._ready)

    def settled(self, position: int) -> None:
        """A step is settled, in whatever way: those that waited for it alone may be looked at.

        :param position: its place in the job.
        """
        for waiting in self._dependents[self._begins[position] : self._begins[position + 1]]:
            self._waiting_for[waiting] -= 1
            if not self._waiting_for[waiting]:
                heapq.heappush(self._ready, waiting)
