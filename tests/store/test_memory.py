"""Whether memory is used again, as the system counts it."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
from checkpoint_action.store.memory import keep_large_blocks

if sys.argv[1] == "kept":
    keep_large_blocks()

def rounds(number):
    for _ in range(number):
        blocks = [b"x" * (2 << 20) for _ in range(4)]
        del blocks

rounds(2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
rounds(20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
"""Prints how many pages the system had to give while 20 times 8 MiB came and went."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory by rules of its own")
def test_large_blocks_that_come_and_go_get_the_same_memory_again() -> None:
    faults = [
        int(subprocess.run([sys.executable, "-c", FAULTS, word], check=True, capture_output=True, text=True).stdout)
        for word in ("kept", "given-back")
    ]
    assert faults[0] < faults[1] / 4


LITTLE = """
import resource
from checkpoint_action.store.memory import keep_large_blocks

used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + (4 << 20), resource.RLIM_INFINITY))
keep_large_blocks()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="as Linux tells and limits memory")
def test_where_there_is_little_memory_nothing_is_asked_for_that_need_not_be() -> None:
    subprocess.run([sys.executable, "-c", LITTLE], check=True)
