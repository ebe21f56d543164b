"""Writes ``requirements.txt``: what pyproject.toml asks for, pinned, with the hash of every wheel.

And ``requirements-cloud.txt``, with what object stores need besides. ``python runtime/lock.py`` writes both,
``--upgrade`` takes newer releases, ``--check`` only tells whether one is stale.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
LISTS = {"requirements.txt": (), "requirements-cloud.txt": ("--extra", "cloud")}
HEADER = "# What the action installs. Written by `python runtime/lock.py` from pyproject.toml; do not edit.\n"


def main(argv: list[str]) -> int:
    """Write or check the lists.

    :returns: 0, or 1 if one is stale.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the list is stale")
    parser.add_argument("--upgrade", action="store_true", help="take the newest releases")
    options = parser.parse_args(argv)
    stale = False
    for name, extras in LISTS.items():
        path = ROOT / "runtime" / name
        current = path.read_text(encoding="utf-8") if path.exists() else ""
        wanted = compiled("" if options.upgrade else current, extras)
        if wanted == current:
            continue
        if options.check:
            print(f"runtime/{name} is stale: run `python runtime/lock.py`", file=sys.stderr)
            stale = True
        else:
            path.write_text(wanted, encoding="utf-8", newline="\n")
    return int(stale)


def compiled(current: str, extras: Sequence[str]) -> str:
    """Resolve pyproject.toml for every platform and supported Python, keeping the pins of the current list."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.txt"
        output.write_text(current, encoding="utf-8")
        uv = ["uv", "pip", "compile", "--universal", "--generate-hashes", "--python-version", "3.10"]
        look = ["--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"]
        subprocess.run([*uv, *look, *extras, "pyproject.toml", "--output-file", str(output)], cwd=ROOT, check=True)
        return HEADER + output.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
