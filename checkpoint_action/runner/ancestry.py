"""Which steps a step needs, directly or through others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from checkpoint_action.model import Job

__all__ = ["Above", "Ancestry"]


class Above(NamedTuple):
    """Places in the job of all that a step needs.

    :param below: each place before this one is among them.
    :param others: and these.
    """

    below: int
    others: frozenset[int]

    def __contains__(self, position: object) -> bool:
        return isinstance(position, int) and (position < self.below or position in self.others)


class Ancestry:
    """What each step of a job needs; of a chain, which most jobs are, found without walking it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.positions = {step.id: number for number, step in enumerate(job.steps)}
        self._chained = 0  # steps from the first on that each need the one before
        while self._chained < len(job.steps) and self._follows(self._chained):
            self._chained += 1
        self._last: tuple[str, Above] | None = None  # whoever asks does so several times of the same step

    def _follows(self, position: int) -> bool:
        return position == 0 or self._job.steps[position - 1].id in self._job.steps[position].needs

    def above(self, step: str) -> Above:
        """All that a step needs.

        :param step: its id.
        """
        if self._last is None or self._last[0] != step:
            self._last = step, self._walk(step)
        return self._last[1]

    def _walk(self, step: str) -> Above:
        reached: set[int] = set()
        below = 0
        todo = [step]
        while todo:
            for need in self._job.steps[self.positions[todo.pop()]].needs:
                position = self.positions[need]
                if position < self._chained:
                    below = max(below, position + 1)
                elif position not in reached:
                    reached.add(position)
                    todo.append(need)
        return Above(below, frozenset(reached))
