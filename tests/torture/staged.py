"""A job of real commands, killed in its stages until it is through, held against the same commands without the tool."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from checkpoint_action.model import Status
from checkpoint_action.runner.journal import StatePaths, load
from tests.console import Console, environment

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from tests.torture.outcome import Outcome

__all__ = ["Stage", "Thing", "end_all", "interrupted"]

_JOB = "real"
_LONGEST = 3600.0  # seconds; only ever reached by a run that hangs
_LONGEST_AFTER = 60.0  # likewise, for what the tool's own death leaves running
_LOOK = 0.005


@dataclass(frozen=True, slots=True)
class Stage:
    """One command and the path it leaves.

    :param command: for bash, in the folder of the work; ``$GIVEN`` is the folder of what was there before,
        ``$PYTHON`` the Python that runs this.
    """

    name: str
    command: str
    output: str


@dataclass(frozen=True, slots=True)
class Thing:
    """Real work in stages.

    :param result: the path whose content is what counts in the end.
    :param killed_in: in how many of the stages there is a kill, each chosen by chance; none: in all of them.
    :param kills: how often in each of these, at least once.
    """

    name: str
    stages: Sequence[Stage]
    result: str
    killed_in: int | None = None
    kills: int = 2


def interrupted(thing: Thing, given: Path, folder: Path, chance: random.Random, outcome: Outcome) -> None:
    """Do the work without the tool, then with it and with kills, in a folder of the same name.

    :param given: what ``$GIVEN`` names; nothing is written there.
    :param folder: for all that is made; emptied again.
    """
    work, begun = folder / "work", folder / "begun"
    env = {"GIVEN": str(given), "BEGUN": str(begun), "SOURCE_DATE_EPOCH": "1700000000"}
    env["PYTHON"] = sys.executable
    seconds = _without_us(thing, work, env)
    wanted = _content(work / thing.result)
    shutil.rmtree(work)
    begun.unlink()
    work.mkdir()
    (work / "checkpoint.yml").write_text(_job_file(thing))
    run = _Killed(thing, work, begun, env, outcome)
    chosen = [stage.name for stage in thing.stages]
    if thing.killed_in is not None:
        chosen = [name for name in chosen if name in chance.sample(chosen, min(thing.killed_in, len(chosen)))]
    for name in chosen:
        for latest in (0.2, *[0.7] * (thing.kills - 1)):  # the first so early that it is sure to come in time
            run.once(name, chance.uniform(0, latest) * seconds[name], alone=chance.random() < 0.5)
    run.to_the_end()
    if (found := _content(work / thing.result)) != wanted:
        differ = sorted(path for path in {*found, *wanted} if found.get(path) != wanted.get(path))
        outcome.faults.append(f"{thing.name}: not what comes out without us: {', '.join(differ[:10])}")
    outcome.tried[f"{thing.name}: paths compared"] += len(wanted)
    shutil.rmtree(work)
    begun.unlink()


def _without_us(thing: Thing, work: Path, env: Mapping[str, str]) -> dict[str, float]:
    """Seconds that each stage takes."""
    work.mkdir()
    seconds = {}
    for stage in thing.stages:
        start = time.monotonic()
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", _script(stage)],
            cwd=work,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST,
            check=False,
        )
        if done.returncode:
            said = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
            raise RuntimeError(f"{thing.name}: {stage.name} fails without us: {said}")
        seconds[stage.name] = time.monotonic() - start
    return seconds


def _script(stage: Stage) -> str:
    return f'echo {stage.name} >> "$BEGUN"\n{stage.command}'


def _job_file(thing: Thing) -> str:
    lines = [f"job: {_JOB}", "steps:"]
    for stage in thing.stages:
        lines += [f"- id: {stage.name}", f"  outputs: [{stage.output}]", "  run: |"]
        lines += [f"    {line}" for line in _script(stage).splitlines()]
    return "\n".join(lines) + "\n"


class _Killed:
    """Runs of one job that are killed, and what may never happen by that."""

    def __init__(self, thing: Thing, work: Path, begun: Path, env: Mapping[str, str], outcome: Outcome) -> None:
        self._thing = thing
        self._work = work
        self._begun = begun
        self._env = env
        self._outcome = outcome
        self._settled: dict[str, int] = {}  # how often a step had begun when it was first seen to be done

    def once(self, stage: str, seconds: float, *, alone: bool) -> None:
        """Run until the stage has been at work for that long, then kill.

        :param alone: only the tool; else all that it has started dies in the same moment.
        """
        if stage in self._settled:
            self._outcome.tried["kill that came too late, as the stage was done"] += 1
            return
        before = self._count(stage)
        process = self._start()
        deadline = time.monotonic() + _LONGEST
        while self._count(stage) == before and process.poll() is None:
            if time.monotonic() > deadline:
                self._fault(f"{stage} is not reached")
                break
            time.sleep(_LOOK)
        time.sleep(seconds)
        over = process.poll() is not None
        left = end_all(process.pid, alone=alone)
        process.wait()
        if left:
            self._fault(f"{stage}: still running after the tool was killed: {left}")
        if not over:
            self._outcome.tried[f"{self._thing.name}: kill -9 of the {'tool alone' if alone else 'whole machine'}"] += 1
        self._look()

    def to_the_end(self) -> None:
        """Run what is left, and once more when nothing is."""
        for again in (False, True):
            count = sum(self._count(stage.name) for stage in self._thing.stages)
            process = self._start()
            code = process.wait(_LONGEST)
            if code:
                self._fault(f"exit code {code}: {(self._work.parent / 'said').read_text(errors='replace')[-1000:]}")
            self._look()
            if again and sum(self._count(stage.name) for stage in self._thing.stages) != count:
                self._fault("something was done again that was done")
        self._outcome.tried[f"{self._thing.name}: stages"] += len(self._thing.stages)

    def _start(self) -> subprocess.Popen[str]:
        with (self._work.parent / "said").open("wb") as said:
            return Console(self._work).start("--quiet", env=environment(self._env), stdout=said, stderr=said)

    def _look(self) -> None:
        """A stage once recorded as done stays so, and never begins again."""
        records = load(StatePaths(self._work, _JOB)).records
        done = {name for name, record in records.items() if record.status is Status.DONE}
        for name, count in self._settled.items():
            if name not in done:
                self._fault(f"{name} was done, and is so no more")
            if self._count(name) != count:
                self._fault(f"{name} was done, and began again")
        self._settled = {name: self._count(name) for name in done}

    def _count(self, stage: str) -> int:
        return self._begun.read_text().split().count(stage) if self._begun.exists() else 0

    def _fault(self, text: str) -> None:
        self._outcome.faults.append(f"{self._thing.name}: {text}")


def end_all(pid: int, *, alone: bool = False) -> list[str]:
    """SIGKILL a process and all that it has started.

    :param alone: only the process itself: what it has started is to end without our help.
    :returns: what has not ended.
    """
    try:
        first = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return []
    stopped: dict[int, psutil.Process] = {}
    found = [first]
    while found:  # nothing new can come from what is stopped
        for process in found:
            stopped[process.pid] = process
            _quietly(process, "suspend")
        try:
            found = [child for child in first.children(recursive=True) if child.pid not in stopped]
        except psutil.NoSuchProcess:
            found = []
    _quietly(first, "kill")
    for process in stopped.values():
        if process is not first:
            _quietly(process, "resume" if alone else "kill")
    _gone, left = psutil.wait_procs([process for process in stopped.values() if process is not first], _LONGEST_AFTER)
    return [str(process) for process in left]


def _quietly(process: psutil.Process, what: str) -> None:
    with suppress(psutil.NoSuchProcess):  # it was quicker
        getattr(process, what)()


def _content(folder: Path) -> dict[str, tuple[int, str]]:
    """Kind, mode and content of each path, without times."""
    found = {}
    for at, _folders, names in os.walk(folder):
        for path in [Path(at), *(Path(at, name) for name in names)]:
            info = path.lstat()
            if path.is_symlink():
                said = f"-> {path.readlink()}"
            else:
                said = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path.relative_to(folder))] = (info.st_mode, said)
    return found
