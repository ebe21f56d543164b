"""A round of the security trials; the long form is ``python -m tests.torture security``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture import hostile_places
from tests.torture.hostile_words import commands_in, log_faults, markup_faults, shown_faults
from tests.torture.outcome import Scale
from tests.torture.security import torture

if TYPE_CHECKING:
    from pathlib import Path

KINDS = 14
LINES = (
    "x ::set-output name=a::1\n ::error file=a::PWNED-BARE\nab ##[add-path]PWNED-BARE\n"
    "::stop-commands::stop-1\n::error::a\n"
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the texts are for POSIX shells")
def test_nothing_hostile_gets_its_way(tmp_path: Path) -> None:
    outcome = torture(tmp_path, Scale(1, 15))
    assert outcome.faults == []
    assert len(outcome.tried) == KINDS - (not hostile_places.strangers())
    assert min(outcome.tried.values()) >= 1


def test_the_judges_see_what_a_runner_a_terminal_and_a_browser_would_obey() -> None:
    assert [name for name, _ in commands_in(LINES)] == ["error", "add-path", "stop-commands"]
    assert len(log_faults(LINES)) == 2
    assert log_faults(LINES + "::stop-1::\n::set-output name=a::1\n")[-1].startswith("the runner obeys set-output")
    assert shown_faults("a line", "a\x1b[2Jb")
    assert not shown_faults("a line", "a\\x1b[2J é\n")
    assert markup_faults("<b>x</b><img src=x onerror=y>", "<b>x</b>")
    assert not markup_faults("<b>&lt;img&gt;</b>", "<b>x</b>")
