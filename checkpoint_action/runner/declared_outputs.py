"""Which of many steps declare to leave a path, found without asking each of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from checkpoint_action.model import AUTO
from checkpoint_action.runner.globs import literal, static_prefix
from checkpoint_action.runner.places import place_of
from checkpoint_action.runner.progress import covered

if TYPE_CHECKING:
    from checkpoint_action.model import Step
    from checkpoint_action.runner.ancestry import Above

__all__ = ["DeclaredOutputs"]


class DeclaredOutputs:
    """What steps declare to leave, by the folder or file that all of a pattern lies in or is."""

    def __init__(self) -> None:
        self._steps: dict[int, Step] = {}
        self._starts: dict[str, dict[int, None]] = {}
        self._anywhere: dict[int, None] = {}

    def __bool__(self) -> bool:
        return bool(self._steps)

    def put(self, position: int, step: Step) -> None:
        """Take in what a step declares.

        :param position: its place in the job.
        """
        self._steps[position] = step
        if step.outputs == AUTO:
            self._anywhere[position] = None
            return
        for start in _starts(step):
            self._starts.setdefault(start, {})[position] = None

    def remove(self, position: int) -> None:
        """Leave out what was taken in of a step, if anything was."""
        step = self._steps.pop(position, None)
        if step is None:
            return
        self._anywhere.pop(position, None)
        for start in () if step.outputs == AUTO else _starts(step):
            there = self._starts[start]
            there.pop(position, None)
            if not there:
                del self._starts[start]

    def leaver(self, place: str, above: Above) -> int | None:
        """The position of a step that declares to leave a place, there or not; ``None`` where there is none.

        :param place: absolute, without ``.`` and ``..``.
        :param above: the only steps that are asked for.
        """
        for position in self._anywhere:
            if position in above:
                return position
        here, last = place, ""
        while self._starts and here != last:
            for position in self._starts.get(here, ()):
                step = self._steps[position]
                if position in above and covered(step.outputs, step.cwd, place, folder=True):
                    return position
            here, last = os.path.dirname(here), here
        return None


def _starts(step: Step) -> set[str]:
    patterns = (pattern.replace(os.sep, "/") for pattern in step.outputs if not pattern.startswith("!"))
    names = (static_prefix(pattern) if (plain := literal(pattern)) is None else plain for pattern in patterns)
    return {place_of(step.cwd, name) for name in names}
