"""Instructions, as a multiple of those of a bare Python that does what cannot be left out, counted by valgrind.

The multiples hold on any machine; numbers of instructions differ with the Python and its libraries.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console
from tests.counted.tracing import counted_instructions, needs_valgrind, rose

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_valgrind]

PROGRAM = (sys.executable, "-m", "checkpoint_action")
BASE = (sys.executable, "-c", "import argparse, json, hashlib")
PARSE = (sys.executable, "-c", "import yaml; yaml.load(open('checkpoint.yml', 'rb'), yaml.CSafeLoader)")
FEW, MANY = 20, 80


def job(folder: Path, steps: int) -> Path:
    """A job whose steps are all done."""
    folder.mkdir()
    lines = "".join(f"- {{id: step{number:04d}, run: 'true'}}\n" for number in range(steps))
    (folder / "checkpoint.yml").write_text(f"job: demo\nshell: sh\nsteps:\n{lines}")
    for _ in range(2):  # the second keeps the answer, where one is kept
        assert Console(folder).run("--quiet").returncode == 0
    return folder


def test_what_does_next_to_nothing(tmp_path: Path) -> None:
    folder = job(tmp_path / "job", FEW)
    base = counted_instructions(BASE, folder)
    taken = {
        " ".join(words): counted_instructions([*PROGRAM, *words], folder) / base for words in (["--help"], ["status"])
    }
    assert rose(taken, {"--help": 1.3, "status": 1.3}) == [], f"times a bare Python, of {taken}"


def test_each_step_that_is_done(tmp_path: Path) -> None:
    """What a finished step costs the next run: a multiple of parsing its line of the job file."""
    few, many = job(tmp_path / "few", FEW), job(tmp_path / "many", MANY)

    def more(argv: Sequence[str]) -> int:
        """Instructions for the further steps."""
        return counted_instructions(argv, many) - counted_instructions(argv, few)

    parse = more(PARSE)
    taken = {" ".join(words): more([*PROGRAM, *words]) / parse for words in (["plan"], ["--quiet"], ["status"])}
    for folder in (few, many):
        (folder / ".checkpoint-run-demo.plan").unlink()  # so that nothing tells the answer
    taken["plan anew"] = more([*PROGRAM, "plan"]) / parse
    assert rose(taken, {"plan": 0.4, "--quiet": 0.4, "status": 1.0, "plan anew": 8.4}) == [], f"of parsing, of {taken}"
