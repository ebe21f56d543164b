"""A job that is killed at random moments, and the same command again, until it is done."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from checkpoint_action.model import Status
from checkpoint_action.runner.journal import StatePaths, load
from tests.console import environment
from tests.torture.drawn_jobs import outputs_in

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.torture.drawn_jobs import Drawn, Tree

__all__ = ["MARK", "SHORT", "Killed", "Place", "WrongError", "chosen_moment", "kill_tree", "marked"]

REPOSITORY = Path(__file__).resolve().parents[2]
MARK = "TORTURE_MARK"
SHORT = 0.12
"""Seconds; longer than most of what happens between two events."""

_LONGEST = 120.0  # seconds; only ever reached by what hangs
_LEFT = 60.0


class WrongError(Exception):
    """Something is not as promised."""


class Killed:
    """A process that ended, by a kill or by itself.

    :ivar code: the exit code of one that ended by itself.
    :ivar told: the events that it printed.
    """

    def __init__(self, code: int | None, told: list[dict[str, Any]], said: str) -> None:
        self.code = code
        self.told = told
        self.said = said

    def phase(self, job: Drawn, *, store: bool) -> str:
        """Where in a run it was when it was killed."""
        names = [event["event"] for event in self.told if event["event"] != "warning"]
        if not names:
            return "before the first word"
        last = names[-1]
        ended = [event for event in self.told if event["event"] in ("step-ended", "step-skipped", "step-restored")]
        done = {event["id"] for event in ended if event.get("status", "done") == "done"}
        kept = {step for event in self.told if event["event"] == "steps-kept" for step in event["steps"]}
        ran = {event["id"] for event in ended if event["event"] == "step-ended"}
        under_way = store and bool(ran & done - kept)
        if last == "run-ended":
            return "after the last step's end was told"
        if len(done) == len(job.steps):
            return "at the end, with uploads in flight" if under_way else "at the end, while the state is closed"
        if last == "step-retried":
            return "between two tries of a step"
        if last in ("run-started", "step-restored", "step-skipped"):
            return "while steps are restored or looked at" if store else "while steps are looked at"
        if last == "step-started" or self._runs():
            return "in a step, with an upload in flight" if under_way else "in a step"
        return "between two steps"

    def _runs(self) -> bool:
        running: set[str] = set()
        for event in self.told:
            if event["event"] == "step-started":
                running.add(event["id"])
            if event["event"] == "step-ended":
                running.discard(event["id"])
        return bool(running)


class Place:
    """A folder in which a job runs, is killed, and goes on.

    :param folder: made here.
    :param keep: where steps say that they have begun and ended; may serve several places.
    :param mark: by which all processes can be found that were started here.
    """

    def __init__(self, folder: Path, job: Drawn, keep: Path, mark: str, store: Path | None) -> None:
        folder.mkdir()
        keep.mkdir(exist_ok=True)
        self.folder = folder
        self.job = job
        self.keep = keep
        self._mark = mark
        self._store = store
        (folder / "checkpoint.yml").write_text(job.text())

    def with_store(self, store: Path) -> Place:
        """The same place, used with a store."""
        other = copy.copy(self)
        other._store = store
        return other

    def start(self, *verb: str) -> subprocess.Popen[bytes]:
        """Start the program on the job."""
        words = [*verb, "--json"]
        if not verb:
            words += ["--jobs", str(self.job.at_once)]
        if self._store is not None:
            words += ["--store", f"file://{self._store}", "--run-id", "torture"]
        with self._told.open("wb") as told, self._said.open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "checkpoint_action", *words],
                cwd=self.folder,
                env=environment({"PYTHONPATH": str(REPOSITORY), "KEEP": str(self.keep), MARK: self._mark}),
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=said,
                start_new_session=True,
            )

    @property
    def _told(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.told")

    @property
    def _said(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.said")

    def finish(self, *verb: str) -> Killed:
        """Run it to its end.

        :raises WrongError: it does not end.
        """
        process = self.start(*verb)
        try:
            process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            kill_tree(process)
            raise WrongError(f"it did not end: {self.ended(None).said}") from None
        return self.ended(process.returncode)

    def kill_at(self, seconds: float, how: str, *verb: str, events: int = 0) -> Killed:
        """Start it, and kill it after some time.

        :param events: so many events are waited for before.
        :param how: ``tool``: its own process alone; ``tool, and again at once``: the same, nothing is waited for;
            ``tree``: it and all that it has started.
        :raises WrongError: something is left over.
        """
        process = self.start(*verb)
        while events and process.poll() is None and self._told.read_bytes().count(b"\n") < events:
            time.sleep(0.003)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        if process.returncode is not None:
            return self.ended(process.returncode)
        if how == "tree":
            kill_tree(process)
        else:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if how != "tool, and again at once":
            self.see_that_nothing_is_left()
        return self.ended(None)

    def ended(self, code: int | None) -> Killed:
        """What an ended process has told."""
        lines = self._told.read_bytes().split(b"\n")[:-1]  # what comes after is a line cut short, or nothing
        told = [json.loads(line) for line in lines if line.startswith(b'{"event"')]
        return Killed(code, told, self._said.read_text("utf-8", "replace")[-600:])

    def see_that_nothing_is_left(self) -> None:
        """Wait until nothing that was started here runs any more.

        :raises WrongError: it does so for ever.
        """
        end = time.monotonic() + _LEFT
        while left := marked(self._mark):
            if time.monotonic() > end:
                raise WrongError(f"left over: {left}")
            time.sleep(0.01)

    def begun(self) -> dict[str, int]:
        """How often each step has begun."""
        try:
            lines = (self.keep / "begun").read_text().split()
        except FileNotFoundError:
            lines = []
        return {step.name: lines.count(step.name) for step in self.job.steps}

    def done(self) -> set[str]:
        """Steps that the next run would take for done."""
        records = load(StatePaths(self.folder, "drawn")).records
        return {step for step, record in records.items() if record.status is Status.DONE}

    def trees(self) -> dict[str, Tree]:
        """What is there of what each step leaves."""
        return {step.name: outputs_in(self.folder, step) for step in self.job.steps}


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a process and all below it, before any of them sees another one end."""
    found: dict[int, psutil.Process] = {}
    while True:
        new = []
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(process.pid)
            new = [one for one in (top, *top.children(recursive=True)) if one.pid not in found]
        if not new:
            break
        for one in new:
            found[one.pid] = one
            with suppress(psutil.Error):
                one.suspend()
    for one in found.values():
        with suppress(psutil.Error):
            one.kill()
    process.wait()


def marked(mark: str) -> list[str]:
    """Processes that carry a mark in their environment."""
    sign = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        with suppress(OSError):
            if sign in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                words = Path(f"/proc/{name}/cmdline").read_bytes()
                if words:  # else it has ended and nobody has asked yet
                    found.append(f"{name} {words.replace(bytes(1), b' ').decode(errors='replace')[:80]}")
    return found


def chosen_moment(
    chance: random.Random, whole: float, longest: float, kinds: Sequence[float] = (0.25, 0.6, 1.05)
) -> float:
    """Seconds after which to kill.

    :param whole: how long an undisturbed run takes.
    :param longest: what there must be room for, so that a machine that has become slower gets on.
    """
    return chance.uniform(0, max(longest, whole * chance.choice(kinds)))
