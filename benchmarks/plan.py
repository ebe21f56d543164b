"""How long `plan` takes for a large job, beside what reads or looks at the same files.

::

    python -m benchmarks.plan                          1,000 steps, 10,000 input files, three kinds of files
    python -m benchmarks.plan --steps 100 --files 1000 --rounds 3

A chain of steps, each with ten input files of its own, all committed to a git repository, and all steps done. `plan`
reads each file, as `find … | xargs -P2 -n 64 sha256sum` does; `plan --verify stat` with nothing changed looks at each,
as `git status` does, and gives the answer that the last run has kept. With `--quiet` it decides anew each time: that is
what it takes once anything has changed. All of them alternate, so that what else the machine does hits all alike. What
no plan goes below is measured as well: starting Python, and a Python script that does nothing but look at each file.
Prints two Markdown tables.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.lines import Line, at_most, load_now
from benchmarks.measure import Folder, Spent, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Tree", "lines", "main"]

_KIB = 1 << 10
_SPREAD = 1.2  # of the logarithm of a file's size; source trees have about this
_LEAST, _MOST = 32, 1 << 20  # bytes of a file
_SEED = 20260101
_SETTLED = 3.0  # seconds
_MOST_OF_SHA256SUM = 2.0
_MOST_OF_GIT_STATUS = 3.0
_COMMIT = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0")  # no packing beside the measuring
_LOOKING = """
import os
for folder in os.scandir("src"):
    for entry in os.scandir(folder):
        entry.stat(follow_symlinks=False)
"""


class Kind(NamedTuple):
    """Sizes of the files of a tree.

    :param typical: bytes; half of the files are smaller.
    """

    name: str
    typical: int


_KINDS = (Kind("tiny", _KIB), Kind("source code", 6 * _KIB), Kind("large", 64 * _KIB))


class Tree:
    """A job in a git repository, all of it done.

    :ivar total: bytes of all input files.
    """

    def __init__(self, path: Path, kind: Kind, steps: int, files: int) -> None:
        self.total = 0
        self._path = path
        self._folder = Folder(path)
        self._write(kind, steps, files)
        run = [self._folder.program, "--quiet", "--no-logs", "--verify", "stat"]
        for argv in (
            ["git", "init", "--quiet"],
            ["git", "add", "."],
            ["git", *_COMMIT, "commit", "--quiet", "-m", "all"],
            run,
        ):
            self._folder.run(argv)
        os.sync()
        time.sleep(_SETTLED)  # so that nothing counts as changed just now, neither for git nor for us
        self._folder.run(["git", "status"])
        self._folder.run(run)
        if not (path / ".checkpoint-run-plan.plan").exists():
            raise SystemExit("the run has not kept its answer")

    def _write(self, kind: Kind, steps: int, files: int) -> None:
        draw = random.Random(_SEED)
        lines = ["job: plan", "shell: sh", "steps:"]
        for step in range(steps):
            folder = self._path / "src" / f"part{step:04d}"
            folder.mkdir(parents=True)
            for number in range(files * step // steps, files * (step + 1) // steps):
                size = int(min(_MOST, max(_LEAST, draw.lognormvariate(0, _SPREAD) * kind.typical)))
                (folder / f"file{number:05d}.c").write_bytes(draw.randbytes(size))
                self.total += size
            lines += [f"  - id: step{step:04d}", f"    inputs: [src/{folder.name}/**]", "    run: 'true'"]
        (self._path / "checkpoint.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (self._path / ".gitignore").write_text(".checkpoint-run-*\n", encoding="utf-8")

    def contestants(self) -> dict[str, Callable[[], Spent]]:
        """What is measured, by name; each call is one run."""
        hashing = "find src -type f -print0 | xargs -0 -P2 -n 64"
        program, measure = self._folder.program, self._folder.measure
        return {
            "sha256sum": lambda: measure(["sh", "-c", f"{hashing} sha256sum"]),
            "openssl": lambda: measure(["sh", "-c", f"{hashing} openssl dgst -sha256"]),
            "plan": lambda: measure([program, "plan", "--json"], _all_done),
            "git": lambda: measure(["git", "status"], _clean),
            "stat": lambda: measure([program, "plan", "--json", "--verify", "stat"], _all_done),
            "python": lambda: measure([sys.executable, "-c", ""]),
            "anew": lambda: measure([program, "plan", "--json", "--verify", "stat", "--quiet"], _all_done),
            "looking": lambda: measure([sys.executable, "-c", _LOOKING]),
        }


def _all_done(said: bytes) -> None:
    if any(step["action"] != "skip" for step in json.loads(said)["steps"]):
        raise SystemExit("not every step is done")


def _clean(said: bytes) -> None:
    if b"nothing to commit" not in said:
        raise SystemExit("the work tree is not as it was committed")


def _measure(tree: Tree, rounds: int) -> dict[str, Spent]:
    """The medians of each, all alternating."""
    contestants = tree.contestants()
    found: dict[str, list[Spent]] = {name: [] for name in contestants}
    for number in range(rounds + 1):  # the first warms up
        names = list(contestants)
        for name in reversed(names) if number % 2 else names:
            spent = contestants[name]()
            if number:
                found[name].append(spent)
        print(f"round {number} of {rounds}", file=sys.stderr)
    return {
        name: Spent(median(one.wall for one in many), median(one.processor for one in many))
        for name, many in found.items()
    }


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    steps, files = (3, 7) if quick else (1000, 10_000)
    kind, load = _KINDS[1], load_now()
    with tempfile.TemporaryDirectory(prefix="plan-", dir=folder) as top:
        print(f"{kind.name}: making the tree and running the job once", file=sys.stderr)
        spent = _measure(Tree(Path(top), kind, steps, files), rounds or (1 if quick else 7))
    what = f"{steps:,} steps with {files:,} input files ({kind.name}, {kind.typical // _KIB} KiB)"
    return [
        Line(
            work=f"plan of {what}",
            peer=f"find, xargs -P2 {titled('sha256sum')}",
            ours=spent["plan"].wall,
            theirs=spent["sha256sum"].wall,
            goal=at_most(_MOST_OF_SHA256SUM),
            load=load,
        ),
        Line(
            work="the same with --verify stat, nothing changed",
            peer=titled("git") + " status",
            ours=spent["stat"].wall,
            theirs=spent["git"].wall,
            goal=at_most(_MOST_OF_GIT_STATUS),
            load=load,
        ),
    ]


def _ratio(one: Spent, other: Spent) -> str:
    return f"{one.wall / other.wall:.2f} ({one.processor / max(other.processor, 0.001):.2f})"


def main(argv: Sequence[str]) -> int:
    """Measure and print the tables; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1000, help="steps of the job (1000)")
    parser.add_argument("--files", type=int, default=10_000, help="input files of all steps together (10000)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each (7)")
    parser.add_argument("--folder", help="where the trees go (default: the folder for temporary files)")
    parser.add_argument("--only", choices=[kind.name for kind in _KINDS], help="this kind of files only")
    options = parser.parse_args(argv)
    reading = ["| files | in all | plan | sha256sum | ratio | openssl dgst | ratio |", "| --- |" + " ---: |" * 6]
    looking = [
        "| files | plan --verify stat | git status | ratio | decided anew | ratio | Python | looking at each file |",
        "| --- |" + " ---: |" * 7,
    ]
    good = True
    for kind in _KINDS:
        if options.only not in (None, kind.name):
            continue
        with tempfile.TemporaryDirectory(prefix="plan-", dir=options.folder) as top:
            print(f"{kind.name}: making the tree and running the job once", file=sys.stderr)
            tree = Tree(Path(top), kind, options.steps, options.files)
            spent = _measure(tree, options.rounds)
        text = {name: f"{one.wall * 1000:.0f} ms" for name, one in spent.items()}
        plan, stat = spent["plan"], spent["stat"]
        reading.append(
            f"| {kind.name}, {kind.typical / _KIB:g} KiB | {tree.total / (1 << 20):.0f} MiB | {text['plan']} "
            f"| {text['sha256sum']} | {_ratio(plan, spent['sha256sum'])} "
            f"| {text['openssl']} | {_ratio(plan, spent['openssl'])} |"
        )
        looking.append(
            f"| {kind.name} | {text['stat']} | {text['git']} | {_ratio(stat, spent['git'])} "
            f"| {text['anew']} | {_ratio(spent['anew'], spent['git'])} | {text['python']} | {text['looking']} |"
        )
        good = good and plan.wall < _MOST_OF_SHA256SUM * spent["sha256sum"].wall
        good = good and stat.wall < _MOST_OF_GIT_STATUS * spent["git"].wall
    print("\n".join([*reading, "", *looking]))
    print("\nRatios are of wall times, in brackets of processor times.")
    goals = f"plan under {_MOST_OF_SHA256SUM:g} x sha256sum, with stat under {_MOST_OF_GIT_STATUS:g} x git status"
    print(f"Goals ({goals}): {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
