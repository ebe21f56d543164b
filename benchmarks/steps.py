"""How fast many steps are run, beside other tools that run commands one after the other or several at once.

::

    python -m benchmarks.steps                       all of it, about five minutes
    python -m benchmarks.steps --only in-a-row       1,000 trivial steps, beside make, go-task, just, doit and parallel
    python -m benchmarks.steps --only scaling        1,000, 10,000 and 100,000 of them; about three minutes
    python -m benchmarks.steps --only side-by-side   64 steps of 0.1 s, eight at once

A trivial step is `true;`, which every tool gives to `sh -c`. Ours records that a step starts and how it ended before
the next one starts, and waits for the disk each time; none of the others does that. All contestants alternate, so
that what else the machine does hits all alike, and each run has a new folder: file systems are slow where much has just
been removed, so all folders go at the end. Beside them stands what no such tool in Python goes below: starting the
shells and nothing else, writing and syncing as many lines, and both together (`step_floor.py`). Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from itertools import count as numbers
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.lines import Line, at_most, below, faster, load_now
from benchmarks.measure import Folder, Spent
from benchmarks.step_lists import FLOORS, RECORDED, Contestant, in_a_row, job_file, python, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["lines", "main"]

_STEPS = 1000
_JOBS = 8
_BESIDE = 64
_SLEEP = "sleep 0.1"
_GROWTH = (1, 10, 100)  # times as many steps
_MOST_GROWTH = 1.15  # of the time of a step
_MOST_MEMORY = 200.0  # MiB
_PARTS = ("in-a-row", "scaling", "side-by-side")
_WATCHED = """
import json, os, sys, time
begin = time.perf_counter()
_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
seconds = time.perf_counter() - begin
memory = used.ru_maxrss / (1024 if sys.platform == "linux" else 1 << 20)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, memory, os.waitstatus_to_exitcode(status)]))
"""


class Row(NamedTuple):
    """A contestant and its medians; none where it is not installed."""

    contestant: Contestant
    spent: Spent | None


class Grown(NamedTuple):
    """One run of many steps.

    :param memory: MiB, the peak of the largest process.
    """

    steps: int
    wall: float
    processor: float
    memory: float


class _Folders:
    """A new folder for each run, all removed at the end."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._numbers = numbers()

    def new(self) -> Folder:
        path = self._top / str(next(self._numbers))
        path.mkdir()
        return Folder(path)


def _check_done(folder: Folder, count: int) -> None:
    """See that all of ours was run and recorded."""
    [snapshot] = folder.path.glob(".checkpoint-run-*.json")
    done = sum(step["status"] == "done" for step in json.loads(snapshot.read_bytes())["steps"].values())
    if done != count:
        raise SystemExit(f"{done} steps of {count} are recorded as done")


def _ran(folders: _Folders, contestant: Contestant, count: int) -> Spent:
    folder, tool = folders.new(), contestant.tool
    tool.prepare(folder.path)
    spent = folder.measure([tool.program or tool.argv[0], *tool.argv[1:]])
    if tool.name == "checkpoint-run":
        _check_done(folder, count)
    return spent


def _median(many: Sequence[Spent]) -> Spent:
    return Spent(median(one.wall for one in many), median(one.processor for one in many))


def _alternating(runs: dict[str, Callable[[], Spent]], rounds: int) -> dict[str, Spent]:
    """The medians of each, by name."""
    found: dict[str, list[Spent]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in reversed(runs) if number % 2 else runs:
            found[name].append(runs[name]())
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return {name: _median(many) for name, many in found.items()}


def _contest(folders: _Folders, contestants: Sequence[Contestant], count: int, rounds: int) -> list[Row]:
    present = {str(number): one for number, one in enumerate(contestants) if one.tool.program is not None}
    spent = _alternating({name: lambda one=one: _ran(folders, one, count) for name, one in present.items()}, rounds)  # type: ignore[misc]
    return [Row(one, spent.get(str(number))) for number, one in enumerate(contestants)]


def _floors(folders: _Folders, count: int, rounds: int) -> dict[str, Spent]:
    argvs = {name: python(script.format(count=count)) for name, script in FLOORS.items()}
    argvs[RECORDED] = (sys.executable, str(Path(__file__).with_name("step_floor.py")), str(count))
    return _alternating({name: lambda argv=argv: folders.new().measure(argv) for name, argv in argvs.items()}, rounds)  # type: ignore[misc]


def _grown(folders: _Folders, steps: int, rounds: int) -> Grown:
    many = []
    for _ in range(rounds):
        folder = folders.new()
        (folder.path / "checkpoint.yml").write_text(job_file(steps), encoding="utf-8")
        seconds, processor, memory, code = json.loads(folder.run([*python(_WATCHED), folder.program, "--quiet"]))
        if code:
            raise SystemExit(f"{steps} steps ended with exit code {code}")
        _check_done(folder, steps)
        many.append(Grown(steps, seconds, processor, memory))
    return Grown(steps, *(median(one[place] for one in many) for place in (1, 2, 3)))


def _scaling(folders: _Folders, steps: int, rounds: int) -> list[Grown]:
    """The small one as often as there are rounds, the larger ones fewer times and once."""
    found = []
    for factor in _GROWTH:
        print(f"{steps * factor} steps", file=sys.stderr)
        found.append(_grown(folders, steps * factor, max(1, rounds // factor)))
    return found


def _line(work: str, ours: Row, row: Row, load: float | None) -> Line:
    most = row.contestant.most
    goal = None if most is None else at_most(most) if most else faster()
    assert ours.spent is not None
    theirs = None if row.spent is None else row.spent.wall
    note = ours.contestant.label.strip(", ")
    return Line(
        work=work, peer=row.contestant.title(), ours=ours.spent.wall, theirs=theirs, goal=goal, load=load, note=note
    )


def _growth_lines(found: Sequence[Grown], load: float | None) -> list[Line]:
    base, result = found[0], []
    for one in found:
        work = f"{one.steps:,} steps in a row"
        if one is not base:
            result.append(
                Line(
                    work=f"{work}, each",
                    peer=f"ourselves at {base.steps:,}",
                    ours=one.wall / one.steps,
                    theirs=base.wall / base.steps,
                    goal=at_most(_MOST_GROWTH),
                    load=load,
                )
            )
        result.append(Line(work=f"{work}, memory", ours=one.memory, goal=below(_MOST_MEMORY), unit="MiB", load=load))
    return result


class _Measured(NamedTuple):
    """All that was measured; a part that was left out is empty."""

    row: Sequence[Row] = ()
    floors: dict[str, Spent] = {}  # noqa: RUF012  # nobody changes it
    grown: Sequence[Grown] = ()
    side: Sequence[Row] = ()
    lines: Sequence[Line] = ()


def _measure(top: Path, parts: Sequence[str], *, steps: int, beside: int, rounds: int) -> _Measured:
    folders = _Folders(top)
    found = _Measured()
    if "in-a-row" in parts:
        load, (ours, others) = load_now(), in_a_row(steps)
        rows = _contest(folders, [*ours, *others], steps, rounds)
        table = [_line(f"{steps:,} trivial steps in a row", rows[0], row, load) for row in rows[len(ours) :]]
        floors = _floors(folders, steps, rounds)
        assert rows[0].spent is not None
        work = f"{steps:,} trivial steps in a row"
        table.append(Line(work=work, peer=RECORDED, ours=rows[0].spent.wall, theirs=floors[RECORDED].wall, load=load))
        found = found._replace(row=rows, floors=floors, lines=[*found.lines, *table])
    if "scaling" in parts:
        load, grown = load_now(), _scaling(folders, steps, rounds)
        found = found._replace(grown=grown, lines=[*found.lines, *_growth_lines(grown, load)])
    if "side-by-side" in parts:
        load, (mine, others) = load_now(), side_by_side(beside, _JOBS, _SLEEP)
        rows = _contest(folders, [mine, *others], beside, rounds)
        work = f"{beside} steps of 0.1 s, {_JOBS} at once"
        found = found._replace(side=rows, lines=[*found.lines, *(_line(work, rows[0], row, load) for row in rows[1:])])
    return found


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    top = Path(tempfile.mkdtemp(prefix="steps-", dir=folder))
    steps, beside = (3, 8) if quick else (_STEPS, _BESIDE)
    try:
        return list(_measure(top, _PARTS, steps=steps, beside=beside, rounds=rounds or (1 if quick else 5)).lines)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _contest_table(rows: Sequence[Row], floors: dict[str, Spent]) -> list[str]:
    table = ["| what | time | ratio | processor time | ratio | goal |", "| --- |" + " ---: |" * 5]
    base = rows[0].spent
    assert base is not None
    for row in rows:
        most = row.contestant.most
        goal = "" if most is None else f"at most {most:g}" if most else "less time"
        table.append(_contest_row(row.contestant.title(), row.spent, base, goal))
    table += [_contest_row(name, spent, base, "") for name, spent in floors.items()]
    return table


def _contest_row(title: str, spent: Spent | None, base: Spent, goal: str) -> str:
    if spent is None:
        return f"| {title} | not installed | | | | {goal} |"
    ratio = base.wall / spent.wall
    used = base.processor / max(spent.processor, 0.01)
    return f"| {title} | {spent.wall:.2f} s | {ratio:.2f} | {spent.processor:.2f} s | {used:.2f} | {goal} |"


def _growth_table(found: Sequence[Grown]) -> list[str]:
    table = ["| steps | time | of a step | ratio | processor time of a step | ratio | peak memory |"]
    table.append("|" + " ---: |" * 7)
    base = found[0]
    for one in found:
        wall, used = one.wall / one.steps, one.processor / one.steps
        ratios = wall / base.wall * base.steps, used / base.processor * base.steps
        table.append(
            f"| {one.steps:,} | {one.wall:.1f} s | {wall * 1000:.2f} ms | {ratios[0]:.2f} "
            f"| {used * 1000:.2f} ms | {ratios[1]:.2f} | {one.memory:.0f} MiB |"
        )
    return table


def main(argv: Sequence[str]) -> int:
    """Measure and print the tables; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=_STEPS, help=f"steps in a row ({_STEPS})")
    parser.add_argument("--beside", type=int, default=_BESIDE, help=f"steps side by side ({_BESIDE})")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--folder", help="where the state goes (default: the folder for temporary files)")
    parser.add_argument("--only", choices=_PARTS, help="this part only")
    options = parser.parse_args(argv)
    parts = _PARTS if options.only is None else (options.only,)
    with tempfile.TemporaryDirectory(prefix="steps-", dir=options.folder, ignore_cleanup_errors=True) as top:
        found = _measure(Path(top), parts, steps=options.steps, beside=options.beside, rounds=options.rounds)
    for table in (
        _contest_table(found.row, found.floors) if found.row else [],
        _growth_table(found.grown) if found.grown else [],
        _contest_table(found.side, {}) if found.side else [],
    ):
        if table:
            print("\n".join(table), end="\n\n")
    print("Ratios: ours (the first line) to the line's; of the second table, to the first line.")
    good = all(line.reached is not False for line in found.lines)
    print(f"Medians of {options.rounds}. Goals: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
