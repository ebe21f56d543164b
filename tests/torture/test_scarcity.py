"""The short form of too little of everything; ``python -m tests.torture scarcity`` is the long one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture.outcome import Scale
from tests.torture.trouble import why_not

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash"),
]


def test_with_too_little_of_anything_nothing_that_is_done_is_lost(tmp_path: Path) -> None:
    if why := why_not():
        pytest.skip(why)
    from tests.torture.scarcity import torture  # noqa: PLC0415  # limits are of POSIX systems

    outcome = torture(tmp_path, Scale(10, 300.0))
    assert outcome.faults == []
    kinds = (
        "a call fails",
        "at most 6 to 40 descriptors",
        "64 MiB",
        "TMPDIR",
        "a wall clock",
        "a slow disk",
        "a store's",
    )
    for kind in kinds:
        assert any(what.startswith(kind) for what in outcome.tried), (kind, outcome.tried)
