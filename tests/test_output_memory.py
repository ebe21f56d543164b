"""A step that prints a lot: all of it in the log, and none of it in our memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(sys.executable).with_name("checkpoint-run")
SIZE = 400 << 20

# Runs the tool and tells the most memory that it ever had, in KiB.
MEASURE = r"""
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak(folder: Path, job: str, command: str) -> int:
    words = [sys.executable, "-c", MEASURE, str(TOOL), "--job", job, "--step", f"a:{command}"]
    done = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts in KiB on Linux alone")
def test_memory_does_not_grow_with_the_output_and_the_log_is_whole(tmp_path: Path) -> None:
    little = peak(tmp_path, "little", "echo x")
    much = peak(tmp_path, "much", f"head -c {SIZE} /dev/zero")
    assert much - little < 32 << 10
    assert (tmp_path / ".checkpoint-run-much.logs/a.log").stat().st_size == SIZE
