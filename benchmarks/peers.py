"""The same job of three steps in the words of several tools.

A peer that is not on PATH is reported as not installed. They come from here::

    pip install ninja doit go-task-bin rust-just
    apt-get install make parallel
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OURS", "STEPS", "STEP_SCRIPT", "TOOLS", "Tool"]

STEPS = ("a", "b", "c")
"""Ids of the steps; each leaves ``ID.out`` and needs the one before."""

STEP_SCRIPT = """\
#!/bin/sh
echo "$1" >> started
printf half > "$1.out"
sleep "${PAUSE:-2}"
printf full > "$1.out"
"""
"""The step itself, as ``./step.sh ID``."""

_MAKEFILE = """\
.DELETE_ON_ERROR:
c.out: b.out
\t./step.sh c
b.out: a.out
\t./step.sh b
a.out:
\t./step.sh a
"""

_NINJA = """\
rule step
  command = ./step.sh $id
build a.out: step
  id = a
build b.out: step a.out
  id = b
build c.out: step b.out
  id = c
default c.out
"""

_TASKFILE = """\
version: '3'
tasks:
  default: {deps: [c]}
  a: {cmds: [./step.sh a], sources: [step.sh], generates: [a.out]}
  b: {deps: [a], cmds: [./step.sh b], sources: [a.out], generates: [b.out]}
  c: {deps: [b], cmds: [./step.sh c], sources: [b.out], generates: [c.out]}
"""

_JUSTFILE = """\
c: b
    ./step.sh c
b: a
    ./step.sh b
a:
    ./step.sh a
"""

_DODO = """\
def task_step():
    before = "step.sh"
    for name in "abc":
        yield {
            "name": name,
            "actions": [f"./step.sh {name}"],
            "file_dep": [before],
            "targets": [f"{name}.out"],
        }
        before = f"{name}.out"
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool and how it is told the job.

    :param name: as people call it.
    :param argv: the command line, the same for the first run and for the next.
    :param version: words after the program's name that make it print its version.
    :param files: what it reads, by name.
    """

    name: str
    argv: tuple[str, ...]
    version: tuple[str, ...] = ("--version",)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str | None:
        """Path of the program; ``None`` where it is not installed."""
        beside = Path(sys.executable).with_name(self.argv[0])  # an environment need not be activated
        return str(beside) if beside.exists() else shutil.which(self.argv[0])

    def title(self) -> str:
        """Name and version."""
        program = self.program
        if program is None:
            return self.name
        told = subprocess.run([program, *self.version], capture_output=True, text=True, check=False)
        words = told.stdout.partition("\n")[0].split()
        return f"{self.name} {words[-1]}" if words else self.name

    def prepare(self, folder: Path) -> None:
        """Put the job into an empty folder."""
        script = folder / "step.sh"
        for name, text in {script.name: STEP_SCRIPT, **self.files}.items():
            (folder / name).write_text(text, encoding="utf-8")
        script.chmod(0o755)


def _flags() -> tuple[str, ...]:
    words = ["checkpoint-run", "--job", "three"]
    for step in STEPS:
        words += ["--step", f"{step}:./step.sh {step}", "--step-artifact", f"{step}:{step}.out"]
    return tuple(words)


OURS = Tool("checkpoint-run", _flags())

TOOLS = (
    OURS,
    Tool("GNU make", ("make",), files={"Makefile": _MAKEFILE}),
    Tool("ninja", ("ninja",), files={"build.ninja": _NINJA}),
    Tool("go-task", ("task",), files={"Taskfile.yml": _TASKFILE}),
    Tool("just", ("just",), files={"justfile": _JUSTFILE}),
    Tool("doit", ("doit",), files={"dodo.py": _DODO}),
    Tool("GNU parallel", ("parallel", "-j1", "--joblog", "joblog", "--resume-failed", "./step.sh", ":::", *STEPS)),
)
