"""Many commands in the words of several tools: one after the other, and several at once.

A peer that is not on PATH is reported as not installed. They come from here::

    pip install doit go-task-bin rust-just
    apt-get install make parallel
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.peers import Tool

__all__ = ["FLOORS", "RECORDED", "TRIVIAL", "Contestant", "in_a_row", "job_file", "python", "side_by_side"]

TRIVIAL = "true;"
"""A command that does nothing. With the semicolon make takes a shell for it, as all the others do."""

_SPAWNING = """
import os
for _ in range({count}):
    os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "true;"], os.environ), 0)
"""
_POPEN = """
import subprocess
for _ in range({count}):
    subprocess.Popen(["/bin/sh", "-c", "true;"], stdin=subprocess.DEVNULL, start_new_session=True).wait()
"""
_SYNCING = """
import os
number = os.open("journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for _ in range({count}):
    os.write(number, b"x" * 600)
    os.fsync(number)
"""
FLOORS = {
    "Python: `sh -c` by `os.posix_spawn`": _SPAWNING,
    "Python: `sh -c` by `subprocess.Popen`": _POPEN,
    "Python: 600 bytes and `fsync`": _SYNCING,
}
"""What no such tool in Python goes below, by name: a script with the number of steps to be filled in."""

RECORDED = "Python that runs and records them, and nothing else"
"""The name of `step_floor.py`."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A tool with its list of commands.

    :param label: how the table names it, behind its name and version.
    :param most: how many times as long as it ours may take; 0: it must take longer; ``None`` without a goal.
    """

    tool: Tool
    label: str = ""
    most: float | None = None

    def title(self) -> str:
        """How the table names it."""
        return f"{self.tool.title()}{self.label}"


def job_file(count: int) -> str:
    """A job of trivial steps for ``sh``, a chain as any job file is."""
    lines = ["job: row", "shell: sh", "steps:"]
    lines += [f"  - {{id: s{number}, run: '{TRIVIAL}'}}" for number in range(count)]
    return "\n".join(lines) + "\n"


def _flags(count: int, command: str) -> list[str]:
    words = []
    for number in range(count):
        words += ["--step", f"s{number}:{command}"]
    return words


def in_a_row(count: int) -> tuple[list[Contestant], list[Contestant]]:
    """Ours and the others with as many trivial commands, one after the other."""
    shell = f"sh -c '{TRIVIAL}'"
    ours = ("checkpoint-run", "--quiet", "--job", "row")
    dodo = f"def task_step():\n    for number in range({count}):\n        "
    dodo += f"yield {{'name': str(number), 'actions': ['{TRIVIAL}']}}\n"
    task = "version: '3'\nsilent: true\ntasks:\n  default:\n    cmds:\n" + f'      - "{shell}"\n' * count
    return [
        Contestant(Tool("checkpoint-run", (*ours, *_flags(count, TRIVIAL))), ", `--step`"),
        Contestant(
            Tool("checkpoint-run", ours, files={"checkpoint.yml": job_file(count)}), ", a job file with `shell: sh`"
        ),
    ], [
        Contestant(_make(f"\t@{TRIVIAL}\n" * count), "", 1.3),
        Contestant(_make("\t@true\n" * count), ", which needs no shell for `true`"),
        Contestant(Tool("go-task", ("task",), files={"Taskfile.yml": task}), "", 0),
        Contestant(Tool("just", ("just",), files={"justfile": "all:\n" + f"    @{TRIVIAL}\n" * count})),
        Contestant(Tool("doit", ("doit",), files={"dodo.py": dodo}), "", 0),
        Contestant(
            Tool(
                "GNU parallel",
                ("parallel", "-j1", "--joblog", "joblog", "-a", "commands"),
                files={"commands": f"{TRIVIAL}\n" * count},
            ),
            " `-j1 --joblog`",
            0,
        ),
    ]


def _make(recipe: str) -> Tool:
    return Tool("GNU make", ("make", "-s"), files={"Makefile": f"all:\n{recipe}"})


def side_by_side(count: int, jobs: int, command: str) -> tuple[Contestant, list[Contestant]]:
    """Ours and the others with commands that need nothing of each other.

    :param jobs: how many may run at once.
    """
    names = " ".join(f"s{number}" for number in range(count))
    makefile = f"all: {names}\n.PHONY: all {names}\n{names}:\n\t@{command}\n"
    return Contestant(
        Tool("checkpoint-run", ("checkpoint-run", "--quiet", "--job", "side", f"-j{jobs}", *_flags(count, command)))
    ), [
        Contestant(
            Tool(
                "GNU parallel", ("parallel", f"-j{jobs}", "-a", "commands"), files={"commands": f"{command}\n" * count}
            ),
            f" `-j{jobs}`",
            1.1,
        ),
        Contestant(Tool("GNU make", ("make", "-s", f"-j{jobs}"), files={"Makefile": makefile}), f" `-j{jobs}`", 1.1),
    ]


def python(script: str) -> tuple[str, ...]:
    """A command line that runs a script."""
    return (sys.executable, "-c", script)
