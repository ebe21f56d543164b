"""What earlier steps hand on to a step besides files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from checkpoint_action.model import Values
from checkpoint_action.runner.hashing import text_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Job, Step
    from checkpoint_action.runner.ancestry import Ancestry

__all__ = ["HandedOn", "Seen", "check_values"]

_MOST_PARTS = 100
"""Values that count in a fingerprint each under its own name; where there are more, one digest stands for all, so that
the state does not grow with the square of the number of steps."""


_LARGEST_VARIABLE = 64 << 10
"""Bytes. Linux starts no command with a variable of 128 KiB."""

_MOST_VARIABLES = 512 << 10
"""Bytes of all of them. Linux starts no command with more than 2 MiB of variables and arguments, macOS with 1 MiB."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a step gets of those before it.

    :param env: variables; of two of one name the later step's.
    :param path: folders to put in front of ``PATH``, the last one first.
    :param outputs: of each step that set any, by its id.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    outputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """The outputs as variables: ``steps.build.outputs.version`` is ``STEPS_BUILD_OUTPUTS_VERSION``.

        Where two would be the same variable neither is there; nor is one that is so large that it might keep a command
        from starting. The JSON text has all.
        """
        found: dict[str, list[str]] = {}
        for step, outputs in self.outputs.items():
            for name, value in outputs.items():
                found.setdefault(f"STEPS_{_word(step)}_OUTPUTS_{_word(name)}", []).append(value)
        variables = {}
        room = _MOST_VARIABLES
        for name, values in found.items():
            size = len(values[0].encode("utf-8", "surrogateescape"))
            if len(values) == 1 and size <= _LARGEST_VARIABLE and size <= room:
                variables[name] = values[0]
                room -= size
        return variables

    def document(self) -> str:
        """The outputs as JSON: ``{"build": {"outputs": {"version": "1.2"}}}``."""
        return json.dumps({step: {"outputs": dict(outputs)} for step, outputs in self.outputs.items()})

    def parts(self, step: Step) -> dict[str, str]:
        """What counts of it in the step's fingerprint; a variable that the step sets itself does not."""
        # A name that is no plain one is told apart from the words below.
        names = {name: name if name.isidentifier() else json.dumps(name) for name in self.env if name not in step.env}
        values = {f"value {word}": self.env[name] for name, word in names.items()}
        if self.path:
            values["value $GITHUB_PATH"] = json.dumps(self.path)
        for other, outputs in self.outputs.items():
            values.update((f"value steps.{other}.outputs.{name}", text) for name, text in outputs.items())
        if len(values) > _MOST_PARTS:
            values = {"value of earlier steps": json.dumps(values, sort_keys=True)}
        return {name: text_digest(text) for name, text in values.items()}


def check_values(values: Values) -> None:
    """See that values from elsewhere are such as a step can hand on: else no later step could start.

    :raises ValueError: they are not.
    """
    names = [*values.env, *values.outputs]
    texts = [*names, *values.env.values(), *values.outputs.values(), *values.path, values.summary]
    for text in texts:
        text.encode("utf-8", "surrogateescape")  # raises what is a ValueError, too
    if any("\0" in text for text in texts) or any(not name or "=" in name for name in values.env):
        raise ValueError("a value that no step can hand on")


def _word(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


class HandedOn:
    """What the done steps of a job hand on, and to whom: to each step that needs them, directly or through others.

    In a job whose steps follow one another without needing each other, to all later ones.
    """

    def __init__(self, job: Job, ancestry: Ancestry) -> None:
        self._job = job
        self._ancestry = ancestry
        self._kept: dict[int, Values] = {}
        self._secret: dict[int, Values] = {}

    def put(self, position: int, values: Values, secret: Values | None = None) -> None:
        """Take note of what a step hands on now.

        :param position: the step's place in the job.
        :param values: what may be known of it.
        :param secret: all of it, where that is more.
        """
        for known, new in ((self._kept, values), (self._secret, secret)):
            if new is None or new == Values():
                known.pop(position, None)
            else:
                known[position] = new

    def of(self, position: int, known: Values) -> Values:
        """All that a step hands on now.

        :param known: what its record says.
        """
        return self._secret.get(position, known)

    def seen_by(self, step: Step, *, secret: bool = False) -> Seen:
        """What a step gets.

        :param secret: with what nobody may keep. Without, it is what counts for the step being the same.
        """
        known = {**self._kept, **self._secret} if secret else self._kept
        if not known:
            return Seen()
        env: dict[str, str] = {}
        path: dict[str, None] = {}
        outputs = {}
        for position in self._sources(step, known):
            values = known[position]
            env.update(values.env)
            for folder in values.path:
                path.pop(folder, None)
                path[folder] = None
            if values.outputs:
                outputs[self._job.steps[position].id] = values.outputs
        return Seen(env, tuple(path), outputs)

    def _sources(self, step: Step, known: Mapping[int, Values]) -> list[int]:
        """Places of the steps in ``known`` that hand on to a step, in order."""
        if self._job.in_order:
            return sorted(position for position in known if position < self._ancestry.positions[step.id])
        above = self._ancestry.above(step.id)
        return sorted(position for position in known if position in above)
