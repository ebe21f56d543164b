"""Small jobs that are run while something is scarce, and what has to be so after each such run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from checkpoint_action.runner.fingerprint import NOT_AS_LEFT
from checkpoint_action.runner.journal import StatePaths, load
from tests.console import environment
from tests.torture.network_machines import files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["SCENES", "STEPS", "Room", "Run", "Scene", "store_words"]

STEPS = ("one", "two", "three")
JOB = """\
job: demo
steps:
  - id: one
    run: echo ran >> "$KEEP/one"; mkdir -p d; seq 3000 > d/numbers; echo said one
    inputs: []
    outputs: [d/]
  - id: two
    run: echo ran >> "$KEEP/two"; cksum d/numbers > two.txt; echo "two=2" >> "$GITHUB_OUTPUT"; echo said two
    inputs: []
    outputs: [two.txt]
  - id: three
    run: echo ran >> "$KEEP/three"; cat two.txt > three.txt; echo part >> part; test -e "$KEEP/fixed" || exit 3
    inputs: []
    outputs: [three.txt]
    partial: [part]
"""
_HARD_LIMIT = 240.0


@dataclass(frozen=True)
class Run:
    """What came of a run; ``code`` is ``None`` where there was no end."""

    code: int | None
    said: str
    seconds: float

    @property
    def trace(self) -> bool:
        """Whether it shows what only its makers should see."""
        return "Traceback" in self.said or "CPR901" in self.said


class Room:
    """A folder with a job in it.

    :ivar keep: where steps leave a line each time they run, ``$KEEP``.
    :ivar state: the state folder, apart from the job's.
    :ivar store: a folder that serves as a store.
    """

    def __init__(self, folder: Path, package: Path) -> None:
        self.folder = folder
        self.package = package
        self.work, self.keep, self.state = folder / "work", folder / "keep", folder / "state"
        self.store = folder / "store"
        for path in (self.work, self.keep):
            path.mkdir(parents=True)
        (self.work / "checkpoint.yml").write_text(JOB)

    def fix(self) -> None:
        """Let step three succeed from now on."""
        (self.keep / "fixed").touch()

    def words(self, *more: str) -> list[str]:
        """The command line of a run."""
        logs, report = str(self.folder / "logs"), str(self.folder / "report.html")
        return ["--state-dir", str(self.state), "--logs-dir", logs, "--report", report, *more]

    def run(
        self,
        words: Sequence[str],
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        limit: float = _HARD_LIMIT,
    ) -> Run:
        """Run the program to its end, or end it.

        :param prefix: a program that starts it.
        """
        ours = {"KEEP": str(self.keep), "PYTHONPATH": str(self.package), "TMPDIR": str(self.folder)}
        begin = time.monotonic()
        with (self.folder / "said").open("w+b") as said:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "checkpoint_action", *words],
                cwd=self.work,
                env=environment({**ours, **(env or {})}),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code: int | None = None
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                end_all(process)
            said.seek(0)
            return Run(code, said.read().decode("utf-8", "replace"), time.monotonic() - begin)

    def ran(self) -> dict[str, int]:
        """How often each step has run."""
        paths = {step: self.keep / step for step in STEPS}
        return {step: len(path.read_text().splitlines()) if path.exists() else 0 for step, path in paths.items()}

    def done(self, *, known: bool = False) -> set[str]:
        """The steps that count as done for whoever reads the state.

        :param known: only those of which all that they left, and that they started from, could be read then; the
            others run again.
        """
        if not self.state.exists():
            return set()
        records = load(StatePaths(self.state, "demo")).records
        done = {step: record for step, record in records.items() if record.status.value == "done"}
        return {
            step
            for step, record in done.items()
            if not known
            or (
                all(entry.sha256 for entry in record.layer.entries if entry.type == "file")
                and NOT_AS_LEFT not in record.parts.values()
            )
        }

    def fresh_machine(self) -> None:
        """Have nothing but the job, ``$KEEP`` and the store."""
        for path in (self.work, self.state, self.folder / "logs"):
            shutil.rmtree(path, ignore_errors=True)
        self.work.mkdir()
        (self.work / "checkpoint.yml").write_text(JOB)

    def files(self) -> dict[str, tuple[int, str]]:
        """What the job has left, but for ``part``, which grows with each try."""
        return {name: found for name, found in files_of(self.work).items() if name != "part"}


def end_all(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a process and all below it."""
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@dataclass(frozen=True)
class Scene:
    """One thing that is done with the program while a call fails.

    :param name: for the table.
    :param prepare: what comes before.
    :param words: the command line.
    :param places: where calls count.
    :param codes: what the run may end with.
    :param fails: whether its last step fails.
    """

    name: str
    prepare: Callable[[Room], object]
    words: Callable[[Room], Sequence[str]]
    places: Callable[[Room], Sequence[Path | str]]
    codes: frozenset[int | None]
    fails: bool = False


def store_words(room: Room, *more: str) -> list[str]:
    """The command line of a run with the room's store."""
    return room.words("--store", room.store.as_uri(), "--run-id", "night", *more)


def _fixed(room: Room) -> None:
    room.fix()


def _failed_before(room: Room) -> None:
    assert room.run(room.words()).code == 1
    room.fix()


def _kept_before(room: Room) -> None:
    assert room.run(store_words(room)).code == 1
    room.fix()
    room.fresh_machine()


def _ours(room: Room) -> list[Path | str]:
    return [room.state, room.folder / "logs", room.folder / "report.html", room.folder / ".cpr-"]


SCENES = (
    Scene("a first run, local state", _fixed, Room.words, _ours, frozenset({0, 5})),
    Scene("a run whose last step fails, local state", lambda _room: None, Room.words, _ours, frozenset({1, 5}), True),
    Scene("a run after a failed one, local state", _failed_before, Room.words, _ours, frozenset({0, 5})),
    Scene("a first run: the workspace", _fixed, Room.words, lambda room: [room.work], frozenset({0})),
    Scene(
        "a run after a failed one: the workspace", _failed_before, Room.words, lambda room: [room.work], frozenset({0})
    ),
    Scene("saving: the workspace", _fixed, store_words, lambda room: [room.work], frozenset({0})),
    Scene("saving: the store's folder", _fixed, store_words, lambda room: [room.store], frozenset({0})),
    Scene(
        "saving: archives on their way",
        _fixed,
        store_words,
        lambda room: [room.state / ".checkpoint-run-demo.archives"],
        frozenset({0, 5}),
    ),
    Scene("putting back: the workspace", _kept_before, store_words, lambda room: [room.work], frozenset({0})),
    Scene("putting back: the store's folder", _kept_before, store_words, lambda room: [room.store], frozenset({0})),
    Scene(
        "putting back: what is unpacked",
        _kept_before,
        store_words,
        lambda room: [room.state / ".checkpoint-run-demo.archives"],
        frozenset({0, 5}),
    ),
)
