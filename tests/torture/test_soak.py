"""The short form of the long job; the long one is ``python -m tests.torture soak``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture.outcome import Scale
from tests.torture.soak import Sample, Soaked, compare, torture

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_a_long_job_stays_flat_whatever_goes_wrong_in_it(tmp_path: Path) -> None:
    outcome = torture(tmp_path, Scale(count=1500, seconds=60))
    assert outcome.faults == []
    assert outcome.tried["steps of one job in fast motion"] == 1500
    assert outcome.tried["steps of the program"] == 100


def rising(**step: float) -> Soaked:
    """A run of a thousand steps in which things grow."""
    samples = [
        Sample(
            number,
            (50 << 20) + int(number * step.get("memory", 0)),
            10 + int(number * step.get("descriptors", 0)),
            3 + int(number * step.get("threads", 0)),
        )
        for number in range(1, 1001)
    ]
    return Soaked("made up", 1000, samples)


def test_what_grows_is_seen() -> None:
    assert compare(rising()) == []
    assert [line.split()[0] for line in compare(rising(memory=10_000))] == ["memory"]
    assert [line.split()[0] for line in compare(rising(descriptors=0.01))] == ["descriptors"]
    assert [line.split()[0] for line in compare(rising(threads=0.01))] == ["threads"]


def test_too_few_looks_are_a_fault() -> None:
    assert "too few looks" in compare(Soaked("made up", 1000, [Sample(500, 1, 1, 1)]))[0]
