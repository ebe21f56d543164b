"""The installed console script, run as a user runs it: a process in a folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROGRAM", "Console", "lines_of", "plain", "tree"]

PROGRAM = Path(sys.executable).with_name("checkpoint-run.exe" if sys.platform == "win32" else "checkpoint-run")
_TIMEOUT = 300.0  # seconds; only ever reached by a run that hangs


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our own environment without what would change how the program behaves."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("CHECKPOINT_", "GITHUB_"))}
    return {**ours, **(extra or {})}


class Console:
    """Runs the program in one folder.

    :param folder: current folder of each run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str | bytes, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            [PROGRAM, *words],
            cwd=self.folder,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_TIMEOUT,
            check=False,
        )

    def start(self, *words: str, prefix: tuple[str, ...] = (), **options: Any) -> subprocess.Popen[str]:
        """Start it.

        :param prefix: a program that starts it.
        :param options: of ``Popen``, instead of both outputs as pipes.
        """
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [*prefix, str(PROGRAM), *words],
            cwd=self.folder,
            encoding="utf-8",
            errors="surrogateescape",
            **{"env": environment(), **streams, **options},
        )

    def script(self, text: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a bash script in which ``$CR`` is the program."""
        return subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            env=environment({"CR": str(PROGRAM)}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=_TIMEOUT,
            check=False,
            **options,
        )

    def fifo(self, name: str) -> Path:
        """A named pipe in the folder: whoever writes to it waits until somebody reads, and the other way round."""
        path = self.folder / name
        os.mkfifo(path)
        return path

    def state(self, job: str, folder: str = ".") -> dict[str, Any]:
        """The records of a job as its state file has them, by step."""
        text = (self.folder / folder / f".checkpoint-run-{job}.json").read_text("utf-8")
        steps: dict[str, Any] = json.loads(text)["steps"]
        return steps

    def recorded(self, job: str) -> dict[str, Any]:
        """What the next run would read, also after a kill: each step's record as the state files have it."""
        found = {}
        for line in (self.folder / f".checkpoint-run-{job}.journal").read_text().rstrip("\0").splitlines():
            if record := json.loads(line).get("record"):
                found[record["step"]] = record
        return found

    def statuses(self, job: str) -> dict[str, str]:
        """Status of each recorded step."""
        return {step: record["status"] for step, record in self.state(job).items()}

    def count(self, name: str) -> int:
        """How many lines a file has; steps leave one each time they run."""
        try:
            return len((self.folder / name).read_bytes().splitlines())
        except FileNotFoundError:
            return 0


def plain(text: str) -> str:
    """What is said of errors, without the codes that each of them must have."""
    said, count = re.subn(r"^(checkpoint-run: error) CPR\d{3}: ", r"\1: ", text, flags=re.MULTILINE)
    assert count == len(re.findall("^checkpoint-run: error", text, flags=re.MULTILINE)), text
    return said


def lines_of(text: str) -> list[dict[str, Any]]:
    """The JSON objects of an output, one a line."""
    return [json.loads(line) for line in text.splitlines()]


def tree(folder: Path) -> dict[str, tuple[int, int, str]]:
    """All that a folder holds: mode, time and digest of each path, its own included."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        info = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(info.st_mode) else ""
        found[str(path.relative_to(folder))] = (info.st_mode, info.st_mtime_ns, content)
    return found
