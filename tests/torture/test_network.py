"""The short form of a bad line to the store; ``python -m tests.torture network`` is the long one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture.outcome import Scale

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash"),
]


def test_whatever_happens_on_the_line_a_job_ends_as_without_a_store(tmp_path: Path) -> None:
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    pytest.importorskip("obstore", reason="obstore is not installed")
    from tests.torture.network import torture  # noqa: PLC0415  # needs both

    outcome = torture(tmp_path, Scale(8, 300.0, seed=3))
    assert outcome.faults == []
    for kind in ("runs on a bad way", "runs on a good line", "push", "pull", "way", "request"):
        assert sum(times for what, times in outcome.tried.items() if what.startswith(kind)), (kind, outcome.tried)
