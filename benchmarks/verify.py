"""How fast the outputs of a finished step are verified, beside `xargs -P2 sha256sum` over the same files.

::

    python -m benchmarks.verify                    4 GiB, five rounds
    python -m benchmarks.verify --mib 512 --rounds 3

One done step whose outputs are 64 files of one size, and another whose outputs are of all sizes; all of them unchanged.
`checkpoint-run plan` reads every byte of them. The contestants alternate, so that what else the machine does hits all
alike, and the files are in memory, so that no disk is in the way. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.lines import Line, at_most, load_now
from benchmarks.measure import Folder, titled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["lines", "main", "mixed_sizes"]

_MIB = 1 << 20
_SEED = 20260101
_FILES = 64
_MOST = 1.15  # times sha256sum
_WRITE = """\
import os, random, sys
from pathlib import Path
Path("out").mkdir()
draw = random.Random(int(sys.argv[1]))
piece = draw.randbytes(1 << 20)
for number, size in enumerate(map(int, Path("sizes").read_text().split())):
    with open(f"out/file{number:05d}", "wb") as file:
        file.write(draw.randbytes(min(size, 64)))
        left = size - min(size, 64)
        while left > 0:
            left -= file.write(piece[:left])
"""


def mixed_sizes(total: int) -> list[int]:
    """Sizes of files, in bytes, that make up a total: from 1 KiB to a sixteenth of it, each order of magnitude."""
    draw = random.Random(_SEED)
    sizes = []
    left = total
    while left > 0:
        size = min(left, int(1024 * (total / 16 / 1024) ** draw.random()))
        sizes.append(size)
        left -= size
    return sizes


def _all_done(said: bytes) -> None:
    if any(step["action"] != "skip" for step in json.loads(said)["steps"]):
        raise SystemExit("the outputs do not verify")


def _kinds(total: int) -> tuple[tuple[str, list[int]], ...]:
    """The sizes of the files of the two jobs, with their names."""
    return ("of one size", [total // _FILES] * _FILES), ("of all sizes", mixed_sizes(total))


def _contest(name: str, sizes: Sequence[int], rounds: int, top: Path) -> dict[str, float]:
    """The medians of each contestant's seconds."""
    folder = Folder(top)
    (top / "sizes").write_text(" ".join(map(str, sizes)), encoding="ascii")
    write = f"{shlex.quote(sys.executable)} -c {shlex.quote(_WRITE)} {_SEED}"
    words = ["--job", "verify", "--step", f"write:{write}", "--step-artifact", "write:out"]
    print(f"{name}: writing {sum(sizes) / _MIB:.0f} MiB in {len(sizes)} files", file=sys.stderr)
    folder.run([folder.program, *words, "--quiet"])
    os.sync()
    some = max(1, len(sizes) // 64)  # for each process: few enough that none is left with the most
    hashing = f"find out -type f -print0 | xargs -0 -P2 -n {some} "
    commands = {
        "plan": [folder.program, "plan", "--json", *words],
        "sha256sum": ["sh", "-c", f"{hashing} sha256sum"],
        "openssl": ["sh", "-c", f"{hashing} openssl dgst -sha256"],
    }
    times: dict[str, list[float]] = {which: [] for which in commands}
    for number in range(rounds + 1):  # the first warms up
        for which in reversed(commands) if number % 2 else commands:
            spent = folder.measure(commands[which], _all_done if which == "plan" else None)
            if number:
                times[which].append(spent.wall)
        print(f"{name}: round {number} of {rounds}", file=sys.stderr)
    return {which: median(seconds) for which, seconds in times.items()}


def _row(name: str, sizes: Sequence[int], took: Mapping[str, float]) -> str:
    text = {which: f"{sum(sizes) / _MIB / seconds:.0f} MiB/s" for which, seconds in took.items()}
    ratio = {which: took["plan"] / took[which] for which in ("sha256sum", "openssl")}
    return (
        f"| {name} | {len(sizes)} | {text['plan']} | {text['sha256sum']} | {ratio['sha256sum']:.2f} "
        f"| {text['openssl']} | {ratio['openssl']:.2f} |"
    )


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    mib = 2 if quick else 4096
    amount = f"{mib} MiB" if quick else f"{mib // 1024} GiB"
    found = []
    for name, sizes in _kinds(mib * _MIB):
        load = load_now()
        with tempfile.TemporaryDirectory(prefix="verify-", dir=folder) as top:
            took = _contest(name, sizes, rounds or (1 if quick else 5), Path(top))
        work = f"verify {amount} of outputs, {len(sizes)} files {name}"
        peers = {
            "sha256sum": f"find, xargs -P2 {titled('sha256sum')}",
            "openssl": f"find, xargs -P2 {titled('openssl', 'openssl', 'version')} dgst",
        }
        found += [
            Line(
                work=work,
                peer=peer,
                ours=took["plan"],
                theirs=took[which],
                goal=at_most(_MOST) if which == "sha256sum" else None,
                load=load,
            )
            for which, peer in peers.items()
        ]
    return found


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify", description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=4096, help="how much the step leaves (4096)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--folder", help="where the files go (default: the folder for temporary files)")
    options = parser.parse_args(argv)
    total = options.mib * _MIB
    rows = ["| outputs | files | plan | sha256sum | ratio | openssl dgst | ratio |", "| --- |" + " ---: |" * 6]
    good = True
    for name, sizes in _kinds(total):
        with tempfile.TemporaryDirectory(prefix="verify-", dir=options.folder) as top:
            took = _contest(name, sizes, options.rounds, Path(top))
        rows.append(_row(name, sizes, took))
        good = good and took["plan"] <= _MOST * took["sha256sum"]
    print("\n".join(rows))
    print("\nRatios are of times: ours to theirs.")
    print(f"Goal (at most {_MOST:g} times sha256sum): {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
