"""How long it takes to run again a job of which all is done, beside other tools and beside parsing the job file.

::

    python -m venv PEERS && PEERS/bin/pip install doit go-task-bin snakemake redun dvc
    python -m benchmarks.resume --peers PEERS       1,000 steps, seven rounds
    python -m benchmarks.resume --steps 100 --rounds 3

The peers go into an environment of their own, as they bring hundreds of packages; without ``--peers`` they are looked
for on PATH, and one that is not there is said to be missing. Each is told the same job in its own words: steps that
leave one small file each, with no inputs, each after the one before. Where a tool cannot do a chain of that length
(Snakemake and redun exceed Python's recursion limit), its steps are independent. All is done once; Snakemake and DVC,
whose first run takes minutes, are told that it is (``--touch``, ``dvc commit``). Then every tool runs again, all of
them alternating, and a step that runs is an error.

A Python that parses the job file with PyYAML's fast loader and does nothing else is measured as well, with this job and
with one of steps that leave nothing. *Decided anew* is a run in words for which no answer is kept: what it takes when
something has changed. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.lines import Line, at_most, faster, load_now
from benchmarks.measure import Folder, Spent, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["PEERS", "Peer", "lines", "main"]

_RAN = "ran"  # gets a line of each step that runs
_MOST_OF_PARSING = 2.0
_PARSING = "import yaml; yaml.load(open('checkpoint.yml', 'rb'), Loader=yaml.CSafeLoader)"
_OURS, _PLAIN = "checkpoint-run", "checkpoint-run, steps that leave nothing"


def _command(step: int) -> str:
    return f"echo {step} >> {_RAN}; echo {step} > out/{step}"


def _checkpoint_yml(steps: int, *, outputs: bool) -> str:
    rows = ["job: resume", "shell: sh", "steps:"]
    for step in range(steps):
        rows += [f"  - id: step{step}", f"    run: {_command(step)}"]
        rows += [f"    outputs: [out/{step}]"] if outputs else []
    return "\n".join(rows) + "\n"


def _dodo_py(steps: int) -> str:
    return f"""\
from doit.tools import run_once

DOIT_CONFIG = {{"verbosity": 0}}

def task_step():
    for step in range({steps}):
        yield {{
            "name": str(step),
            "actions": [f"echo {{step}} >> {_RAN}; echo {{step}} > out/{{step}}"],
            "targets": [f"out/{{step}}"],
            "uptodate": [run_once],
            "task_dep": [f"step:{{step - 1}}"] if step else [],
        }}
"""


def _taskfile(steps: int) -> str:
    rows = ["version: '3'", "silent: true", "tasks:", f"  default: {{deps: [step{steps - 1}]}}"]
    for step in range(steps):
        before = f"deps: [step{step - 1}], " if step else ""
        rows.append(f"  step{step}: {{{before}cmds: ['{_command(step)}'], status: [test -f out/{step}]}}")
    return "\n".join(rows) + "\n"


def _snakefile(steps: int) -> str:
    return f"""\
rule all:
    input: [f"out/{{step}}" for step in range({steps})]

rule step:
    output: "out/{{step}}"
    shell: "echo {{wildcards.step}} >> {_RAN}; echo {{wildcards.step}} > {{output}}"
"""


def _workflow_py(steps: int) -> str:
    return f"""\
import subprocess

from redun import File, task

redun_namespace = "steps"

@task()
def step(number):
    subprocess.run(f"echo {{number}} >> {_RAN}; echo {{number}} > out/{{number}}", shell=True, check=True)
    return File(f"out/{{number}}")

@task()
def main():
    return [step(number) for number in range({steps})]
"""


def _dvc_yaml(steps: int) -> str:
    rows = ["stages:"]
    for step in range(steps):
        rows += [f"  step{step}:", f"    cmd: {_command(step)}"]
        rows += [f"    deps: [out/{step - 1}]"] if step else []
        rows += ["    outs:", f"      - out/{step}: {{cache: false}}"]
    return "\n".join(rows) + "\n"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another tool, and how it is told the job.

    :param name: as people call it.
    :param argv: the command line, the same for the first run and for the next.
    :param file: the name of the job's file.
    :param text: what is in it, for a number of steps.
    :param made: what makes the tool know that all is done, once the files are there, where it is not run for that.
    """

    name: str
    argv: tuple[str, ...]
    file: str
    text: Callable[[int], str]
    made: tuple[tuple[str, ...], ...] = ()

    def program(self, peers: Path | None) -> str | None:
        """Where it is; ``None`` where it is not installed."""
        beside = None if peers is None else shutil.which(self.argv[0], path=str(peers / "bin"))
        return beside or shutil.which(self.argv[0])

    def title(self, peers: Path | None) -> str:
        """Name and version."""
        program = self.program(peers)
        return self.name if program is None else titled(self.name, program, "--version")


PEERS = (
    Peer("doit", ("doit",), "dodo.py", _dodo_py),
    Peer("go-task", ("task",), "Taskfile.yml", _taskfile),
    Peer(
        "Snakemake",
        ("snakemake", "--cores", "1", "--quiet"),
        "Snakefile",
        _snakefile,
        made=(("snakemake", "--cores", "1", "--quiet", "--touch", "--forceall"),),
    ),
    Peer("redun", ("redun", "run", "workflow.py", "main"), "workflow.py", _workflow_py),
    Peer(
        "DVC",
        ("dvc", "repro", "--quiet"),
        "dvc.yaml",
        _dvc_yaml,
        made=(
            ("dvc", "init", "--no-scm", "--quiet"),
            ("dvc", "config", "core.analytics", "false"),
            ("dvc", "config", "core.check_update", "false"),
            ("dvc", "commit", "--force", "--quiet"),
        ),
    ),
)


class _Job:
    """A job in a folder of its own, all of it done.

    :param argv: what runs it.
    """

    def __init__(self, path: Path, argv: Sequence[str], files: Mapping[str, str], steps: int) -> None:
        self.argv = tuple(argv)
        self.steps = steps
        (path / "out").mkdir(parents=True)
        for name, text in files.items():
            (path / name).write_text(text, encoding="utf-8")
        self.folder = Folder(path)

    def make(self, words: Sequence[Sequence[str]] = ()) -> None:
        """Do all of it.

        :param words: what tells the tool that it is done, where it does not do it itself.
        """
        if words:
            self.folder.run(["sh", "-c", "\n".join(map(_command, range(self.steps)))])
        for argv in words or [self.argv]:
            self.folder.run(argv)
        self.again()  # the first time, much is compiled, and caches are made

    def again(self) -> Spent:
        """Run it again; that a step runs ends the benchmark."""
        spent = self.folder.measure(self.argv)
        ran = (self.folder.path / _RAN).read_bytes().count(b"\n")
        if ran != self.steps:
            raise SystemExit(f"{self.argv[0]} has run {ran - self.steps} steps again")
        return spent


@dataclass(slots=True)
class _Contest:
    """All that alternates.

    :param runs: by name; each call is one run.
    :param missing: names of what is not installed.
    """

    runs: dict[str, Callable[[], Spent]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def medians(self, rounds: int) -> dict[str, Spent]:
        """The medians of each."""
        found: dict[str, list[Spent]] = {name: [] for name in self.runs}
        for number in range(rounds):
            names = list(self.runs)
            for name in reversed(names) if number % 2 else names:
                found[name].append(self.runs[name]())
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
        return {
            name: Spent(median(one.wall for one in many), median(one.processor for one in many))
            for name, many in found.items()
        }


def _contest(top: Path, steps: int, peers: Path | None) -> _Contest:
    contest = _Contest()
    program = Folder(top).program
    for name, outputs in ((_OURS, True), (_PLAIN, False)):
        files = {"checkpoint.yml": _checkpoint_yml(steps, outputs=outputs)}
        job = _Job(top / f"ours-{outputs}", [program], files, steps)
        print(f"{name}: running the job once", file=sys.stderr)
        job.make()
        contest.runs[name] = job.again
        contest.runs[f"{name}, decided anew"] = partial(job.folder.measure, [program, "--no-pty"])
        contest.runs[f"{name}, parsing"] = partial(job.folder.measure, [sys.executable, "-c", _PARSING])
    contest.runs["Python"] = partial(Folder(top).measure, [sys.executable, "-c", ""])
    for peer in PEERS:
        found = peer.program(peers)
        contest.titles[peer.name] = peer.title(peers)
        if found is None:
            contest.missing.append(peer.name)
            continue
        print(f"{peer.name}: running the job once", file=sys.stderr)
        job = _Job(top / peer.name, [found, *peer.argv[1:]], {peer.file: peer.text(steps)}, steps)
        job.make([[found, *words[1:]] for words in peer.made])
        contest.runs[peer.name] = job.again
    return contest


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    steps, load = (3 if quick else 1000), load_now()
    with tempfile.TemporaryDirectory(prefix="resume-", dir=folder) as top:
        contest = _contest(Path(top), steps, None)
        spent = contest.medians(rounds or (1 if quick else 7))
    work = f"run a finished job of {steps:,} steps again"
    found = [
        Line(
            work=work if name == _OURS else "the same of steps that leave nothing",
            peer="a Python that parses the job file",
            ours=spent[name].wall,
            theirs=spent[f"{name}, parsing"].wall,
            goal=at_most(_MOST_OF_PARSING),
            load=load,
        )
        for name in (_OURS, _PLAIN)
    ]
    for peer in PEERS:
        theirs = None if peer.name in contest.missing else spent[peer.name].wall
        title = contest.titles[peer.name]
        found.append(Line(work=work, peer=title, ours=spent[_OURS].wall, theirs=theirs, goal=faster(), load=load))
    return found


def _row(name: str, took: Spent, ours: Spent, goal: str = "") -> str:
    ratios = took.wall / ours.wall, took.processor / max(ours.processor, 0.001)
    times = (f"{seconds * 1000:.0f} ms | {ratio:.2f}" for seconds, ratio in zip(took, ratios, strict=True))
    return f"| {name} | {' | '.join(times)} | {goal} |"


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1000, help="steps of the job (1000)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each (7)")
    parser.add_argument("--peers", type=Path, help="an environment with the other tools (default: what is on PATH)")
    parser.add_argument("--folder", help="where the jobs go (default: the folder for temporary files)")
    options = parser.parse_args(argv)
    peers = None if options.peers is None else options.peers.resolve()
    with tempfile.TemporaryDirectory(prefix="resume-", dir=options.folder) as top:
        contest = _contest(Path(top), options.steps, peers)
        spent = contest.medians(options.rounds)
    print("| run again | time | of ours | processor time | of ours | goal |", "| --- |" + " ---: |" * 5, sep="\n")
    good, title = True, titled(_OURS, Folder(Path.cwd()).program, "--version")
    for name in (_OURS, _PLAIN):
        ours, parsing = spent[name], spent[f"{name}, parsing"]
        ratio = ours.wall / parsing.wall
        good = good and ratio <= _MOST_OF_PARSING
        goal = f"at most {_MOST_OF_PARSING:g} of parsing: {ratio:.2f}"
        print(_row(name.replace(_OURS, title), ours, ours, goal))
        print(_row("the same, decided anew", spent[f"{name}, decided anew"], ours))
        print(_row("a Python that parses the same file", parsing, ours))
    print(_row("Python alone", spent["Python"], spent[_OURS]))
    for peer in PEERS:
        title = contest.titles[peer.name]
        if peer.name in contest.missing:
            print(f"| {title} | not installed | | | | |")
            continue
        good = good and spent[_OURS].wall < spent[peer.name].wall
        print(_row(title, spent[peer.name], spent[_OURS], "more than 1"))
    print(f"\nMedians of {options.rounds}. Goals: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
