"""Which steps a step needs, directly or through others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from checkpoint_action.model import Job

__all__ = ["Above", "Ancestry", "NearestLeavers"]


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


class NearestLeavers:
    """For each step: itself where it leaves files, else the nearest above it that do."""

    def __init__(self, job: Job, ancestry: Ancestry) -> None:
        self._job = job
        self._positions = ancestry.positions
        self._leaving: set[str] = set()
        self._known: dict[str, tuple[str, ...]] = {}

    def put(self, step: str, *, leaves: bool) -> None:
        """Take note of whether a step leaves files."""
        if leaves != (step in self._leaving):
            self._leaving ^= {step}
            self._known.clear()

    def of(self, step: str) -> tuple[str, ...]:
        """Ids of the steps whose files a step that needs this one starts from."""
        missing: set[str] = set()
        todo = [step]
        while todo:
            one = todo.pop()
            if one not in self._known and one not in missing:
                missing.add(one)
                if one not in self._leaving:
                    todo.extend(self._needs(one))
        for one in sorted(missing, key=self._positions.__getitem__):  # a need always comes before
            above = (owner for need in self._needs(one) for owner in self._known[need])
            self._known[one] = (one,) if one in self._leaving else tuple(dict.fromkeys(above))
        return self._known[step]

    def _needs(self, step: str) -> tuple[str, ...]:
        return self._job.steps[self._positions[step]].needs
