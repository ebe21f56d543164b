"""A step that prints a lot: throughput beside `tee`, and what it costs in memory.

::

    python -m benchmarks.output                       1 GiB, five rounds
    python -m benchmarks.output --folder /dev/shm     without the disk

The same producer runs as a step of checkpoint-run, which keeps a log and hands everything on to its standard output,
and as `producer | tee log`; both with their standard output to /dev/null. The two alternate, so that what else the
machine does hits both. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.lines import Line, at_most, below, load_now
from benchmarks.measure import titled

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Round", "lines", "main"]

_PRODUCERS = {
    "tr": "head -c {size} /dev/zero | tr '\\0' x",  # one endless line
    "yes": "yes 'a line of output of the usual length, as a compiler or a test runner prints it' | head -c {size}",
}
_KINDS = {"tr": "one endless line", "yes": "ordinary lines"}
_MIB = 1 << 20
_MOST_RATIO = 1.4  # times tee
_MOST_GROWTH = 8.0  # MiB
_SAMPLE = 0.02  # seconds between looks at the memory


@dataclass(frozen=True, slots=True)
class Round:
    """One run.

    :param seconds: by the wall clock.
    :param processor: seconds of processor time of all its processes.
    :param memory: peak resident memory of the first process, MiB.
    """

    seconds: float
    processor: float
    memory: float


class _Peak(threading.Thread):
    """Looks at the peak memory of a process (Linux) until it ends; what rusage says would count its children in."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status = Path(f"/proc/{pid}/status")
        self.ended = threading.Event()
        self.mib = 0.0

    def run(self) -> None:
        while not self.ended.wait(_SAMPLE):
            try:
                text = self._status.read_text(encoding="ascii", errors="replace")
            except OSError:
                return
            for line in text.splitlines():
                if line.startswith("VmHWM:"):
                    self.mib = max(self.mib, int(line.split()[1]) / 1024)


def _measure(argv: Sequence[str], folder: Path) -> Round:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHECKPOINT_", "GITHUB_"))}
    before = os.times()
    begin = time.monotonic()
    process = subprocess.Popen(
        argv, cwd=folder, env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = _Peak(process.pid)
    peak.start()
    code = process.wait()
    seconds = time.monotonic() - begin
    peak.ended.set()
    peak.join()
    after = os.times()
    if code:
        raise SystemExit(f"{argv[0]} ended with exit code {code}")
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return Round(seconds, processor, peak.mib)


def _digest(path: Path) -> tuple[int, str]:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_MIB):
            found.update(piece)
    return path.stat().st_size, found.hexdigest()


def _expected(producer: str) -> tuple[int, str]:
    """Size and digest of what a producer prints."""
    found, size = hashlib.sha256(), 0
    with subprocess.Popen(["sh", "-c", producer], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(_MIB):
            found.update(piece)
            size += len(piece)
    return size, found.hexdigest()


class _Contest:
    """The two tools in folders of their own.

    :param producer: a command that prints.
    """

    def __init__(self, top: Path, producer: str) -> None:
        self._top = top
        self._producer = producer
        self._expected = _expected(producer)
        beside = Path(sys.executable).with_name("checkpoint-run")
        self._program = str(beside) if beside.exists() else shutil.which("checkpoint-run")
        if self._program is None:
            raise SystemExit("checkpoint-run is not installed")

    def ours(self) -> Round:
        """The producer as a step."""
        with tempfile.TemporaryDirectory(dir=self._top) as name:
            found = _measure(self._command(self._producer), Path(name))
            self._check(Path(name) / ".checkpoint-run-output.logs" / "a.log")
        os.sync()  # or what one leaves to be written would slow down the other
        return found

    def tee(self) -> Round:
        """The producer piped into tee."""
        with tempfile.TemporaryDirectory(dir=self._top) as name:
            found = _measure(["sh", "-c", f"({self._producer}) | tee a.log"], Path(name))
            self._check(Path(name) / "a.log")
        os.sync()
        return found

    def trivial(self) -> Round:
        """A step that prints next to nothing, for comparison of memory."""
        with tempfile.TemporaryDirectory(dir=self._top) as name:
            return _measure(self._command("echo a; sleep 0.5"), Path(name))

    def _command(self, text: str) -> list[str]:
        assert self._program is not None
        return [self._program, "--job", "output", "--step", f"a:{text}"]

    def _check(self, log: Path) -> None:
        if (found := _digest(log)) != self._expected:
            raise SystemExit(f"{log} is not what the step printed: {found} instead of {self._expected}")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a contest came to.

    :param ours: medians of seconds and of processor time; ``tee``: the same.
    :param peak: the most that our process had in memory, MiB.
    :param growth: how far that is above a step that prints next to nothing.
    """

    ours: tuple[float, float]
    tee: tuple[float, float]
    peak: float
    growth: float

    @property
    def ratio(self) -> float:
        """Our seconds as a multiple of those with tee."""
        return self.ours[0] / self.tee[0]


def _contest(name: str, producer: str, rounds: int, top: Path) -> _Outcome:
    """Both in turns."""
    contest = _Contest(top, producer)
    contest.ours()  # warms up
    contest.tee()
    ours: list[Round] = []
    tee: list[Round] = []
    for number in range(rounds):
        print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr)
        pair = [(ours, contest.ours), (tee, contest.tee)]
        for results, run in reversed(pair) if number % 2 else pair:
            results.append(run())
    base = max(contest.trivial().memory for _ in range(3))
    peak = max(one.memory for one in ours)
    medians = [
        (median(one.seconds for one in results), median(one.processor for one in results)) for results in (ours, tee)
    ]
    return _Outcome(medians[0], medians[1], peak, peak - base)


def _row(name: str, size: int, found: _Outcome) -> str:
    speeds = [size / _MIB / seconds for seconds, _ in (found.ours, found.tee)]
    return (
        f"| `{name}` | {speeds[0]:.0f} MiB/s | {speeds[1]:.0f} MiB/s | {found.ratio:.2f} | {found.ours[1]:.1f} s "
        f"| {found.tee[1]:.1f} s | {found.peak:.1f} MiB | {found.growth:+.1f} MiB | whole |"
    )


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    mib, peer = (2 if quick else 1024), f"… | {titled('tee')}"
    amount = f"{mib} MiB" if quick else f"{mib // 1024} GiB"
    found = []
    for name, producer in _PRODUCERS.items():
        load = load_now()
        with tempfile.TemporaryDirectory(prefix="output-", dir=folder) as top:
            outcome = _contest(name, producer.format(size=mib * _MIB), rounds or (1 if quick else 5), Path(top))
        work = f"step output of {amount}, {_KINDS[name]}"
        ours, theirs = outcome.ours[0], outcome.tee[0]
        found += [
            Line(work=work, peer=peer, ours=ours, theirs=theirs, goal=at_most(_MOST_RATIO), load=load),
            Line(
                work=f"the same, {_KINDS[name]}: memory above a step that prints a word",
                ours=outcome.growth,
                goal=below(_MOST_GROWTH),
                unit="MiB",
                load=load,
            ),
        ]
    return found


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.output", description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=1024, help="how much the step prints (1024)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--folder", help="where the logs go (default: the folder for temporary files)")
    options = parser.parse_args(argv)
    size = options.mib * _MIB
    heads = (
        "producer",
        "checkpoint-run",
        "tee",
        "ratio",
        "processor time",
        "with tee",
        "peak memory",
        "above a trivial step",
        "log",
    )
    rows = [f"| {' | '.join(heads)} |", "| --- " + "| ---: " * (len(heads) - 2) + "| --- |"]
    good = True
    with tempfile.TemporaryDirectory(prefix="output-", dir=options.folder) as top:
        for name, producer in _PRODUCERS.items():
            found = _contest(name, producer.format(size=size), options.rounds, Path(top))
            rows.append(_row(name, size, found))
            good = good and found.ratio <= _MOST_RATIO and found.growth < _MOST_GROWTH
    print("\n".join(rows))
    print("\nRatios are of times: ours to those with tee.")
    goals = f"ratio at most {_MOST_RATIO:g}, growth under {_MOST_GROWTH:g} MiB"
    print(f"Goals ({goals}): {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
