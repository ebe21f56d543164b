"""How long it takes to see what a step has changed in a large workspace, beside `find`.

::

    python -m benchmarks.scan                    100,000 files, a step that changes ten, three rounds
    python -m benchmarks.scan --files 10000 --rounds 5

Before a step and after it the workspace is scanned, and the difference is the step's layer. Beside it run, twice as
well, `find . -printf '%s %T@ %i\\n'` and the least that Python can do: `os.scandir` and a `stat` of everything. The
first scan of a run reads every file too, as nothing else tells what was in the ones that a step goes on to change; it
is measured apart, beside the least that Python can do to read and hash every file. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.lines import Line, at_most, load_now
from benchmarks.measure import titled
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.scan import Scan, Workspace, difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["lines", "main", "make"]

_IN_FOLDER = 100
_CHANGED = 10
_MOST = 1.5  # times find, twice
_FIND, _FIRST, _LATER = (
    "find, twice",
    "first scan of a run, which reads all",
    "scan before and after a step, difference",
)
_SETTLED = 2.5  # seconds after which a change of a file shows in its times


def make(root: Path, files: int) -> None:
    """A workspace of small files, a hundred in a folder."""
    for number in range(files):
        folder = root / f"part{number // (_IN_FOLDER * 100):02d}" / f"pkg{number // _IN_FOLDER:04d}"
        if number % _IN_FOLDER == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"module{number:06d}.txt").write_bytes(b"%d\n" % number * 40)


def _step(root: Path, files: int, word: str) -> None:
    for number in range(0, files, max(1, files // _CHANGED)):
        folder = root / f"part{number // (_IN_FOLDER * 100):02d}" / f"pkg{number // _IN_FOLDER:04d}"
        (folder / f"module{number:06d}.txt").write_text(word)


def _find(root: Path, times: int) -> None:
    for _ in range(times):
        subprocess.run(["find", ".", "-printf", r"%s %T@ %i\n"], cwd=root, stdout=subprocess.DEVNULL, check=True)


def _each_file(root: Path) -> Iterator[str]:
    """What any scan by Python does at least: every name, every kind, every stat."""
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as items:
            for item in items:
                item.stat(follow_symlinks=False)
                if item.is_dir(follow_symlinks=False):
                    folders.append(item.path)
                else:
                    yield item.path


def _hash_all(root: Path) -> None:
    for path in _each_file(root):
        number = os.open(path, os.O_RDONLY)
        hashlib.sha256(os.read(number, 1 << 20)).hexdigest()
        os.close(number)


class _Took(NamedTuple):
    """Seconds by the wall clock, and of processor time with that of processes started."""

    wall: float
    processor: float

    def and_then(self, other: _Took) -> _Took:
        return _Took(self.wall + other.wall, self.processor + other.processor)


def _seconds(call: Callable[[], object]) -> _Took:
    begin, worked = time.perf_counter(), sum(os.times()[:4])
    call()
    return _Took(time.perf_counter() - begin, sum(os.times()[:4]) - worked)


def _round(root: Path, files: int, word: str) -> dict[str, _Took]:
    """What each contestant took, by name."""
    space, digests = Workspace.at(root, Excludes(())), ContentDigests()
    scans = [Scan()]
    took = {
        _FIND: _seconds(lambda: _find(root, 2)),
        "scandir and stat in Python, twice": _seconds(lambda: [sum(1 for _ in _each_file(root)) for _ in range(2)]),
        "scandir, stat, read and hash in Python": _seconds(lambda: _hash_all(root)),
        _FIRST: _seconds(lambda: scans.append(space.scan(digests))),
    }
    before = _seconds(lambda: scans.append(space.scan(digests, scans[-1])))
    _step(root, files, word)
    after = _seconds(lambda: scans.append(space.scan(digests, scans[-1])))
    layers = []
    compared = _seconds(lambda: layers.append(difference(scans[-2], scans[-1])))
    if sum(entry.type == "file" for entry in layers[0].entries) != _CHANGED:
        raise SystemExit("the step's changes were not found")
    return took | {_LATER: before.and_then(after).and_then(compared)}


def _medians(files: int, rounds: int, top: Path | None) -> dict[str, _Took]:
    """The medians of each contestant."""
    with tempfile.TemporaryDirectory(dir=top, prefix="benchmark-scan-") as name:
        make(Path(name), files)
        found = []
        for number in range(rounds):
            time.sleep(_SETTLED)
            found.append(_round(Path(name), files, f"changed in round {number}"))
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return {
        what: _Took(median(row[what].wall for row in found), median(row[what].processor for row in found))
        for what in found[0]
    }


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    files, load, peer = (200 if quick else 100_000), load_now(), f"{titled('find')} -printf, twice"
    took = _medians(files, rounds or (1 if quick else 5), folder)
    works = {
        _LATER: f"workspace of {files:,} files scanned before and after a step",
        _FIRST: "first scan of a run, which reads every file, too",
    }
    return [
        Line(
            work=work,
            peer=peer,
            ours=took[what].wall,
            theirs=took[_FIND].wall,
            goal=at_most(_MOST) if what == _LATER else None,
            load=load,
        )
        for what, work in works.items()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files lie (default: the folder for temporary files)")
    options = parser.parse_args(argv)
    medians = _medians(options.files, options.rounds, options.folder)
    print(f"| {options.files:,} files | seconds | of find, twice | processor time | of find, twice |")
    print("| --- | ---: | ---: | ---: | ---: |")
    least = medians[_FIND]
    for what, took in medians.items():
        print(f"| {what}", *(f"| {one:.2f} s | {one / of:.2f}" for one, of in zip(took, least, strict=True)), "|")
    good = medians[_LATER].wall <= _MOST * least.wall
    print(f"\nGoal (a scan before and after a step at most {_MOST:g} x find, twice): {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
