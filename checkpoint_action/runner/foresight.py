"""What is not known yet of the steps that are going to run, and how far those that need them can be decided on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from checkpoint_action.model import Status, Values
from checkpoint_action.runner.ancestry import Above
from checkpoint_action.runner.declared_outputs import DeclaredOutputs
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.places import place_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Job, Record, Step
    from checkpoint_action.runner.ancestry import Ancestry
    from checkpoint_action.runner.selection import Held

__all__ = ["Foresight"]

_VALUE = "value "  # parts that say what earlier steps hand on


class Foresight:
    """What steps that would run are going to leave, as far as that is known.

    :param held: the steps that must not be started.
    :ivar active: whether steps that are going to run are not run in between: a plan, not a run.
    """

    def __init__(self, job: Job, held: Held, ancestry: Ancestry) -> None:
        self._job = job
        self._held = held
        self._ancestry = ancestry
        self._remade = DeclaredOutputs()  # of the open steps, while active
        self.active = False
        self._left: dict[str, str | None] = {}  # what each step that would run leaves, where that is known
        self._givers: dict[str, None] = {}  # those among them that hand on values
        self._unknown: dict[str, None] = {}  # those of which it is not known whether they do

    def forget(self, step: str) -> None:
        """A step has a new record: nothing of it need be foreseen."""
        for known in (self._left, self._givers, self._unknown):
            known.pop(step, None)
        self._remade.remove(self._ancestry.positions[step])

    def result(self, step: str) -> str | None:
        """What a step that would run is going to leave, where that is known."""
        return self._left.get(step)

    def opener(self, step: Step, parts: Mapping[str, str], record: Record | None) -> str | None:
        """A step that is yet to run and may leave this one something else than what is known now."""
        opener = next((need for need in step.needs if self.is_open(need)), None)
        if opener is None and self._job.in_order:  # else who hands on to it is open, or makes open what it needs
            opener = next(iter(self._givers), None)
        if opener is None and self._unknown and record is not None and _values(parts) != _values(record.parts):
            above = None if self._job.in_order else self._ancestry.above(step.id)
            positions = self._ancestry.positions
            opener = next((one for one in self._unknown if above is None or positions[one] in above), None)
        if opener is None and self._remade and record is not None:
            names = dict.fromkeys((*parts, *record.parts))
            places = (self._remaker(step, place) for name in names if (place := self._input(step, name)))
            opener = next((self._job.steps[position].id for position in places if position is not None), None)
        return opener

    def is_open(self, step: str) -> bool:
        """Whether a step is yet to run, and what it then leaves is not known."""
        return self._left[step] is None if step in self._left else step in self._held

    def as_before(self, step: Step, parts: Mapping[str, str], record: Record) -> dict[str, str]:
        """The parts of a step, where they are open those of its last run."""
        closed = {name: value for name, value in parts.items() if not name.startswith(_VALUE)}
        open_parts = {f"needs {need}" for need in step.needs if self.is_open(need)} & {*record.parts}
        if self._remade:
            names = {*closed, *record.parts}
            remade = ((name, self._remaker(step, place)) for name in names if (place := self._input(step, name)))
            open_parts.update(name for name, position in remade if position is not None)
        closed = {name: value for name, value in closed.items() if name not in open_parts}
        known = {name: record.parts[name] for name in open_parts if name in record.parts}
        return {**closed, **known, **_values(record.parts)}

    def _input(self, step: Step, part: str) -> str:
        """Where a part of a fingerprint says that an input is; empty where it says something else."""
        kind, _, name = part.partition(" ")
        if kind == "input":
            return os.path.normpath(locate(self._job.root, name))
        return place_of(step.cwd, name) if kind == "unmatched" else ""

    def _remaker(self, step: Step, place: str) -> int | None:
        """An earlier step that is yet to run and declares to leave a place, needed or not: it runs before this one."""
        return self._remade.leaver(place, Above(self._ancestry.positions[step.id], frozenset()))

    def is_remade(self, step: Step, path: str) -> bool:
        """Whether a step that this one needs, and which is yet to run, declares to leave a path."""
        above = self._ancestry.above(step.id)
        return bool(self._remade) and self._remade.leaver(os.path.normpath(path), above) is not None

    def expect(self, step: Step, parts: Mapping[str, str], record: Record | None, opener: str | None) -> None:
        """A step would run: take note of what it leaves then, as far as that is known."""
        gives = record is not None and (record.values != Values() or bool(record.withheld))
        known = not step.outputs and not gives and opener is None
        self._left[step.id] = fingerprint(parts) if known else None
        if gives:
            self._givers[step.id] = None
        elif record is None or record.status is not Status.DONE:
            self._unknown[step.id] = None

    def decided(self, step: Step, *, runs: bool) -> None:
        """A step has been decided on; where it is open and going to run, what it declares to leave is not known.

        :param runs: whether it is going to run. One that is held leaves what is there.
        """
        if self.active:
            position = self._ancestry.positions[step.id]
            self._remade.remove(position)
            if runs and self.is_open(step.id):
                self._remade.put(position, step)


def _values(parts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in parts.items() if name.startswith(_VALUE)}
