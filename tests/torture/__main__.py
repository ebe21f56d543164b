"""The long form of the torture tests: ``python -m tests.torture [PART …]``; see docs/reliability.md.

::

    python -m tests.torture                      every part in its long form, one after the other
    python -m tests.torture kills --count 2000   one part, so many times
    python -m tests.torture fuzzing --seconds 60
    python -m tests.torture --list

Prints a Markdown table of what was tried, and one line for each fault; ends with 1 where there was any.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.torture.outcome import Scale

if TYPE_CHECKING:
    from tests.torture.outcome import Outcome, Part

_PARTS: dict[str, tuple[str, Scale]] = {
    "power-loss": ("power_loss", Scale(20_000, 3600)),
    "kills": ("kills", Scale(2_000, 4 * 3600)),
    "scarcity": ("scarcity", Scale(2_000, 3600)),
    "network": ("network", Scale(1_000, 4 * 3600)),
    "fuzzing": ("fuzzing", Scale(sys.maxsize, 3600)),
    "security": ("security", Scale(1_000, 3600)),
    "soak": ("soak", Scale(100_000, 3600)),
    "real-things": ("real_things", Scale(sys.maxsize, 4 * 3600)),
}
"""Each part's module and its long form."""


def main() -> int:
    """Run the parts that are asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(_PARTS))
    parser.add_argument("--count", type=int, help="how many are tried at most")
    parser.add_argument("--seconds", type=float, help="time after which none is begun")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what chance starts from")
    parser.add_argument("--list", action="store_true", help="print the parts' names and end")
    options = parser.parse_args()
    if options.list:
        print(*_PARTS, sep="\n")
        return 0
    if unknown := sorted({*options.parts} - {*_PARTS}):
        parser.error(f"no such part: {', '.join(unknown)} (there are {', '.join(_PARTS)})")
    faults = 0
    for name in options.parts or _PARTS:
        module, long = _PARTS[name]
        scale = Scale(options.count or long.count, options.seconds or long.seconds, options.seed)
        part: Part = importlib.import_module(f"tests.torture.{module}").torture
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"torture-{name}-", ignore_cleanup_errors=True) as folder:
            outcome = part(Path(folder), scale)
        faults += len(outcome.faults)
        _print(name, scale, outcome, time.monotonic() - begin)
    return 1 if faults else 0


def _print(name: str, scale: Scale, outcome: Outcome, seconds: float) -> None:
    print(f"\n{name}: {seconds:,.0f} s, seed {scale.seed}\n\n| tried | times |\n| --- | ---: |")
    for what, times in outcome.tried.items():
        print(f"| {what} | {times:,} |")
    print(f"| **faults found** | {len(outcome.faults)} |", flush=True)
    for fault in outcome.faults:
        print(f"FAULT {name}: {fault}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
