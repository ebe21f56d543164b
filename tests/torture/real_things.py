"""Real things that nobody here wrote, as resumable steps, with a ``kill -9`` in each and again.

From the smallest to the largest: downloads with curl and wget over a line that breaks, Python's own library compiled in
stages, builds of zlib, SQLite and CPython, three test suites, and downloads of 2 GiB. :attr:`Scale.count` says how many
of them, in this order; those from the fourth on fetch sources from Debian's and Python's registries, and count as not
to be had where these are out of reach.
"""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING

from tests.torture import real_builds
from tests.torture.outcome import Outcome
from tests.torture.real_downloads import downloaded
from tests.torture.real_suites import PROJECTS, suite
from tests.torture.staged import interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.torture.outcome import Scale
    from tests.torture.staged import Thing

__all__ = ["SMALL", "torture"]

_MIB = 1 << 20


SMALL = ("curl", "wget", "the standard library")
"""Those that need no registry and no more than seconds."""


def torture(folder: Path, scale: Scale, only: Sequence[str] = ()) -> Outcome:
    """Run as many of the things as the scale says.

    :param only: names of those that are run, where not all of them are.
    """
    outcome = Outcome()
    end = time.monotonic() + scale.seconds
    for number, (name, thing) in enumerate(_things()):
        if number >= scale.count or time.monotonic() >= end:
            break
        if only and name not in only:
            continue
        place = folder / str(number)
        place.mkdir()
        begin = time.monotonic()
        try:
            thing(place, random.Random(f"{scale.seed} {number}"), outcome)
        except RuntimeError as error:
            outcome.faults.append(str(error))
        outcome.tried[f"{name}: seconds"] += round(time.monotonic() - begin)
    return outcome


def _things() -> list[tuple[str, Callable[[Path, random.Random, Outcome], None]]]:
    return [
        ("curl", partial(_download, "curl", 32 * _MIB, 4 * _MIB, None)),
        ("wget", partial(_download, "wget", 32 * _MIB, 4 * _MIB, None)),
        ("the standard library", _standard_library),
        ("zlib", partial(_package, real_builds.ZLIB, "zlib")),
        *((f"the tests of {project}", partial(_suite, project)) for project in PROJECTS),
        ("SQLite", partial(_package, real_builds.SQLITE, "sqlite3")),
        ("CPython", partial(_package, real_builds.PYTHON, "python3.11")),
        ("curl, 2 GiB", partial(_download, "curl", 2048 * _MIB, 96 * _MIB, 32.0 * _MIB)),
        ("wget, 2 GiB", partial(_download, "wget", 2048 * _MIB, 96 * _MIB, 32.0 * _MIB)),
    ]


def _download(
    tool: str, size: int, every: int, rate: float | None, folder: Path, chance: random.Random, outcome: Outcome
) -> None:
    downloaded(tool, size, every, folder, chance, outcome, rate=rate)


def _standard_library(folder: Path, chance: random.Random, outcome: Outcome) -> None:
    given = folder / "given"
    given.mkdir()
    real_builds.standard_library(given)
    interrupted(real_builds.STANDARD_LIBRARY, given, folder, chance, outcome)


def _package(thing: Thing, package: str, folder: Path, chance: random.Random, outcome: Outcome) -> None:
    given = folder / "given"
    given.mkdir()
    if real_builds.debian_sources(given, package):
        interrupted(thing, given, folder, chance, outcome)
    else:
        outcome.tried[f"{thing.name}: not to be had"] += 1


def _suite(project: str, folder: Path, chance: random.Random, outcome: Outcome) -> None:
    given = folder / "given"
    given.mkdir()
    thing = suite(given, project)
    if thing is None:
        outcome.tried[f"the tests of {project}: not to be had"] += 1
    else:
        interrupted(thing, given, folder, chance, outcome)
