"""SIGKILL at random moments of jobs drawn at random; the same command again until they are done.

The tool alone is killed, or all that runs, or the server of the store; on a laptop and as the action's Python step. The
job must end as an undisturbed one, byte for byte; no step that was recorded may run again, nor one that was told to be
in the store where a fresh machine goes on; nothing may be left running.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from checkpoint_action.errors import CheckpointError
from checkpoint_action.store.bundle import read_header
from checkpoint_action.store.frames import frames
from tests.torture.drawn_jobs import draw
from tests.torture.killing import SHORT, Place, WrongError, chosen_moment
from tests.torture.outcome import Outcome, Scale

if TYPE_CHECKING:
    from pathlib import Path

    from tests.torture.killing import Killed

__all__ = ["torture"]

_HOWS = ("tool", "tool", "tree", "tree", "tool, and again at once")
_WORDS = {
    "tool": "kills of the tool alone",
    "tree": "kills of the tool and all it had started",
    "tool, and again at once": "kills of the tool alone, with the same command at once",
}
_MOST = 60  # kills of one job
_WORKERS = 2


def torture(folder: Path, scale: Scale) -> Outcome:
    """See :class:`tests.torture.outcome.Part`; what is counted are kills."""
    from tests.torture import kills_of_the_action  # noqa: PLC0415  # what it needs is not there on every platform

    outcome = Outcome()
    each = Scale(max(1, -(-scale.count // _WORKERS)), scale.seconds, scale.seed)
    with ProcessPoolExecutor(_WORKERS, multiprocessing.get_context("spawn")) as pool:
        ways = [pool.submit(_kill_jobs, folder / f"worker-{number}", each, number) for number in range(_WORKERS)]
        for way in ways:
            _add(outcome, way.result())
    _add(outcome, kills_of_the_action.torture(folder, Scale(max(1, scale.count // 20), scale.seconds / 4, scale.seed)))
    return outcome


def _add(outcome: Outcome, more: Outcome) -> None:
    outcome.tried.update(more.tried)
    outcome.faults += more.faults


def _kill_jobs(folder: Path, scale: Scale, worker: int) -> Outcome:
    """Jobs, one after the other, until there were enough kills."""
    outcome = Outcome()
    end = time.monotonic() + scale.seconds
    kills = number = 0
    while kills < scale.count and time.monotonic() < end:
        number += 1
        seed = scale.seed * 1_000_000 + worker * 100_000 + number
        place = folder / f"job-{number}"
        place.mkdir(parents=True)
        one = _KilledJob(place, seed, outcome, scale.count - kills, end)
        try:
            one.carry_out()
        except (WrongError, CheckpointError, AssertionError) as error:
            outcome.faults.append(f"job with seed {seed}: {type(error).__name__}: {error}")
        kills += one.kills
        shutil.rmtree(place, ignore_errors=True)
    return outcome


class _KilledJob:
    """One job, killed until it is done.

    :param most: so many kills.
    :param end: by the monotonic clock; after it nothing is killed any more.
    """

    def __init__(self, folder: Path, seed: int, outcome: Outcome, most: int, end: float) -> None:
        self._folder = folder
        self._chance = random.Random(seed)
        self._outcome = outcome
        self._most = min(most, _MOST)
        self._end = end
        self._mark = f"{seed}-{time.time_ns()}"
        self._places = 0
        self.job = draw(self._chance)
        self.store = folder / "store" if self._chance.random() < 0.5 else None
        self.kills = 0
        self._settled: dict[str, int] = {}  # how often steps had begun when they were recorded or known to be kept
        self._kept: set[str] = set()
        self._is_fresh = False  # whether the machine is not the one that the job began on
        self._here: set[str] = set()  # steps that were told to be done where the job is now

    def _place(self, store: Path | None) -> Place:
        self._places += 1
        return Place(self._folder / f"place-{self._places}", self.job, self._folder / "keep", self._mark, store)

    def carry_out(self) -> None:
        """Kill it until it is done, and then what moves its state.

        :raises WrongError: something is not as promised.
        """
        clean = Place(self._folder / "clean", self.job, self._folder / "clean-keep", self._mark, None)
        begin = time.monotonic()
        ended = clean.finish()
        whole = time.monotonic() - begin + (1.0 if self.store else 0.0)
        if ended.code != 0:
            raise WrongError(f"undisturbed, it ended with {ended.code}: {ended.said}")
        self._wanted = clean.trees()
        self._outcome.tried["jobs drawn at random"] += 1
        place = self._killed_until_done(self._place(self.store), whole)
        self._check_done(place)
        if self.store is None:
            self.store = self._folder / "store"
            if self._chance.random() < 0.75:
                return
            pushing = place.with_store(self.store)
            self._kill_verb(pushing, "push")
            self._kept = {step.name for step in self.job.steps}
        self._check_store()
        fresh = self._place(self.store)
        if self._chance.random() < 0.4:
            self._kill_verb(fresh, "pull")
        ended = fresh.finish()
        if ended.code != 0:
            raise WrongError(f"on a fresh machine it ended with {ended.code}: {ended.said}")
        self._check_done(fresh)
        self._outcome.tried["jobs put back whole on a fresh machine afterwards"] += 1

    def _killed_until_done(self, place: Place, whole: float) -> Place:
        longest = 0.0
        while True:
            before = place.begun()
            may_kill = self.kills < self._most and time.monotonic() < self._end
            how = self._chance.choice(_HOWS)
            if not may_kill:
                ended = place.finish()
            elif self._chance.random() < 0.4:
                ended = place.kill_at(chosen_moment(self._chance, whole, longest), how)
            else:  # where a slow start leaves little to time alone
                events = self._chance.randint(1, 2 * len(self.job.steps) + 2)
                ended = place.kill_at(self._chance.uniform(0, SHORT), how, events=events)
            if ended.code is not None and ended.code != 0:
                raise WrongError(f"it ended with {ended.code} by itself: {ended.said}")
            self._look(place, ended)
            if ended.code == 0:
                return place
            self._count(how, ended.phase(self.job, store=self.store is not None))
            longest = max(longest, 0.3) * 1.3 if place.begun() == before else 0.0
            if self.store is not None and self._chance.random() < 0.25:
                place, self._is_fresh, self._here = self._place(self.store), True, set()
                self._outcome.tried["times that a fresh machine went on from the store"] += 1
                self._settled = {step: count for step, count in self._settled.items() if step in self._kept}

    def _count(self, how: str, phase: str) -> None:
        self.kills += 1
        self._outcome.tried[_WORDS[how]] += 1
        self._outcome.tried[f"… {phase}"] += 1

    def _look(self, place: Place, ended: Killed) -> None:
        """See how things stand after a kill.

        :raises WrongError: not as promised.
        """
        count = place.begun()
        for step, times in self._settled.items():
            if count[step] != times:
                raise WrongError(f"{step} was done and began again; told: {ended.told[-6:]}")
        for event in ended.told:
            if event["event"] == "steps-kept":
                self._kept.update(event["steps"])
            elif event["event"] in ("step-restored", "step-skipped") or event.get("status") == "done":
                self._here.add(event["id"])
        there = place.trees()
        done = place.done()
        for step in done:
            if there[step] != self._wanted[step]:
                if self._is_fresh and step not in self._here and ended.code is None:
                    continue  # known from the store, and not put back yet
                raise WrongError(
                    f"{step} is done with other files than it leaves: {_differing(there[step], self._wanted[step])}"
                )
        for step in done | self._kept:
            self._settled.setdefault(step, count[step])

    def _check_done(self, place: Place) -> None:
        """See that all is done.

        :raises WrongError: it is not.
        """
        place.see_that_nothing_is_left()
        there = place.trees()
        for step, tree in self._wanted.items():
            if there[step] != tree:
                raise WrongError(f"in the end {step} left other files: {_differing(there[step], tree)}")
        missing = {step.name for step in self.job.steps} - place.done()
        if missing:
            raise WrongError(f"in the end not recorded as done: {missing}")
        before = place.begun()
        ended = place.finish()
        if ended.code != 0 or place.begun() != before:
            raise WrongError(
                f"once done, it ended with {ended.code} and began {place.begun()} after {before}: {ended.said}"
            )

    def _kill_verb(self, place: Place, verb: str) -> None:
        """Kill ``push`` or ``pull`` until it ends well."""
        longest = 0.8
        while True:
            how = self._chance.choice(_HOWS)
            may_kill = self.kills < self._most and time.monotonic() < self._end
            ended = place.kill_at(self._chance.uniform(0, longest), how, verb) if may_kill else place.finish(verb)
            if ended.code is not None:
                if ended.code != 0:
                    raise WrongError(f"{verb} ended with {ended.code}: {ended.said}")
                return
            self._count(how, f"in a {verb}")
            longest *= 1.2

    def _check_store(self) -> None:
        """See that each entry of the store is whole.

        :raises WrongError: one is not.
        """
        assert self.store is not None
        for path in sorted(self.store.rglob("*.tar.zst")):
            read_header(path)
            with path.open("rb") as file:
                last = list(frames(file))[-1]
            if last.offset + last.size != path.stat().st_size:
                raise WrongError(f"{path.name} is torn")
            self._outcome.tried["entries of stores read to their end"] += 1


def _differing(there: object, wanted: object) -> str:
    assert isinstance(there, dict)
    assert isinstance(wanted, dict)
    names = sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))
    return json.dumps([(name, str(there.get(name))[:80], str(wanted.get(name))[:80]) for name in names[:4]])
