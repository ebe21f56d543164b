"""The action's Python step while the disk under ``RUNNER_TEMP``, or the workspace, refuses one call after another."""

from __future__ import annotations

import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.action.installation import tool_cache
from tests.actions_service import ActionsService
from tests.torture.network_machines import Site
from tests.torture.network_places import runtime_of
from tests.torture.scarcity_desk import AT_ONCE, ERRORS, MANNERS, STEP_FAILED
from tests.torture.trouble import Trouble, calls_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.torture.network_machines import Came
    from tests.torture.outcome import Scale
    from tests.torture.scarcity_desk import Desk

__all__ = ["action"]

_STEPS = ("one", "two", "three")


@dataclass(frozen=True)
class _Case:
    """Which attempt is in trouble, and where.

    :param second: a first attempt was without trouble; it failed at step three.
    """

    what: str
    second: bool

    def __str__(self) -> str:
        return f"the action, {'second' if self.second else 'first'} attempt, {self.what}"


_CASES = tuple(_Case(what, second) for what in ("RUNNER_TEMP", "the workspace") for second in (False, True))


class _Job:
    """A job on the cache, each attempt on a fresh machine."""

    def __init__(self, desk: Desk, folder: Path, tools: Path, service: ActionsService) -> None:
        self.desk = desk
        self.site = Site(folder, 40_000, tools)
        self.service = service
        self._attempt = 0

    def attempt(self, env: Mapping[str, str] | None = None) -> Came:
        """The next attempt."""
        self._attempt += 1
        runtime, _token = runtime_of(self.service, "Actions cache v2", self.service.origin, self._attempt)
        return self.site.use_action(self.service, self.desk.brisk, runtime, env or {}, {"store": "cache"})

    def ran(self) -> list[int]:
        """How often each step has run."""
        return [self.site.ran(step) for step in _STEPS]

    def place(self, what: str) -> Path:
        """Where the disk is in trouble."""
        work = self.site.folder / "workflow" / "machine" / "work"
        return work / "_temp" if what == "RUNNER_TEMP" else work / "demo"


@dataclass(frozen=True)
class _Told:
    """An attempt in trouble, and the next one without.

    :param more: how often each step ran in the one in trouble.
    :param later: and in the next one.
    :param calls: those that counted.
    """

    came: Came
    again: Came
    more: Sequence[int]
    later: Sequence[int]
    calls: Sequence[tuple[bool, str, str]]


def action(desk: Desk, scale: Scale) -> None:
    """Fail the first call, the second one, and so on, of a first and of a second attempt.

    :param scale: where there are more calls than its count, chance chooses.
    """
    end = time.monotonic() + scale.seconds
    chance = random.Random(scale.seed)
    tools = tool_cache(desk.folder / "tools")
    points = []
    files: dict[_Case, Mapping[str, tuple[int, str]]] = {}
    for case in _CASES if desk.long else chance.sample(_CASES, 1):
        clean = _tried(desk, tools, case, Trouble(calls=[kind for calls in MANNERS for kind in calls]))
        assert clean.came.code == clean.again.code == 0, clean.came.said
        files[case] = clean.came.files
        for calls, manners in MANNERS.items():
            last = sum(kind in calls for _met, kind, _path in clean.calls)
            points += [(case, calls, first, manner) for first in range(1, last + 1) for manner in manners]
    desk.outcome.tried["points of the action at which a call can fail"] = len(points)
    chance.shuffle(points)

    def one(point: tuple[_Case, tuple[str, ...], int, str]) -> None:
        if time.monotonic() < end:
            fail_one(desk, tools, *point, seed=scale.seed, files=files[point[0]])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(one, point) for point in points[: scale.count if desk.long else 3]]:
            done.result()


def fail_one(
    desk: Desk,
    tools: Path,
    case: _Case,
    calls: tuple[str, ...],
    first: int,
    manner: str,
    *,
    seed: int,
    files: Mapping[str, tuple[int, str]],
) -> None:
    """Run an attempt with one call that fails, and the next one without.

    :param files: what the job leaves without trouble.
    """
    chance = random.Random(f"{seed}/{case}/{calls[0]}/{first}/{manner}")
    last = 0 if manner == "from then on" else first
    trouble = Trouble((), calls, first, last, chance.choice(ERRORS[calls]), manner == "half written")
    told = _tried(desk, tools, case, trouble)
    desk.count(f"{case}: calls that failed")
    desk.count(f"such an attempt ended with {told.came.code}")
    if found := list(_wrong(told, files)):
        struck = next((f"{kind} {path}" for met, kind, path in told.calls if met), "no call")
        what = f"{case}: {trouble} ({struck}), seed {seed}: {'; '.join(found)}"
        desk.fault(f"{what}; said: {told.came.said[-1500:]!r}; then: {told.again.said[-800:]!r}")


def _wrong(told: _Told, files: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    """What is not as promised."""
    came, again = told.came, told.again
    # Where nothing can be written below RUNNER_TEMP, the runner itself can start no step either.
    honest = STEP_FAILED.search(came.said) is not None or "RUNNER_TEMP must be writable" in came.said
    if came.code not in (0, 5) and not honest:
        yield f"ended with {came.code}"
    if any(word in one.said for one in (came, again) for word in ("Traceback", "CPR901")):
        yield "a traceback"
    if came.code == 0 and came.files != files:
        yield f"other files: {_difference(came.files, files)}"
    if max(told.more) > 1 or max(told.later) > 1:
        yield "a step ran twice"
    if again.code != 0:
        yield f"afterwards ended with {again.code}"
    elif again.files != files:
        yield f"afterwards other files: {_difference(again.files, files)}"
    if came.code == 0 and not came.warned and any(told.later):
        yield f"afterwards ran again what was done, and nobody was warned: {told.later}"


def _difference(found: Mapping[str, tuple[int, str]], expected: Mapping[str, tuple[int, str]]) -> list[str]:
    return sorted({name for name, _ in found.items() ^ expected.items()})


def _tried(desk: Desk, tools: Path, case: _Case, trouble: Trouble) -> _Told:
    """One attempt in trouble and one without."""
    folder = desk.new_folder()
    log = folder.with_suffix(".calls")
    with ActionsService.running() as service:
        job = _Job(desk, folder, tools, service)
        if case.second:
            assert job.attempt().code == 1
        job.site.fix()
        env = trouble.environment(desk.library, log) | {"TROUBLE_IN": str(job.place(case.what))}
        before = job.ran()
        came = job.attempt(env)
        calls, between = calls_in(log), job.ran()
        again = job.attempt()
        after = job.ran()
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        log.unlink()
    more, later = ([b - a for a, b in zip(x, y, strict=True)] for x, y in ((before, between), (between, after)))
    return _Told(came, again, more, later, calls)
