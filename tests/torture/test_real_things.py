"""Small downloads and a small build, killed; the long form is ``python -m tests.torture real-things``."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture.outcome import Scale
from tests.torture.real_things import SMALL, torture

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are for bash"),
]


@pytest.mark.parametrize("name", SMALL)
def test_work_that_is_killed_becomes_what_it_would_have_become(name: str, tmp_path: Path) -> None:
    if name in {"curl", "wget"} and shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    outcome = torture(tmp_path, Scale(len(SMALL), 300, 1), [name])
    assert outcome.faults == []
    kills = sum(times for what, times in outcome.tried.items() if "kill -9" in what)
    assert kills >= 2
