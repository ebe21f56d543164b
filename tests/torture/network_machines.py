"""Fresh machines on which one small job is run through the real program, and what each run came to."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import psutil

from tests.action.machine import Workflow
from tests.action.manifest import ROOT
from tests.console import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.actions_service.server import ActionsService

__all__ = ["EXPECTED_CODE", "Came", "Site", "copies", "files_of"]

STEPS = """\
- id: one
  run: echo ran >> "$KEEP/one"; mkdir -p d; cp "$KEEP/bytes" d/bytes; seq 500 > d/numbers; ln -sf numbers d/link
  inputs: []
- id: two
  run: echo ran >> "$KEEP/two"; cksum d/bytes d/numbers > two.txt; echo edit >> d/numbers; chmod 755 two.txt
  inputs: []
- id: three
  run: echo ran >> "$KEEP/three"; cat two.txt > three.txt; tail -n 1 d/link >> three.txt; test -e "$KEEP/fixed"
  inputs: []
"""
EXPECTED_CODE = {False: 1, True: 0}
"""What the job ends with before step three is fixed, and after."""

_HARD_LIMIT = 240.0
"""Seconds; a run that is not through by then hangs. With the limits of :data:`_BRISK` none takes a quarter of it."""

_LOOK = 0.005

_BRISK: Sequence[tuple[str, str, str]] = (
    ("toolkit/exchange.py", r"connect: float = 10\.0", "connect: float = 2.0"),
    ("toolkit/exchange.py", r"idle: float = 30\.0", "idle: float = 2.0"),
    ("toolkit/exchange.py", r"total: float = 60\.0", "total: float = 6.0"),
    ("toolkit/exchange.py", r"first: float = 1\.0", "first: float = 0.02"),
    ("toolkit/exchange.py", r"retry_after_cap: float = 60\.0", "retry_after_cap: float = 0.5"),
    ("toolkit/cache.py", r"LOOKUP_SECONDS = 90\.0", "LOOKUP_SECONDS = 8.0"),
    ("toolkit/cache.py", r"TRANSFER_SECONDS = 1800\.0", "TRANSFER_SECONDS = 20.0"),
    ("toolkit/artifact.py", r"CALL_SECONDS = 90\.0", "CALL_SECONDS = 8.0"),
    ("toolkit/artifact.py", r"TRANSFER_SECONDS = 1800\.0", "TRANSFER_SECONDS = 20.0"),
    ("store/bounded.py", r"GRACE = 5\.0", "GRACE = 1.0"),
    ("store/objects.py", r"_CALL_SECONDS = 60\.0", "_CALL_SECONDS = 6.0"),
    ("store/objects.py", r"_TRANSFER_SECONDS = 3600\.0", "_TRANSFER_SECONDS = 20.0"),
    ("store/objects.py", r"_PAUSES = \(0\.2, 1\.0, 3\.0\)", "_PAUSES = (0.02, 0.05, 0.1)"),
    ("store/objects.py", r"_BROKE_WITHIN = 10\.0", "_BROKE_WITHIN = 1.0"),
    ("store/folder.py", r"_CALL_SECONDS = 60\.0", "_CALL_SECONDS = 3.0"),
    ("store/folder.py", r"_TRANSFER_SECONDS = 3600\.0", "_TRANSFER_SECONDS = 8.0"),
    ("store/buckets.py", r"_REQUEST_SECONDS = 120", "_REQUEST_SECONDS = 4"),
    ("store/buckets.py", r'"connect_timeout": "10s"', '"connect_timeout": "2s"'),
    ("store/resuming.py", r"_LONGEST_PAUSE = 30\.0", "_LONGEST_PAUSE = 0.1"),
    ("runner/uploads.py", r"_APART = 1\.1", "_APART = 0.0"),
)
"""The tool's own limits, made about ten times shorter in a copy: the same code with less patience."""


def copies(folder: Path) -> tuple[Path, Path]:
    """Two copies of the package and of what the action starts, as they are now: as it is, and one that waits less."""
    calm, brisk = folder / "calm", folder / "brisk"
    for copy in (calm, brisk):
        for name in ("checkpoint_action", "runtime"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, pattern, instead in _BRISK:
        path = brisk / "checkpoint_action" / name
        text, count = re.subn(pattern, instead, path.read_text("utf-8"))
        assert count == 1, (name, pattern, count)
        path.write_text(text, "utf-8")
    return calm, brisk


@dataclass(frozen=True)
class Came:
    """What came of a run.

    :ivar code: its exit code, ``None`` for a run that had to be ended.
    :ivar said: all it printed, commands that mask secrets left out.
    :ivar files: what lies in the workspace.
    """

    code: int | None
    said: str
    files: Mapping[str, tuple[int, str]]
    seconds: float

    @property
    def warned(self) -> bool:
        """Whether it said that something is not as it should be."""
        return "warning" in self.said or "::error" in self.said


class Site:
    """One job and its machines, one after the other; ``$KEEP`` is what they share.

    :param size: bytes that step one leaves.
    :param steps: with a ``steps:`` text of another job.
    """

    def __init__(self, folder: Path, size: int, tools: Path) -> None:
        self.folder = folder
        self.keep = folder / "keep"
        self.keep.mkdir(parents=True)
        self.tools = tools
        (self.keep / "bytes").write_bytes(random.Random(size).randbytes(size))
        self._machines = 0
        self._workflow: Workflow | None = None

    def fix(self) -> None:
        """Let step three succeed from now on."""
        (self.keep / "fixed").touch()

    def ran(self, step: str) -> int:
        """How often a step has run."""
        path = self.keep / step
        return len(path.read_text().splitlines()) if path.exists() else 0

    def use_action(
        self,
        service: ActionsService,
        copy: Path,
        runtime: Mapping[str, str],
        env: Mapping[str, str],
        inputs: Mapping[str, str],
    ) -> Came:
        """Run the job through the action's Python step on the next machine."""
        if self._workflow is None:
            self._workflow = Workflow(self.folder / "workflow", service, self.tools, copy)
            self._workflow.keep = self.keep
        workflow = self._workflow
        workflow.action = copy
        workflow.runtime = dict(runtime)
        begin = time.monotonic()
        machine = workflow.machine()
        running = machine.start(STEPS, env=env, **inputs)
        code = _end_of(running.process)
        seconds = time.monotonic() - begin
        machine.end()
        lines = [line for line in running.log.splitlines() if not line.startswith("::add-mask::")]
        return Came(code, "\n".join(lines), files_of(machine.workspace), seconds)

    def use_program(self, copy: Path, words: Sequence[str], env: Mapping[str, str], place: Path | None = None) -> Came:
        """Run the program on the next machine, or on one that has run before.

        :param place: the other machine's folder.
        """
        place = self.next_machine() if place is None else place
        begin = time.monotonic()
        with (self.folder / "said").open("w+b") as said:
            code = _end_of(self._start(copy, words, env, place, said))
            said.seek(0)
            text = said.read().decode("utf-8", "replace")
        return Came(code, text, files_of(place), time.monotonic() - begin)

    def kill_program(
        self, copy: Path, words: Sequence[str], env: Mapping[str, str], place: Path, when: Callable[[], bool]
    ) -> bool:
        """Kill the program as soon as something is so; whether it still ran."""
        with (self.folder / "said").open("w+b") as said:
            process = self._start(copy, words, env, place, said)
            while process.poll() is None and not when():
                time.sleep(_LOOK)
            process.kill()
            return process.wait() < 0

    def _start(
        self, copy: Path, words: Sequence[str], env: Mapping[str, str], place: Path, said: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        ours = {"KEEP": str(self.keep), "PYTHONPATH": str(copy), "TMPDIR": str(self.folder)}
        return subprocess.Popen(
            [sys.executable, "-m", "checkpoint_action", *words],
            cwd=place,
            env=environment({**ours, **env}),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def next_machine(self, steps: str = STEPS) -> Path:
        """A fresh machine's folder, with the job file."""
        self._machines += 1
        place = self.folder / f"machine-{self._machines}"
        place.mkdir()
        lines = "".join(f"  {line}\n" for line in steps.splitlines())
        (place / "checkpoint.yml").write_text(f"job: demo\nsteps:\n{lines}")
        return place


def files_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Type and mode, and content, of all below a folder but what the tool keeps beside the job."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith((".checkpoint-run-", "checkpoint.yml", "src")):
            continue
        mode = path.lstat().st_mode
        content = os.readlink(path) if stat.S_ISLNK(mode) else ""
        if stat.S_ISREG(mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[name] = (mode, content)
    return found


def _end_of(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code; a process that does not end is ended, with all below it."""
    try:
        return process.wait(_HARD_LIMIT)
    except subprocess.TimeoutExpired:
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
