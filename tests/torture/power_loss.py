"""The power fails at each moment of a run: what a disk may hold then is put together, looked at and gone on from.

A real run of the real program is recorded, call by call; after each call, :mod:`tests.torture.disk_model` says what may
be found on a disk that lost its power there. In each such state the program must be able to say how things stand; every
step that somebody was told is done must be so; none that had not ended may count as done; and the same command again
must end well, with all files as they should be and without running a step again whose record and files are there.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checkpoint_action import cli
from checkpoint_action.errors import CheckpointError
from checkpoint_action.model import Status
from checkpoint_action.runner.journal import StatePaths, load
from tests.torture.disk_model import Disk, Node, contents, found_in, lay_out, random_content
from tests.torture.outcome import Outcome, Scale
from tests.torture.stories import PROGRAM, STORIES, Known, Phase, Site
from tests.torture.syscalls import why_not

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.torture.disk_model import Found
    from tests.torture.syscalls import Call

__all__ = ["torture", "why_not"]

_MOMENTS = "moments at which the power failed"
_PUT_TOGETHER = "states of the disk put together"
_LOOKED_AT = "different states in which the job was loaded and planned"
_RESUMED = "of these, resumed to the end by the program"
_ELSEWHERE = "of these, gone on with on a machine that has the store alone"

_PASSING = (".run/", ".logs/", ".progress/")
"""In paths of what a run has for itself or for people: there or not, all at once, but for states at random."""
_OURS = (".checkpoint-run-", ".cpr-", "out.b", "cpr1-")
"""Files whose content is lost in every way by itself; of others all of it or nothing, but for states at random."""

_AT_RANDOM = 12  # of the states at a moment
_RESUME_EACH = 25  # so many states looked at to one that is resumed


def torture(folder: Path, scale: Scale) -> Outcome:
    """See :class:`tests.torture.outcome.Part`; what is counted are the different states.

    :raises RuntimeError: nothing can be recorded here.
    """
    if why_not():
        raise RuntimeError(why_not())
    outcome = Outcome()
    each = Scale(max(1, scale.count // len(STORIES)), scale.seconds, scale.seed)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for one in pool.map(_one_story, *zip(*((folder, number, each) for number in range(len(STORIES))), strict=True)):
            outcome.tried.update(one.tried)
            outcome.faults += one.faults
    return outcome


def _one_story(folder: Path, number: int, scale: Scale) -> Outcome:
    return _Torture(Site(folder / STORIES[number].name, STORIES[number]), scale).carry_out()


@dataclass(frozen=True, slots=True)
class _Moment:
    """Just after a call.

    :ivar known: of each machine.
    """

    number: int
    phase: Phase
    call: Call | None
    known: Mapping[str, Known]


class _Torture:
    """One story."""

    def __init__(self, site: Site, scale: Scale) -> None:
        self._site = site
        self._scale = scale
        self._chance = random.Random(scale.seed)
        self._end = time.monotonic() + scale.seconds
        self._outcome = Outcome(Counter())
        self._seen: set[bytes] = set()

    def carry_out(self) -> Outcome:
        """Record it, then let the power fail."""
        beginning = found_in(self._site.disk)
        phases = self._recorded()
        self._lay_out(beginning)
        disk, moments = Disk(self._site.disk), list(self._moments(phases))
        places = min(len(moments), max(1, self._scale.count // 4))
        at_each = -(-self._scale.count // places)
        chosen = set(self._chance.sample(range(len(moments)), places))
        tried = self._outcome.tried
        for moment in moments:
            if moment.call is not None:
                disk.apply(moment.call)
                if moment.call.name == "lseek":  # nothing is another than before
                    continue
            if moment.number not in chosen or time.monotonic() > self._end:
                continue
            tried[_MOMENTS] += 1
            states = list(self._states(disk))
            tried[_PUT_TOGETHER] += len(states)
            self._chance.shuffle(states)
            new = 0
            for state in states:
                new += self._look_at(state, moment)
                if new == at_each:
                    break
        return self._outcome

    def _recorded(self) -> list[tuple[Phase, list[Call]]]:
        """All phases, after a comparison of what the model makes of their calls with what there is."""
        disk, phases = Disk(self._site.disk), []
        for phase, calls in self._site.play():
            for call in calls:
                disk.apply(call)
            modelled = disk.found(lambda _naming: True, {}, lost=False)
            there = found_in(self._site.disk)
            wrong = [name for name in {*modelled, *there} if modelled.get(name) != there.get(name)]
            assert not wrong, f"{self._site.story.name}: the model is wrong about {sorted(wrong)}"
            phases.append((phase, calls))
        return phases

    def _moments(self, phases: list[tuple[Phase, list[Call]]]) -> Iterator[_Moment]:
        known = {"first": Known(), "second": Known()}
        number = 0

        def now(phase: Phase, call: Call | None) -> _Moment:
            nonlocal number
            number += 1
            return _Moment(number - 1, phase, call, {name: one.copy() for name, one in known.items()})

        for phase, calls in phases:
            mine = known[phase.machine]
            for other in known.values():
                mine.stored |= other.stored
                for step, those in other.possible.items():
                    mine.possible.setdefault(step, set()).update(those)
            self._site.begins(phase, mine)
            for call in calls:
                about_steps = self._site.happened(call, phase, mine)
                if about_steps or self._site.disk_holds(call):
                    yield now(phase, call)
            self._site.returned(phase, mine)
            yield now(phase, None)

    def _states(self, disk: Disk) -> Iterator[Found]:
        """What may be found on the disk: each kind of loss by itself, then some at random, several together."""
        pending, namings = disk.pending_nodes(), disk.namings
        ours = [naming for naming in namings if not any(part in naming.path for part in _PASSING)]
        number = {naming: place for place, naming in enumerate(ours)}
        for lost in (False, True):

            def state(keeps: Callable[[int], bool], content: Mapping[Node, bytes], lost: bool = lost) -> Found:
                return disk.found(
                    lambda naming: keeps(number[naming]) if naming in number else not lost, content, lost=lost
                )

            yield state(lambda _one: True, {})
            for count in range(len(ours)):
                yield state(lambda one, count=count: one < count, {})  # type: ignore[misc]
                if len(ours) > 1:
                    yield state(lambda one, count=count: one == count, {})  # type: ignore[misc]
                    yield state(lambda one, count=count: one != count, {})  # type: ignore[misc]
            for node, name in pending.items():
                for content in contents(node) if name.startswith(_OURS) else ():
                    yield state(lambda _one: True, {node: content})
        for _ in range(_AT_RANDOM if pending or namings else 0):
            held: dict[Node, bytes] = {node: random_content(node, self._chance) for node in pending}
            share = self._chance.random()
            kept = {naming for naming in namings if self._chance.random() < share}
            yield disk.found(lambda naming, kept=kept: naming in kept, held, lost=False)  # type: ignore[misc]

    def _look_at(self, state: Found, moment: _Moment) -> bool:
        """See what the program makes of a state; whether it is one that was not looked at before."""
        mine = moment.known[moment.phase.machine]
        told = (
            mine.done,
            sorted((step, *sorted(those)) for step, those in mine.possible.items()),
            sorted(mine.stored),
            mine.saved,
        )
        key = hashlib.sha256(repr((sorted(state.items()), told, moment.phase)).encode()).digest()
        if key in self._seen:
            return False
        self._seen.add(key)
        self._outcome.tried[_LOOKED_AT] += 1
        resumed = self._outcome.tried[_LOOKED_AT] % _RESUME_EACH == 1
        try:
            self._lay_out(state)
            settled = self._check(moment, mine)
            if self._site.story.store:
                self._check_elsewhere(moment, mine, run=resumed)
                if resumed:
                    self._lay_out(state)
            if resumed:
                self._outcome.tried[_RESUMED] += 1
                self._resume(moment.phase, settled)
        except (_WrongError, CheckpointError) as error:
            one = moment.call
            call = one and f"{one.name} {one.path} {one.other} {one.data[:60]!r}"
            held = {name: (kind, len(content)) for name, (kind, _mode, content) in state.items()}
            self._outcome.faults.append(
                f"{self._site.story.name}, seed {self._scale.seed}, moment {moment.number} "
                f"({' '.join(moment.phase.words)}; after {call}): {error}; on the disk: {held}"
            )
        return True

    def _lay_out(self, state: Found) -> None:
        os.chdir(self._site.keep)
        for place in self._site.disk.iterdir():
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        lay_out(state, self._site.disk)

    def _check(self, moment: _Moment, known: Known) -> set[str]:
        """Look at what lies on the disk.

        :returns: steps that need not run.
        :raises _WrongError: it is not as it must be.
        """
        phase = moment.phase
        machine = self._site.disk / phase.machine
        state_dir = machine / "state/deep" if "--state-dir" in self._site.story.options else machine
        records = load(StatePaths(state_dir, "story")).records
        for step, record in records.items():
            if record.status is Status.DONE and record.command not in known.possible.get(step, ()):
                raise _WrongError(f"{step} counts as done and is not")
        for step, command in known.done.items():
            if step not in records or records[step].status is not Status.DONE or records[step].command != command:
                raise _WrongError(
                    f"{step} was done and is {records[step].status.value if step in records else 'forgotten'}"
                )
        for name, content in known.saved.items():
            file = machine / name
            if not file.is_file() or file.read_bytes() != content:
                raise _WrongError(f"{name} was saved and is not there as it was")
        actions = self._plan(phase, machine, store=False)
        settled = set()
        for work in phase.works:
            file = machine / work.file
            right = file.is_file() and file.read_bytes() == work.content(phase.works)
            if actions[work.name] == "skip" and not right:
                raise _WrongError(f"{work.name} would be skipped and {work.file} is not as it left it")
            current = known.done.get(work.name) == work.command
            if right and current and (not work.before or work.before in settled):
                settled.add(work.name)
                if actions[work.name] != "skip":
                    raise _WrongError(f"{work.name} is done, with its file there, and would be: {actions[work.name]}")
        return settled

    def _check_elsewhere(self, moment: _Moment, known: Known, *, run: bool) -> None:
        """What a machine finds that has nothing but the store.

        :raises _WrongError: it is not all that was told to be in it.
        """
        phase, fresh = moment.phase, self._site.again / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        actions = self._plan(phase, fresh, store=True)
        for step in known.stored:
            if actions[step] != "restore":
                raise _WrongError(f"{step} was in the store, and elsewhere would be: {actions[step]}")
        if run:
            self._outcome.tried[_ELSEWHERE] += 1
            self._run(phase, fresh, set(known.stored))

    def _resume(self, phase: Phase, settled: set[str]) -> None:
        machine = self._site.disk / phase.machine
        self._run(phase, machine, settled)
        left = {step: action for step, action in self._plan(phase, machine, store=False).items() if action != "skip"}
        if left:
            raise _WrongError(f"after it was resumed there is still to do: {left}")

    def _run(self, phase: Phase, machine: Path, settled: set[str]) -> None:
        """The job again, to its end.

        :raises _WrongError: it does not end well, or runs what is settled.
        """
        begun = self._site.again / "begun"
        begun.unlink(missing_ok=True)
        (self._site.again / "allowed").touch()
        done = subprocess.run(
            [*PROGRAM, *self._site.words(phase, ("--json",))],
            cwd=machine,
            env=self._site.env(self._site.again),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            raise _WrongError(f"resumed, it ended with {done.returncode}: {done.stdout[-300:]} {done.stderr}")
        for work in phase.works:
            if (machine / work.file).read_bytes() != work.content(phase.works):
                raise _WrongError(f"resumed, it left another {work.file}")
        ran = begun.read_text().split() if begun.exists() else []
        if again := settled.intersection(ran):
            raise _WrongError(f"resumed, it ran again what was done: {again}")

    def _plan(self, phase: Phase, machine: Path, *, store: bool) -> dict[str, str]:
        """What a run would do with each step.

        :raises _WrongError: there is no answer.
        """
        os.chdir(machine)
        words = self._site.words(phase, ("plan", "--json"), store=store)
        said, complaints = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaints):
            code = cli.main(words)
        if code != 0:
            raise _WrongError(f"plan ended with {code}: {complaints.getvalue()}")
        steps: list[dict[str, Any]] = json.loads(said.getvalue())["steps"]
        return {step["id"]: step["action"] for step in steps}


class _WrongError(Exception):
    """Something is not as promised."""
