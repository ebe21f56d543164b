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

from benchmarks.measure import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "mixed_sizes"]

_MIB = 1 << 20
_SEED = 20260101
_FILES = 64
_LEAST_RATIO = 0.85
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


def _contest(name: str, sizes: Sequence[int], rounds: int, top: Path) -> tuple[str, float]:
    """One line of the table, and our speed as a part of that of sha256sum."""
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
    speed = {which: sum(sizes) / _MIB / median(seconds) for which, seconds in times.items()}
    ratio = {which: speed["plan"] / speed[which] for which in ("sha256sum", "openssl")}
    text = {which: f"{mib:.0f} MiB/s" for which, mib in speed.items()}
    line = (
        f"| {name} | {len(sizes)} | {text['plan']} | {text['sha256sum']} | {ratio['sha256sum']:.2f} "
        f"| {text['openssl']} | {ratio['openssl']:.2f} |"
    )
    return line, ratio["sha256sum"]


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify", description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=4096, help="how much the step leaves (4096)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--folder", help="where the files go (default: the folder for temporary files)")
    options = parser.parse_args(argv)
    total = options.mib * _MIB
    lines = ["| outputs | files | plan | sha256sum | ratio | openssl dgst | ratio |", "| --- |" + " ---: |" * 6]
    good = True
    for name, sizes in (("of one size", [total // _FILES] * _FILES), ("of all sizes", mixed_sizes(total))):
        with tempfile.TemporaryDirectory(prefix="verify-", dir=options.folder) as top:
            line, ratio = _contest(name, sizes, options.rounds, Path(top))
        lines.append(line)
        good = good and ratio >= _LEAST_RATIO
    print("\n".join(lines))
    print(f"\nGoal (at least {_LEAST_RATIO} of the speed of sha256sum): {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
