"""The benchmark of many steps does what it says, on next to none. What it measures decides nothing."""

from __future__ import annotations

import sys

import pytest

from benchmarks import steps
from benchmarks.peers import Tool
from benchmarks.step_lists import Contestant, side_by_side

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh")]

_SMALL = ["--steps", "2", "--beside", "4", "--rounds", "1"]


def test_it_measures_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert steps.main(_SMALL) in (0, 1)
    said = capsys.readouterr().out
    tables = [part.splitlines() for part in said.split("\n\n") if part.startswith("|")]
    assert [len(table) - 2 for table in tables] == [12, 3, 3]
    for table in tables:
        assert len({line.count("|") for line in table}) == 1
    assert [line.split("|")[1].strip() for line in tables[1][2:]] == ["2", "20", "200"]
    assert "Medians of 1. Goals: " in said.splitlines()[-1]


def test_one_part_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert steps.main([*_SMALL, "--only", "side-by-side"]) in (0, 1)
    assert capsys.readouterr().out.count("| --- |") == 1


def test_a_peer_that_is_missing_is_named_as_such(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = side_by_side

    def without(count: int, jobs: int, command: str) -> tuple[Contestant, list[Contestant]]:
        ours, others = real(count, jobs, command)
        missing = Contestant(Tool("nonesuch", ("no-such-program",)), "", 1.1)
        return ours, [missing, *others]

    monkeypatch.setattr(steps, "side_by_side", without)
    assert steps.main([*_SMALL, "--only", "side-by-side"]) in (0, 1)
    assert "| nonesuch | not installed |" in capsys.readouterr().out


def test_each_goal_is_a_line_of_the_table_of_all() -> None:
    found = steps.lines(quick=True)
    assert sum(line.goal is not None for line in found) == 4 + 5 + 2
    assert all(line.ours > 0 for line in found)
