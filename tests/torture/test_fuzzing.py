"""Some hundred inputs for each parser; the long form is ``python -m tests.torture fuzzing``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture.fuzz_target import corpus_of
from tests.torture.fuzz_targets import TARGETS
from tests.torture.fuzzing import torture
from tests.torture.outcome import Scale

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="limits of a process, alarms and names as POSIX has them"),
]

INPUTS = 250
SEED = 20_261_130
NEVER_REFUSED = {"reports"}


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_does_what_is_not_documented(name: str, tmp_path: Path) -> None:
    outcome = torture(tmp_path, Scale(INPUTS, 100, SEED), [name])
    assert outcome.faults == []
    tried, taken = outcome.tried[f"{name}: inputs"], outcome.tried[f"{name}: of these taken"]
    assert tried == len(corpus_of(TARGETS[name])) + INPUTS
    assert taken > 0, "nothing is ever taken: this proves nothing"
    assert (taken < tried) is (name not in NEVER_REFUSED), "nothing is ever refused: this proves nothing"
