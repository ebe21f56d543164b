"""How often a file is looked at and read: in a scan of the workspace, and when outputs are verified."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.console import PROGRAM, Console
from tests.counted.tracing import counts, needs_strace, per_item, rose, traced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.counted.tracing import Call

pytestmark = [pytest.mark.slow, needs_strace]

FEW, MANY, IN_FOLDER = 500, 1500, 100
SCANS = """
import os
from pathlib import Path
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.scan import Workspace, difference

class Settled:
    def passed(self, info):
        return True

space, digests = Workspace.at(Path.cwd(), Excludes(())), ContentDigests(clock=Settled())
os.getpgid(0)
first = space.scan(digests)
os.getpgid(0)
second = space.scan(digests, first)
os.getpgid(0)
assert not difference(first, second).entries
"""
MARK = "getpgid"  # a call that nothing else makes
SIZES = (0, 1, 70_000, 262_144, 262_145, 3_000_000, 9_000_001)
READS = ("read", "pread64", "readv", "preadv", "preadv2")


def workspace(folder: Path, files: int) -> Path:
    """A tree of small files, a hundred in a folder."""
    for number in range(files):
        parent = folder / f"part{number // IN_FOLDER:03d}"
        parent.mkdir(parents=True, exist_ok=True)
        (parent / f"file{number:05d}").write_bytes(b"%d\n" % number * 20)
    return folder


def scans(folder: Path, files: int) -> tuple[Counter[str], Counter[str]]:
    """The calls of the first scan of a workspace, and of a later one that finds all as it was."""
    calls = traced([sys.executable, "-c", SCANS], workspace(folder, files)).calls
    begin, middle, end = (number for number, call in enumerate(calls) if call.name == MARK)
    return counts(calls[begin + 1 : middle]), counts(calls[middle + 1 : end])


def test_a_scan_looks_at_each_file_once_and_only_the_first_reads_it(tmp_path: Path) -> None:
    few, many = scans(tmp_path / "few", FEW), scans(tmp_path / "many", MANY)
    first, later = (per_item(one, other, MANY - FEW) for one, other in zip(few, many, strict=True))
    first["all calls"], later["all calls"] = sum(first.values()), sum(later.values())
    # What a folder costs is in it, too: with a hundred files in each that is a few hundredths for each call.
    assert rose(first, {"stat": 1.1, "openat": 1.1, "read": 1.1, "close": 1.1, "all calls": 4.6}) == []
    assert rose(later, {"stat": 1.1, "openat": 0.05, "read": 0.01, "close": 0.1, "all calls": 1.3}) == []


def read_below(calls: Sequence[Call], folder: Path) -> Counter[str]:
    """Bytes read of each file below a folder, by its name."""
    found: Counter[str] = Counter()
    for call in calls:
        name = re.match(rf"\d+<{re.escape(str(folder))}/([^>]*)>", call.words)
        assert call.name != "mmap" or f"<{folder}/" not in call.words, "what is read of a mapped file cannot be counted"
        if name is not None and call.name in READS:
            found[name[1]] += max(0, call.result)
    return found


def test_verifying_reads_each_byte_of_the_outputs_once(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    make = "; ".join(f"head -c {size} /dev/zero > out/{number}" for number, size in enumerate(SIZES))
    (folder / "checkpoint.yml").write_text(
        "job: demo\nshell: sh\nsteps:\n"
        f"- {{id: make, run: 'mkdir -p out; {make}', outputs: [out/]}}\n"
        "- {id: use, run: 'cat out/* > copy', outputs: [copy]}\n"
        "- {id: end, run: 'true'}\n"
    )
    assert Console(folder).run("--quiet").returncode == 0
    sizes = {f"out/{number}": size for number, size in enumerate(SIZES)} | {"copy": sum(SIZES)}
    for words in (["plan"], ["--quiet"]):
        read = read_below(traced([PROGRAM, *words], folder).calls, folder)
        assert {name: read[name] for name in sizes} == sizes, f"bytes read of each output by {words}"
