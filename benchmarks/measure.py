"""Commands in a folder of their own, run and timed alike by the benchmarks that compare wall times."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Folder", "Spent", "titled"]

_UNSET = ("CHECKPOINT_", "GITHUB_", "PYTHON")  # PYTHON: also where it is told not to keep compiled modules


class Spent(NamedTuple):
    """Seconds that a command took.

    :param wall: by the wall clock.
    :param processor: of all its processes together.
    """

    wall: float
    processor: float


def titled(name: str, *argv: str) -> str:
    """A program's name with its version, the first number with a point on the first line that it prints.

    :param argv: what makes it print that; its name and ``--version`` where there is none.
    """
    try:
        done = subprocess.run(
            argv or (name, "--version"), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return name
    found = re.search(r"\d+\.\d[\w.+-]*", (done.stdout or done.stderr).partition("\n")[0])
    return f"{name} {found[0]}" if found else name


class Folder:
    """Runs commands in one folder, without what the environment would change in them.

    :ivar program: the installed checkpoint-run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        beside = Path(sys.executable).with_name("checkpoint-run")
        found = str(beside) if beside.exists() else shutil.which("checkpoint-run")
        if found is None:
            raise SystemExit("checkpoint-run is not installed")
        self.program = found
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(_UNSET)},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def run(self, argv: Sequence[str]) -> bytes:
        """What a command prints; one that fails ends the benchmark."""
        done = subprocess.run(
            argv, cwd=self.path, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{shlex.join(argv)}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def measure(self, argv: Sequence[str], check: Callable[[bytes], None] | None = None) -> Spent:
        """What a command takes.

        :param check: looks at what it has printed.
        """
        before, begin = os.times(), time.perf_counter()
        said = self.run(argv)
        seconds, after = time.perf_counter() - begin, os.times()
        if check is not None:
            check(said)
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return Spent(seconds, used)
