"""A job's life from its first run to its last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.resume.edits import EDITS, Edit
from tests.resume.situation import SHELLS, VALUES, Seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.resume.recipe import Trip

__all__ = ["CUTS", "Cut", "Round", "Story", "stories"]

CUTS = ("early", "half", "late", "missing", "stop", "stop-after", "die", "die-after")


@dataclass(frozen=True, slots=True)
class Cut:
    """How a run is cut short.

    :param at: it does so in the first step to run that comes after so many.
    :param how: where the step goes wrong (a ``Trip``), or that we are stopped or die with it half done, or just after.
    """

    at: int
    how: str

    @property
    def trip(self) -> Trip | None:
        """What the step itself does."""
        trips: dict[str, Trip] = {"early": "early", "late": "late", "missing": "missing"}
        return trips.get(self.how) or (None if self.how.endswith("after") else "half")

    @property
    def stops(self) -> bool:
        """Whether it ends the whole run."""
        return self.how.startswith(("stop", "die"))


@dataclass(frozen=True, slots=True)
class Round:
    """Edits, and a run after them.

    :param jobs: how many steps may run at once.
    """

    edits: tuple[Edit, ...] = ()
    cut: Cut | None = None
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Story:
    """All of it.

    :param seeds: the steps of the first job.
    :param continue_on_error: whether a run goes on after a failure.
    """

    seeds: tuple[Seed, ...]
    rounds: tuple[Round, ...]
    continue_on_error: bool = False


_LUCK = st.integers(0, 2**24 - 1)
"""What chance decides in one go: the parts of an edit or a step are then independent of each other, which they are not
when each is drawn by hypothesis. Small enough to be drawn evenly."""

_ALL = 2**10 - 1


def _seed(luck: int, features: int, shells: Sequence[str]) -> Seed:
    """A step.

    :param features: one bit for each thing that may be unusual about it; without any it is the plainest.
    """
    chance = Random(luck)

    def some(most: int, *ranges: int) -> tuple[Any, ...]:
        found = [tuple(map(chance.randrange, ranges)) for _ in range(chance.randint(0, most))]
        return tuple(one if len(ranges) > 1 else one[0] for one in found)

    parts: list[dict[str, Any]] = [
        {"needs": some(3, 6)},
        {"reads": some(2, 1000, 2, 2)},
        {"takes": some(2, 5, 3, 2, 2, 2)},
        {"extra": some(2, 1000)},
        {"kind": chance.randrange(1000), "count": chance.randint(1, 3)},
        {"mode": chance.randrange(1000), "salt": chance.randrange(3)},
        {"patches": chance.choice([None, 0, 1, 2, 3])},
        {
            "env": tuple((name, chance.choice(VALUES)) for name in ("STORY_E", "STORY_P") if chance.random() < 0.4),
            "pass_env": tuple(name for name in ("STORY_P", "STORY_Q") if chance.random() < 0.5),
            "reads_variables": chance.random() < 0.5,
        },
        {"always": chance.random() < 0.1},
        {"inside": chance.random() < 0.5, "shell": chance.choice(shells)},
    ]
    chosen = {name: value for bit, part in enumerate(parts) if features >> bit & 1 for name, value in part.items()}
    return Seed(**{"shell": shells[0], **chosen})


def _edit(luck: int, shells: Sequence[str]) -> Edit:
    chance = Random(luck)
    kind = chance.choice(sorted(EDITS))
    return Edit(kind, chance.randrange(1000), chance.randrange(1000), _seed(chance.randrange(10**9), _ALL, shells))


def stories(
    most_steps: int = 30,
    *,
    most_runs: int = 6,
    cuts: Sequence[str] = CUTS,
    shells: Sequence[str] = SHELLS,
) -> st.SearchStrategy[Story]:
    """Any story; its last run is not cut short.

    :param cuts: the ways in which runs are.
    :param shells: the shells that steps may have.
    """

    def cut(luck: int) -> Cut | None:
        chance = Random(luck)
        return Cut(chance.randrange(most_steps), chance.choice(cuts))

    def told(steps: list[Seed], early: list[Round], last: Round, goes_on: bool) -> Story:
        runs = [one if one.cut is None else replace(one, jobs=1) for one in [*early, replace(last, cut=None)]]
        return Story(tuple(steps), tuple(runs), goes_on)

    seeds = st.builds(_seed, _LUCK, st.integers(0, _ALL), st.just(shells))
    edits = st.lists(st.builds(_edit, _LUCK, st.just(shells)), max_size=8).map(tuple)
    rounds = st.builds(Round, edits, st.none() | _LUCK.map(cut), st.sampled_from([1, 1, 3]))
    sizes = [st.lists(seeds, min_size=1, max_size=min(7, most_steps))]
    sizes += [sizes[0], st.lists(seeds, min_size=8, max_size=most_steps)] if most_steps > 7 else []
    return st.builds(
        told, st.one_of(sizes), st.lists(rounds, min_size=1, max_size=most_runs - 1), rounds, st.booleans()
    )
