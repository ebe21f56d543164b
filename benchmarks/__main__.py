"""All benchmarks one after the other, and one table of what they say.

::

    python -m benchmarks                          all of them; takes about half an hour and 40 GiB of disk
    python -m benchmarks --list                   what there is
    python -m benchmarks --only startup scan      some of them
    python -m benchmarks --write --json FILE      the table into docs/performance.md, and all figures into a file
    python -m benchmarks --quick                  the smallest scale, to see that all of it works

Each line of the table names the work, the peer with its version, both times, their ratio, the goal and whether it is
reached. The details of each are printed by its own module: ``python -m benchmarks.NAME``. What has to be installed is
in docs/performance.md; a peer that is missing is said to be. Ends with 1 when a goal is missed or one was not measured.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
import traceback
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import machine
from benchmarks.report import Outcome, as_json, in_place, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NAMES", "PAGE", "main"]

NAMES = (
    "resume",
    "steps",
    "output",
    "store",
    "scan",
    "verify",
    "plan",
    "startup",
    "setup",
    "two_machines",
    "kill_midway",
)
"""The modules, in the order of the table."""

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"


def measure(name: str, rounds: int | None, folder: Path | None, *, quick: bool) -> Outcome:
    """Run one benchmark; one that fails is an outcome, too."""
    begin = time.monotonic()
    try:
        found = import_module(f"benchmarks.{name}").lines(rounds=rounds, folder=folder, quick=quick)
        return Outcome(name, found, time.monotonic() - begin)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        words = (str(error) or type(error).__name__).strip().splitlines()
        return Outcome(name, (), time.monotonic() - begin, words[0] if words else type(error).__name__)


def _list() -> str:
    rows = []
    for name in NAMES:
        text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        told = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]  # loading all of them takes its time
        rows.append(f"{name:13} {told}")
    return "\n".join(rows)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help="these alone; --list names them")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and end")
    parser.add_argument("--rounds", type=int, help="runs of each contestant (default: what each benchmark needs)")
    parser.add_argument("--folder", type=Path, help="where the large files go (the folder for temporary files)")
    parser.add_argument("--quick", action="store_true", help="the smallest scale: it works, its figures say nothing")
    parser.add_argument(
        "--write", action="store_true", help="the table into docs/performance.md instead of printing it"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="all figures into a file, after each benchmark")
    return parser


def main(argv: Sequence[str] | None = None, page: Path = PAGE) -> int:
    """Measure all, then print or write.

    :param page: what ``--write`` writes into.
    """
    parser = _arguments()
    options = parser.parse_args(argv)
    if options.list:
        print(_list())
        return 0
    if options.write and (options.only or options.quick):
        parser.error("--write is for all of them at full scale: the page has one table from one run")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds needs at least 1")
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    told = machine.describe(options.folder)
    names = [name for name in NAMES if not options.only or name in options.only]
    outcomes: list[Outcome] = []
    for number, name in enumerate(names, 1):
        print(f"== {name} ({number} of {len(names)})", file=sys.stderr, flush=True)
        outcomes.append(measure(name, options.rounds, options.folder, quick=options.quick))
        print(f"== {name} took {outcomes[-1].seconds:.0f} s", file=sys.stderr, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(as_json(outcomes, told, date), indent=2) + "\n", encoding="utf-8")
    command = "python -m benchmarks" + "".join(
        f" {word} {value}" for word, value in (("--rounds", options.rounds), ("--folder", options.folder)) if value
    )
    text = markdown(outcomes, told, date, command)
    if options.quick:
        text = f"At the smallest scale: the figures say nothing.\n\n{text}"
    if options.write:
        page.write_text(in_place(page.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        print(text)
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
