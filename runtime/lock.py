"""Writes ``requirements.txt``: what pyproject.toml asks for, pinned, with the hash of every wheel.

``python runtime/lock.py`` writes it, ``--upgrade`` takes newer releases, ``--check`` only tells whether it is stale.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "runtime" / "requirements.txt"
HEADER = "# What the action installs. Written by `python runtime/lock.py` from pyproject.toml; do not edit.\n"


def main(argv: list[str]) -> int:
    """Write or check the list.

    :returns: 0, or 1 if the list is stale.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the list is stale")
    parser.add_argument("--upgrade", action="store_true", help="take the newest releases")
    options = parser.parse_args(argv)
    current = REQUIREMENTS.read_text(encoding="utf-8") if REQUIREMENTS.exists() else ""
    wanted = compiled("" if options.upgrade else current)
    if wanted == current:
        return 0
    if options.check:
        print("runtime/requirements.txt is stale: run `python runtime/lock.py`", file=sys.stderr)
        return 1
    REQUIREMENTS.write_text(wanted, encoding="utf-8", newline="\n")
    return 0


def compiled(current: str) -> str:
    """Resolve pyproject.toml for every platform and supported Python, keeping the pins of the current list."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.txt"
        output.write_text(current, encoding="utf-8")
        uv = ["uv", "pip", "compile", "--universal", "--generate-hashes", "--python-version", "3.10"]
        look = ["--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"]
        subprocess.run([*uv, *look, "pyproject.toml", "--output-file", str(output)], cwd=ROOT, check=True)
        return HEADER + output.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
