"""Jobs drawn at random, of steps that take their time and leave something half done when they are cut off."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["KINDS", "Drawn", "DrawnStep", "Tree", "draw", "outputs_in"]

Tree = dict[str, tuple[int, bytes]]
"""Path to mode and content, where a link's content is its target and a folder's nothing."""

_START = 'echo {name} >> "$KEEP/begun"\n'
_END = '\necho {name} >> "$KEEP/ended"\n'


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of step.

    :param script: what it does for bash; ``NAME``, ``READ`` (prints what its needs have left) and ``NAP`` (waits) are
        filled in.
    :param outputs: what it leaves.
    :param more: further keys of the job file.
    """

    script: str
    outputs: tuple[str, ...] = ("NAME.out",)
    more: tuple[tuple[str, Any], ...] = ()


_WHOLE = "{ READ; echo full NAME; } > NAME.new; mv NAME.new NAME.out"
_RETRY = ("retry", {"max": 6, "backoff": 0.01, "on": ["error", "timeout"]})

KINDS: dict[str, Kind] = {
    "file": Kind(f"printf half > NAME.out; NAP; {_WHOLE}"),
    "file in pieces": Kind("READ > NAME.out; for n in 1 2 3 4; do NAP; echo NAME $n >> NAME.out; done"),
    "large file": Kind(
        "head -c 2500000 /dev/urandom > NAME.out; NAP; head -c 2500000 /dev/zero | tr '\\0' N > NAME.out"
    ),
    "folder": Kind(
        "rm -rf NAME.d; mkdir -p NAME.d/sub NAME.d/empty; READ > NAME.d/x; NAP; ln -s x NAME.d/link; "
        "ln -s nowhere NAME.d/dangling; NAP; echo full NAME > NAME.d/sub/y; chmod 755 NAME.d/sub/y",
        ("NAME.d/",),
    ),
    "many files": Kind(
        "mkdir -p NAME.d; for n in $(seq 120); do echo half > NAME.d/$n; echo full NAME $n > NAME.d/$n; done; NAP",
        ("NAME.d/*",),
    ),
    "link": Kind(
        "ln -sfn half NAME.out; echo half > half; NAP; echo full NAME > NAME.in; ln -sfn NAME.in NAME.out",
        ("NAME.out", "NAME.in"),
    ),
    "failing first": Kind(
        f'printf half > NAME.out; NAP; [ "$CHECKPOINT_TRY" -gt 1 ] || exit 3; {_WHOLE}', more=(_RETRY,)
    ),
    "hanging first": Kind(
        f'printf half > NAME.out; [ "$CHECKPOINT_TRY" -gt 1 ] || sleep 60; {_WHOLE}', more=(_RETRY, ("timeout", "1s"))
    ),
    "going on": Kind(
        "touch NAME.part; while [ $(wc -l < NAME.part) -lt 6 ]; do NAP; echo NAME >> NAME.part; done; "
        "{ READ; cat NAME.part; } > NAME.new; mv NAME.new NAME.out",
        more=(("partial", ["NAME.part"]),),
    ),
    "in the background": Kind(f"(NAP; echo half > NAME.out) & (trap '' TERM; NAP) & wait; {_WHOLE}"),
    "handing on": Kind(
        f'echo "said=by NAME" >> "$GITHUB_OUTPUT"; NAP; echo "VALUE_NAME=of NAME" >> "$GITHUB_ENV"; {_WHOLE}'
    ),
}


@dataclass(frozen=True, slots=True)
class DrawnStep:
    """A step of a drawn job.

    :param outputs: files, or folders with a slash at their end.
    """

    name: str
    kind: str
    needs: tuple[str, ...]
    script: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """What it leaves, as the job file says it."""
        return tuple(pattern.replace("NAME", self.name) for pattern in KINDS[self.kind].outputs)

    def value(self) -> dict[str, Any]:
        """For the job file."""
        more = json.loads(json.dumps(dict(KINDS[self.kind].more)).replace("NAME", self.name))
        head = {"id": self.name, "run": self.script, "needs": list(self.needs), "inputs": []}
        return {**head, "outputs": list(self.outputs), **more}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A job.

    :param at_once: how many steps may run at once.
    """

    steps: tuple[DrawnStep, ...]
    at_once: int

    def text(self) -> str:
        """The job file."""
        return json.dumps({"job": "drawn", "steps": [step.value() for step in self.steps]}, indent=1)

    def steps_text(self) -> str:
        """The steps for the action."""
        return json.dumps([step.value() for step in self.steps])


def draw(chance: random.Random, least: int = 3, most: int = 7) -> Drawn:
    """Draw a job of so many steps."""
    at_once = chance.choice((1, 1, 2, 3))
    chained = chance.random() < 0.3
    steps: list[DrawnStep] = []
    for number in range(chance.randint(least, most)):
        name = f"s{number}"
        kind = chance.choice(sorted(KINDS))
        earlier = [step.name for step in steps]
        needs = (
            earlier[-1:] if chained else sorted(chance.sample(earlier, min(len(earlier), chance.choice((0, 1, 1, 2)))))
        )
        read = "; ".join(_reading(step) for step in steps if step.name in needs) or "true"
        nap = f"sleep 0.0{chance.randint(1, 6)}"
        script = KINDS[kind].script.replace("READ", read).replace("NAP", nap).replace("NAME", name)
        steps.append(DrawnStep(name, kind, tuple(needs), f"{_START}{script}{_END}".replace("{name}", name)))
    return Drawn(tuple(steps), at_once)


def _reading(step: DrawnStep) -> str:
    """What prints something of all that a step has left and handed on."""
    if step.kind == "folder":
        return f"cat {step.name}.d/sub/y"
    if step.kind == "many files":
        return f"cat {step.name}.d/*"
    if step.kind == "link":
        return f"readlink {step.name}.out"
    value = f'; echo "$VALUE_{step.name}"' if step.kind == "handing on" else ""
    return f"tail -c 40 {step.name}.out{value}"


def outputs_in(folder: Path, step: DrawnStep) -> Tree:
    """What is there of what a step leaves."""
    found: Tree = {}

    def take(path: str) -> None:
        try:
            info = os.lstat(folder / path)
        except FileNotFoundError:
            return
        read: Callable[[], bytes] = lambda: b""  # noqa: E731  # what a folder has for content
        if stat.S_ISLNK(info.st_mode):
            read = lambda: os.readlink(folder / path).encode()  # noqa: E731
        elif stat.S_ISREG(info.st_mode):
            read = (folder / path).read_bytes
        found[path] = (info.st_mode, read())
        if stat.S_ISDIR(info.st_mode):
            for name in sorted(os.listdir(folder / path)):
                take(f"{path}/{name}")

    for pattern in step.outputs:
        take(pattern.rstrip("/*"))
    return found
