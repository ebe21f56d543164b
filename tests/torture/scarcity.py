"""Too little of everything: each call to the disk fails in its turn, descriptors, memory and space run out.

``systematic`` counts the calls of a run that change our files, then fails the first, the second, and so on: once, or
from then on, or after half a write. Each is the real program; then the trouble is gone and the same command runs again.
"""

from __future__ import annotations

import errno
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.torture.outcome import Outcome
from tests.torture.scarcity_action import action
from tests.torture.scarcity_desk import AT_ONCE, ERRORS, MANNERS, STEP_FAILED, Desk
from tests.torture.scarcity_limits import LIMITS
from tests.torture.scarcity_scenes import SCENES, STEPS
from tests.torture.trouble import CHANGES, Trouble, calls_in, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.torture.outcome import Scale
    from tests.torture.scarcity_scenes import Room, Run, Scene

__all__ = ["torture"]

_UNREADABLE = frozenset({2, 5})  # a state that cannot be read is no state to go on from


def _systematic(desk: Desk, scale: Scale) -> None:
    """Fail the calls of each scene one after another."""
    end = time.monotonic() + scale.seconds
    chance = random.Random(scale.seed)
    points = []
    for scene in SCENES if desk.long else chance.sample(SCENES, 3):
        counted = desk.clean(scene)
        for calls, manners in MANNERS.items():
            last = sum(counted[kind] for kind in calls)
            points += [(scene, calls, first, manner) for first in range(1, last + 1) for manner in manners]
    desk.outcome.tried["points at which a call can fail"] = len(points)
    chance.shuffle(points)

    def one(point: tuple[Scene, tuple[str, ...], int, str]) -> None:
        if time.monotonic() < end:
            _fail_one(desk, *point, seed=scale.seed)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(one, point) for point in points[: scale.count]]:
            done.result()


def _fail_one(desk: Desk, scene: Scene, calls: tuple[str, ...], first: int, manner: str, *, seed: int) -> None:
    """Run a scene with one call that fails, and then again without."""
    chance = random.Random(f"{seed}/{scene.name}/{calls[0]}/{first}/{manner}")
    room = desk.room(fixed=False)
    scene.prepare(room)
    trouble = Trouble(
        scene.places(room),
        calls,
        first,
        0 if manner == "from then on" else first,
        chance.choice(ERRORS[calls]),
        manner == "half written",
    )
    before = room.ran()
    log = room.folder.with_suffix(".calls")
    run = room.run(scene.words(room), trouble.environment(desk.library, log))
    struck = next((f"{kind} {path}" for met, kind, path in calls_in(log) if met), "no call")
    found = list(_wrong(desk, scene, room, run, calls, before))
    desk.count(f"{scene.name}: calls that failed")
    desk.count(f"a call fails {manner}")
    desk.count(f"a call fails with {errno.errorcode[trouble.error]}")
    desk.count(f"such a run ended with {run.code}")
    if run.code is not None:
        refused = manner == "from then on" or struck.startswith("remove")
        found += _wrong_afterwards(desk, scene, room, may_leave=refused)
    if found:
        desk.fault(f"{scene.name}: {trouble} ({struck}), seed {seed}: {'; '.join(found)}; said: {run.said[-1500:]!r}")
    else:
        shutil.rmtree(room.folder)


def _wrong(
    desk: Desk, scene: Scene, room: Room, run: Run, calls: Sequence[str], before: Mapping[str, int]
) -> Iterator[str]:
    """What is not as promised after a run in trouble."""
    if run.code is None:
        yield f"no end within {run.seconds:.0f} s"
        return
    # Such a step has failed as any other.
    honest = run.code == 1 and STEP_FAILED.search(run.said) is not None
    if not honest and run.code not in scene.codes | (_UNREADABLE if calls is not CHANGES else frozenset()):
        yield f"ended with {run.code}"
    if run.trace:
        yield "a traceback"
    if run.code in (2, 5) and run.said.count("checkpoint-run: error") != 1:
        yield "not one line that tells of an error"
    done = room.done()
    told = {step for step in STEPS if f"{step}: done in" in run.said}
    if told - done:
        yield f"said to be done and not recorded: {sorted(told - done)}"
    warnings = "".join(line for line in run.said.splitlines() if "warning: " in line)
    if untold := [step for step in told - room.done(known=True) if f"'{step}'" not in warnings]:
        yield f"said to be done and known to run again, without a warning: {untold}"
    if run.code in (0, 1) and not honest:
        if room.files() != desk.expected:
            yield f"other files: {sorted(name for name, _ in room.files().items() ^ desk.expected.items())}"
        if done != (set(STEPS[:2]) if scene.fails else set(STEPS)):
            yield f"done are {sorted(done)}"
    more = {step: room.ran()[step] - before[step] for step in STEPS}
    if max(more.values()) > 1:
        yield f"steps ran more than once: {more}"


def _wrong_afterwards(desk: Desk, scene: Scene, room: Room, *, may_leave: bool) -> Iterator[str]:
    """What is not as promised once the trouble is gone.

    :param may_leave: whether files that could not be removed may be left.
    """
    room.fix()
    done, before = room.done(known=True), room.ran()
    run = room.run(scene.words(room))
    if run.code != 0 or run.trace:
        yield f"afterwards ended with {run.code}: {run.said[-800:]}"
    if room.files() != desk.expected:
        yield "afterwards other files"
    if again := sorted(step for step in done if room.ran()[step] != before[step]):
        yield f"afterwards ran again what was recorded as done: {again}"
    if room.done() != set(STEPS):
        yield f"afterwards done are {sorted(room.done())}"
    left = [] if may_leave else sorted(path.name for path in room.folder.rglob("*.tmp"))
    if left:
        yield f"afterwards there is left {left}"


def torture(folder: Path, scale: Scale) -> Outcome:
    """Fail calls one after another, then take away descriptors, memory, space and time.

    :param scale: its count is of failing calls; where there are more, chance chooses.
    """
    outcome = Outcome()
    if why := why_not():
        outcome.tried[f"all left out: {why}"] = 0
        return outcome
    desk = Desk(folder, outcome, long=scale.count > 100)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(take, desk) for take in LIMITS.values()]:
            done.result()
    action(desk, scale)
    _systematic(desk, scale)
    return outcome
