"""The action where there is too little memory, or no more threads: one annotation, 5, and the re-run goes on."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.error_texts import PAGES
from checkpoint_action.errors import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from tests.action.machine import Workflow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS does nothing elsewhere")

STEPS = """\
- {id: build, run: 'ulimit -S -v unlimited; echo >> "$KEEP/build"; seq 99 > app', outputs: [app]}
- {id: test, run: 'ulimit -S -v unlimited; echo >> "$KEEP/test"; cksum app > sum', outputs: [sum]}
"""
MEMORY = PAGES[Kind.EXHAUSTED].example
STEP = 512  # KiB
THREADS = """\
#!{python} -IS
import os, runpy, sys, threading
del sys.argv[:-1]
left, start = {threads}, threading.Thread.start

def few(thread):
    global left
    if left <= 0:
        raise RuntimeError("can't start new thread")
    left -= 1
    start(thread)

threading.Thread.start = few
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def limited(folder: Path, size: int) -> str:
    """A Python that may map so many KiB, which its steps may undo."""
    path = folder / f"python-{size}"
    path.write_text(f'#!/bin/sh\nulimit -S -v {size}\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return str(path)


def least(folder: Path) -> int:
    """The KiB with which Python comes as far as to our first line."""
    for size in range(8 * STEP, 400 * STEP, STEP):
        command = [limited(folder, size), "-I", "-c", "import os, sys"]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return size + 2 * STEP
    raise AssertionError("Python does not start")


def judge(workflow: Workflow, python: str) -> int:
    """A use that lacks something, and the re-run that lacks nothing; what the first one ended with."""
    ended = workflow.run(STEPS, python=python)
    assert ended.code in (0, 5), ended.log
    assert "Traceback" not in ended.log
    assert "CPR901" not in ended.log
    assert len(ended.errors) == (1 if ended.code else 0), ended.log
    if ended.code:
        assert "::error title=checkpoint-run CPR306::" in ended.log
    assert ended.machine.leftovers() == []
    again = workflow.run(STEPS)
    assert again.code == 0, again.log
    assert (again.workspace / "app").read_text() == "".join(f"{number}\n" for number in range(1, 100))
    assert (again.workspace / "sum").exists()
    return ended.code


def test_where_python_just_starts_it_is_one_annotation(workflow: Workflow, tmp_path: Path) -> None:
    ended = workflow.run(STEPS, python=limited(tmp_path, least(tmp_path)))
    assert (ended.code, ended.log) == (5, f"::error title=checkpoint-run CPR306::{MEMORY}\n")


@pytest.mark.parametrize("part", [0, 2, 5])
def test_at_each_size_of_memory_it_works_or_says_that_it_lacks_it(
    workflow: Workflow, tmp_path: Path, part: int
) -> None:
    begin = least(tmp_path)
    judge(workflow, limited(tmp_path, begin + part * 20 * 1024))


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_with_few_threads_it_works_or_says_that_it_lacks_them(workflow: Workflow, tmp_path: Path, threads: int) -> None:
    python = tmp_path / "python"
    python.write_text(THREADS.format(python=sys.executable, threads=threads))
    python.chmod(0o755)
    assert judge(workflow, str(python)) == 5 or threads > 0
