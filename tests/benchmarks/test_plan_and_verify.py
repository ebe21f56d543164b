"""The benchmarks of plan and verification do what they say, on next to no files. What they measure decides nothing."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import plan, verify

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the contestants are started by a shell"),
    pytest.mark.skipif(
        not all(map(shutil.which, ("git", "openssl", "sha256sum", "xargs"))), reason="a contestant is missing"
    ),
]


def test_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--steps", "3", "--files", "7", "--rounds", "1", "--only", "tiny", "--folder", str(tmp_path)]
    assert plan.main(words) in (0, 1)
    reading, looking = (
        [line for line in table.splitlines() if line.startswith("|")]
        for table in capsys.readouterr().out.split("\n\n")[:2]
    )
    for table in (reading, looking):
        assert len(table) == 3
        assert len({line.count("|") for line in table}) == 1
        assert table[2].startswith("| tiny")
    assert os.listdir(tmp_path) == []


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main(["--mib", "1", "--rounds", "1", "--folder", str(tmp_path)]) in (0, 1)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert [line.split("|")[1].strip() for line in lines] == ["outputs", "---", "of one size", "of all sizes"]
    assert os.listdir(tmp_path) == []


def test_sizes_make_up_the_total_and_are_of_all_orders() -> None:
    sizes = verify.mixed_sizes(1 << 32)
    assert sum(sizes) == 1 << 32
    assert min(sizes) < 1 << 12
    assert max(sizes) > 1 << 26
    assert sizes == verify.mixed_sizes(1 << 32)
