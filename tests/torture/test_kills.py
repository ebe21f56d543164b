"""The short form of the kills; the long one is ``python -m tests.torture kills``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture.outcome import Scale

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes by their marks in /proc"),
]


def test_whatever_is_killed_no_finished_step_is_lost_and_no_unfinished_one_counts(tmp_path: Path) -> None:
    from tests.torture.kills import torture  # noqa: PLC0415  # not on every platform

    outcome = torture(tmp_path, Scale(count=16, seconds=30))
    assert outcome.faults == []
    assert outcome.tried["jobs drawn at random"] > 0
    assert sum(times for what, times in outcome.tried.items() if what.startswith("kills of")) > 0
