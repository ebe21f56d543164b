"""How long a command line takes that does next to nothing, beside starting Python.

::

    python -m benchmarks.startup
    python -m benchmarks.startup --steps 100 --rounds 15

What is compared with is a Python that loads what any such program needs: `import argparse, json, hashlib`. `--help`
does nothing else; `status` reads what is recorded of a job of 1,000 steps, all done, and prints a line for each. With a
word more it looks closely, as it does where anything in the state is not as a run has left it. All of them alternate,
so that what else the machine does hits all alike. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.lines import Line, at_most, load_now
from benchmarks.measure import Folder, Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["lines", "main"]

_BASE = "Python with argparse, json and hashlib"
_JOB = "startup"


class Contestant(NamedTuple):
    """Something that is started.

    :param most: how many times as long as the base it may take at most; ``None`` where that is of no interest.
    """

    name: str
    argv: tuple[str, ...]
    most: float | None = None


def _contestants(program: str) -> list[Contestant]:
    return [
        Contestant(_BASE, (sys.executable, "-c", "import argparse, json, hashlib")),
        Contestant("Python alone", (sys.executable, "-c", "")),
        Contestant("checkpoint-run --help", (program, "--help"), 1.6),
        Contestant("checkpoint-run run --help", (program, "run", "--help")),
        Contestant("checkpoint-run status --job NAME", (program, "status", "--job", _JOB), 2.0),
        Contestant("checkpoint-run status", (program, "status"), 2.0),
        Contestant("the same, looked at closely", (program, "status", "--rate", "0")),
    ]


def _make_job(folder: Folder, steps: int) -> None:
    """A job of which all is done."""
    lines = [f"job: {_JOB}", "shell: sh", "steps:"]
    lines += [f"  - {{id: step{number:04d}, run: 'true'}}" for number in range(steps)]
    (folder.path / "checkpoint.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    folder.run([folder.program, "--quiet", "--no-logs"])
    if folder.run([folder.program, "status"]).count(b"  done") != steps:
        raise SystemExit("not every step is done")


def _measure(folder: Folder, contestants: Sequence[Contestant], rounds: int) -> dict[str, Spent]:
    """The medians of each, all alternating."""
    found: dict[str, list[Spent]] = {one.name: [] for one in contestants}
    for number in range(rounds + 1):  # the first warms up
        for one in reversed(contestants) if number % 2 else contestants:
            spent = folder.measure(one.argv)
            if number:
                found[one.name].append(spent)
    return {
        name: Spent(median(one.wall for one in many), median(one.processor for one in many))
        for name, many in found.items()
    }


def _all(steps: int, rounds: int, top: Path | None = None) -> list[tuple[Contestant, Spent]]:
    """Everyone with its medians, the base first."""
    with tempfile.TemporaryDirectory(prefix="startup-", dir=top) as name:
        folder = Folder(Path(name))
        contestants = _contestants(folder.program)
        print(f"running a job of {steps} steps once", file=sys.stderr)
        _make_job(folder, steps)
        spent = _measure(folder, contestants, rounds)
    return [(one, spent[one.name]) for one in contestants]


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    load, steps = load_now(), 3 if quick else 1000
    found = _all(steps, rounds or (1 if quick else 31), folder)
    base = found[0][1].wall
    peer = f"Python {platform.python_version()} that imports argparse, json and hashlib"
    works = {"status": f"status of {steps:,} steps", "status --job NAME": f"status --job NAME of {steps:,} steps"}
    return [
        Line(
            work=works.get(word := one.name.partition(" ")[2], word),
            peer=peer,
            ours=spent.wall,
            theirs=base,
            goal=at_most(one.most),
            load=load,
        )
        for one, spent in found
        if one.most is not None
    ]


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1000, help="steps of the job (1000)")
    parser.add_argument("--rounds", type=int, default=31, help="runs of each (31)")
    options = parser.parse_args(argv)
    found = _all(options.steps, options.rounds)
    base, good = found[0][1], True
    print("| what is started | time | ratio | processor time | ratio | goal |", "| --- |" + " ---: |" * 5, sep="\n")
    for one, took in found:
        ratio = took.wall / base.wall
        goal = "" if one.most is None else f"at most {one.most:g}"
        good = good and (one.most is None or ratio <= one.most)
        print(
            f"| {one.name} | {took.wall * 1000:.1f} ms | {ratio:.2f} "
            f"| {took.processor * 1000:.1f} ms | {took.processor / base.processor:.2f} | {goal} |"
        )
    print(f"\nMedians of {options.rounds}. Goals: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
