"""The benchmark of starts does what it says, on next to no steps. What it measures decides nothing."""

from __future__ import annotations

import sys

import pytest

from benchmarks import startup

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh")]


def test_it_measures_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert startup.main(["--steps", "3", "--rounds", "1"]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert len(table) == 9
    assert "Medians of 1. Goals: " in lines[-1]
