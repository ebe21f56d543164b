"""Our part of the comparison with other tools, so that what the documentation says of us stays true."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.kill_midway import EVERYTHING, TOOL_ALONE, Finding, check_undisturbed, examine, table
from benchmarks.peers import OURS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are shell scripts")


@pytest.mark.slow
def test_undisturbed(tmp_path: Path) -> None:
    check_undisturbed(OURS, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [EVERYTHING, TOOL_ALONE])
def test_killed_in_the_middle_of_a_step(tmp_path: Path, killed: str) -> None:
    finding = examine(OURS, killed, tmp_path)
    assert finding.finished_kept
    assert finding.half_distrusted
    assert finding.no_unlock
    assert finding.no_orphan is (True if killed == TOOL_ALONE else None)
    assert finding.right


def test_a_tool_that_is_not_installed_is_called_so() -> None:
    head, rule, one, other = table(
        [("make 1", EVERYTHING, Finding(True, False, True, None, False)), ("just", "", None)]
    ).splitlines()
    assert head.count("|") == rule.count("|") == one.count("|") == other.count("|")
    assert one == "| make 1 | everything | yes | **no** | yes | – | **no** |"  # noqa: RUF001  # a dash
    assert other.startswith("| just |  | not installed |")
