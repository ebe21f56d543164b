"""`kill -9` in the middle of a job, and the same command again: what each tool makes of it.

::

    python -m benchmarks.kill_midway                 all tools that are installed
    python -m benchmarks.kill_midway --only ninja    some of them

Each step appends its name to a file, writes `half` to its output, takes its time and writes `full`. The kill comes
when step b has written its half: once of the tool with all its descendants, once of the tool's process alone.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.lines import Line, below, load_now
from benchmarks.peers import OURS, STEPS, TOOLS, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["EVERYTHING", "TOOL_ALONE", "Finding", "check_undisturbed", "examine", "lines", "main", "table"]

EVERYTHING = "everything"
TOOL_ALONE = "the tool alone"

_WORK = "`kill -9` in the middle, two kinds, and the same command again"
_MARK = "KILL_MIDWAY_RUN"  # variable by which we know all that a run has started
_PAUSE = 2.0  # seconds between half and full
_ORPHAN_AFTER = 1.0  # seconds after the kill of the tool alone at which nothing should run any more
_LIMIT = 60.0  # seconds for anything that takes a few
_LOOK = 0.01


class BenchmarkError(Exception):
    """The measurement itself went wrong; no tool is to blame."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a tool made of one kill.

    :param finished_kept: whether the finished step a did not run again.
    :param half_distrusted: whether the half-written output of step b was not taken as done.
    :param no_unlock: whether the same command, with nothing before it, went on to the end.
    :param no_orphan: whether nothing ran on after the kill; ``None`` where all was killed.
    :param right: whether the outputs are those of an undisturbed job.
    """

    finished_kept: bool
    half_distrusted: bool
    no_unlock: bool
    no_orphan: bool | None
    right: bool

    @property
    def faults(self) -> int:
        """How much of it went wrong."""
        seen = (self.finished_kept, self.half_distrusted, self.no_unlock, self.no_orphan, self.right)
        return sum(one is False for one in seen)


def _ours(mark: str) -> list[psutil.Process]:
    """All living processes that carry a run's mark."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _wait_gone(mark: str, others: Sequence[psutil.Process]) -> None:
    """Wait until nothing of a run is left."""
    _, alive = psutil.wait_procs(others, timeout=_LIMIT)
    end = time.monotonic() + _LIMIT
    while alive or _ours(mark):
        if time.monotonic() > end:
            raise BenchmarkError("something of it still runs")
        time.sleep(_LOOK)


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


class _Run:
    """One start of a tool in a folder."""

    def __init__(self, tool: Tool, folder: Path, pause: float) -> None:
        program = tool.program
        if program is None:
            raise BenchmarkError(f"{tool.name} is not installed")
        self.mark = uuid.uuid4().hex
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHECKPOINT_", "GITHUB_"))}
        with (folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [program, *tool.argv[1:]],
                cwd=folder,
                env={**kept, _MARK: self.mark, "PAUSE": f"{pause:g}"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._tool = psutil.Process(self.process.pid)

    def family(self) -> list[psutil.Process]:
        """The tool and its descendants."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self._tool, *self._tool.children(recursive=True)]
        return []

    def kill_everything(self) -> list[psutil.Process]:
        """SIGKILL for all; they are stopped first, or one could answer the death of another."""
        doomed: list[psutil.Process] = []
        while True:
            new = [process for process in [*self.family(), *_ours(self.mark)] if process not in doomed]
            if not new:
                break
            for process in new:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.suspend()
            doomed += dict.fromkeys(new)
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(_LIMIT)
        return doomed

    def kill_tool(self) -> list[psutil.Process]:
        """SIGKILL for the tool's process only; what it had started."""
        family = self.family()[1:]
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(_LIMIT)
        return family


@contextlib.contextmanager
def _started(tool: Tool, folder: Path, pause: float) -> Iterator[_Run]:
    run = _Run(tool, folder, pause)
    try:
        yield run
    finally:
        run.kill_everything()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _starts(folder: Path) -> dict[str, int]:
    """How often each step was started."""
    lines = _read(folder / "started").splitlines()
    return {step: lines.count(step) for step in STEPS}


def _right(folder: Path) -> bool:
    return all(_read(folder / f"{step}.out") == "full" for step in STEPS)


def _until_middle_of_b(run: _Run, folder: Path) -> None:
    end = time.monotonic() + _LIMIT
    while not (_starts(folder)["b"] and _read(folder / "b.out") == "half"):
        if run.process.poll() is not None or time.monotonic() > end:
            raise BenchmarkError(f"step b was never reached:\n{_read(folder / 'output')}")
        time.sleep(_LOOK)


def check_undisturbed(tool: Tool, folder: Path) -> None:
    """Make sure that a tool does the job at all.

    :param folder: an empty one.
    :raises BenchmarkError: it does not.
    """
    tool.prepare(folder)
    with _started(tool, folder, 0.05) as run:
        code = run.process.wait(_LIMIT)
    if code or not _right(folder) or _starts(folder) != dict.fromkeys(STEPS, 1):
        raise BenchmarkError(f"{tool.name} does not do the job undisturbed:\n{_read(folder / 'output')}")


def examine(tool: Tool, killed: str, folder: Path) -> Finding:
    """Kill a tool in the middle of step b, run the same command again and look.

    :param killed: :data:`EVERYTHING` or :data:`TOOL_ALONE`.
    :param folder: an empty one.
    """
    tool.prepare(folder)
    no_orphan = None
    with _started(tool, folder, _PAUSE) as run:
        _until_middle_of_b(run, folder)
        if killed == EVERYTHING:
            family = run.kill_everything()
        else:
            family = run.kill_tool()
            time.sleep(_ORPHAN_AFTER)
            no_orphan = not _ours(run.mark) and not any(map(_lives, family))
        _wait_gone(run.mark, family)
    before = _starts(folder)
    half = _read(folder / "b.out") == "half"
    with _started(tool, folder, _PAUSE) as run:
        code = run.process.wait(_LIMIT)
    after = _starts(folder)
    return Finding(
        finished_kept=after["a"] == before["a"] == 1,
        half_distrusted=not half or after["b"] > before["b"],
        no_unlock=code == 0,
        no_orphan=no_orphan,
        right=_right(folder),
    )


def _word(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "**no**"  # noqa: RUF001  # a dash for "does not apply"


def table(rows: Sequence[tuple[str, str, Finding | None]]) -> str:
    """Findings as Markdown: title of the tool, what was killed, what was found (nothing: it is not installed)."""
    heads = (
        "tool",
        "killed",
        "finished step not repeated",
        "half-written file not taken as done",
        "goes on without unlocking",
        "nothing runs on",
        "result right",
    )
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for title, killed, finding in rows:
        if finding is None:
            lines.append(f"| {title} | {killed} | not installed | | | | |")
            continue
        words = (
            finding.finished_kept,
            finding.half_distrusted,
            finding.no_unlock,
            finding.no_orphan,
            finding.right,
        )
        lines.append(f"| {title} | {killed} | {' | '.join(map(_word, words))} |")
    return "\n".join(lines)


def _examine_all(tools: Sequence[Tool], top: Path | None = None) -> list[tuple[Tool, str, Finding | None]]:
    """Each tool after both kills; with nothing found where it is not installed."""
    found: list[tuple[Tool, str, Finding | None]] = []
    with tempfile.TemporaryDirectory(prefix="kill-midway-", dir=top) as name:
        for tool in tools:
            if tool.program is None:
                found.append((tool, "", None))
                continue
            print(f"{tool.title()} …", file=sys.stderr)
            check_undisturbed(tool, Path(tempfile.mkdtemp(dir=name)))
            found += [
                (tool, killed, examine(tool, killed, Path(tempfile.mkdtemp(dir=name))))
                for killed in (EVERYTHING, TOOL_ALONE)
            ]
    return found


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:  # noqa: ARG001
    """What goes into the table of all benchmarks: how much goes wrong in two kills. One round tells all."""
    load, faults = load_now(), dict[str, int]()
    for tool, _, finding in _examine_all([tool for tool in TOOLS if tool is OURS or not quick], folder):
        if finding is not None:
            faults[tool.title()] = faults.get(tool.title(), 0) + finding.faults
    ours = faults.pop(OURS.title())
    return [
        Line(work=_WORK, unit="faults", load=load, peer=peer, ours=ours, theirs=theirs, goal=below(1))
        for peer, theirs in faults.items() or [("", None)]
    ]


def main(argv: Sequence[str]) -> int:
    """Examine the tools and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_midway", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="TOOL", help="this tool; may be given several times")
    only = parser.parse_args(argv).only
    if unknown := {*(only or ())} - {tool.name for tool in TOOLS}:
        parser.error(f"unknown tool {', '.join(sorted(unknown))}; known are {', '.join(tool.name for tool in TOOLS)}")
    found = _examine_all([tool for tool in TOOLS if not only or tool.name in only])
    print(table([(tool.title(), killed, finding) for tool, killed, finding in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
