"""A job of very many steps in one go, with faults all along: memory, descriptors and threads stay as they are.

In fast motion the engine runs all of the steps with a stand-in for processes, in the order and with the state of a real
run; the real program then runs a twentieth as many with real processes. What is compared are the medians of the second
tenth of the run and of its last.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.torture.outcome import Outcome, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Sample", "Soaked", "compare", "torture"]

_SHARE_OF_REAL = 20
_ROOM = 4 << 20
"""Bytes of memory that may be more at the end whatever the length of the run: what the interpreter keeps for later."""
_A_STEP = 300
"""Bytes that a step may leave in memory: its id among those that ran, and the like; its record was there before."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How a process stood.

    :param steps: how many had ended.
    :param memory: its resident bytes.
    """

    steps: int
    memory: int
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True)
class Soaked:
    """What came of a run.

    :param name: what it was, for the table.
    :param faults: what was not as expected, apart from what the samples tell.
    """

    name: str
    steps: int
    samples: Sequence[Sample]
    faults: Sequence[str] = ()
    had: Sequence[tuple[str, int]] = ()


def torture(folder: Path, scale: Scale) -> Outcome:
    """See :class:`tests.torture.outcome.Part`; what is counted are the steps in fast motion."""
    from tests.torture import soak_in_fast_motion, soak_of_the_program  # noqa: PLC0415  # they import what is here

    outcome = Outcome()
    real = max(100, scale.count // _SHARE_OF_REAL)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        ways = [
            pool.submit(soak_in_fast_motion.soak, folder / "fast", scale.count),
            pool.submit(soak_of_the_program.soak, folder / "real", real, store=False),
            pool.submit(soak_of_the_program.soak, folder / "stored", max(40, real // 10), store=True),
        ]
        for way in ways:
            one = way.result()
            outcome.tried[f"steps {one.name}"] += one.steps
            outcome.tried[f"… looks at memory, descriptors and threads {one.name}"] += len(one.samples)
            for what, times in one.had:
                outcome.tried[f"… {what} {one.name}"] += times
            for when, those in zip(("second", "last"), _tenths(one), strict=True):
                if those:
                    kib = round(median(look.memory for look in those) / 1024)
                    outcome.tried[f"… KiB of memory {one.name}, median of the {when} tenth"] += kib
            outcome.faults += [f"{one.name}: {fault}" for fault in (*one.faults, *compare(one))]
    return outcome


def _tenths(soaked: Soaked) -> tuple[list[Sample], list[Sample]]:
    """The looks in the second tenth of a run, and in its last."""
    second = [one for one in soaked.samples if soaked.steps * 0.1 <= one.steps < soaked.steps * 0.2]
    return second, [one for one in soaked.samples if one.steps >= soaked.steps * 0.9]


def compare(soaked: Soaked) -> list[str]:
    """What has grown from the second tenth of a run to its last; one line each."""
    second, last = _tenths(soaked)
    if not second or not last:
        return [f"too few looks: {len(second)} in the second tenth, {len(last)} in the last"]
    grown = []
    for name, room in (("memory", _ROOM + _A_STEP * soaked.steps), ("descriptors", 2), ("threads", 1)):
        before = median(getattr(one, name) for one in second)
        after = median(getattr(one, name) for one in last)
        if after > before + room:
            grown.append(f"{name} grew from {before:,.0f} to {after:,.0f}")
    return grown


def sample(pid: int, steps: int) -> Sample:
    """How a process of Linux stands now.

    :raises OSError: it has ended.
    """
    place = Path(f"/proc/{pid}")
    pages = int((place / "statm").read_text().split()[1])
    count = sum(1 for _ in (place / "fd").iterdir())
    threads = sum(1 for _ in (place / "task").iterdir())
    return Sample(steps, pages * 4096, count, threads)
