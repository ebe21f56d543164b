"""The action's Python step is killed, and the next attempt goes on on a fresh machine; or its store's server is."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tests.action.archives import Held
from tests.action.installation import hurried_action, tool_cache
from tests.action.machine import Workflow
from tests.actions_service.server import ActionsService
from tests.console import environment
from tests.torture.drawn_jobs import draw, outputs_in
from tests.torture.killing import SHORT, Place, WrongError, chosen_moment
from tests.torture.outcome import Outcome, Scale

if TYPE_CHECKING:
    from tests.action.machine import Machine
    from tests.action.running import Ended, Running
    from tests.torture.drawn_jobs import Drawn, Tree

__all__ = ["torture"]

REPOSITORY = Path(__file__).resolve().parents[2]
_LEFT = 60.0  # seconds; only ever reached by what is left running for ever
_MOST = 12  # kills of one job
_EACH_SERVER = 4  # one job in so many has its store's server killed


def torture(folder: Path, scale: Scale) -> Outcome:
    """See :class:`tests.torture.outcome.Part`; what is counted are kills."""
    outcome = Outcome()
    (folder / "tools").mkdir(parents=True)
    tools, action = tool_cache(folder / "tools"), hurried_action(folder / "action")
    end = time.monotonic() + scale.seconds
    kills = number = 0
    while kills < scale.count and time.monotonic() < end:
        number += 1
        seed = scale.seed * 1_000_000 + 900_000 + number
        place = folder / f"workflow-{number}"
        place.mkdir()
        one = _KilledWorkflow(place, tools, action, seed, outcome)
        try:
            if number % _EACH_SERVER == 0:
                kills += one.with_a_killed_server()
            else:
                kills += one.killed_until_done(min(_MOST, scale.count - kills))
        except (WrongError, AssertionError) as error:
            outcome.faults.append(f"action, seed {seed}: {type(error).__name__}: {error}")
            kills += 1
        shutil.rmtree(place, ignore_errors=True)
    return outcome


class _KilledWorkflow:
    """One workflow run, with a job drawn at random."""

    def __init__(self, folder: Path, tools: Path, action: Path, seed: int, outcome: Outcome) -> None:
        self._folder = folder
        self._tools = tools
        self._action = action
        self._outcome = outcome
        self._chance = random.Random(seed)
        self._mark = f"action-{seed}-{time.time_ns()}"
        self._job: Drawn = draw(self._chance, 2, 5)
        clean = Place(folder / "clean", self._job, folder / "clean-keep", self._mark, None)
        begin = time.monotonic()
        ended = clean.finish()
        self._whole = time.monotonic() - begin + 0.7
        if ended.code != 0:
            raise WrongError(f"undisturbed, it ended with {ended.code}: {ended.said}")
        self._wanted = clean.trees()
        outcome.tried["workflow runs with jobs drawn at random"] += 1

    def _workflow(self, service: ActionsService) -> Workflow:
        workflow = Workflow(self._folder / "workflow", service, self._tools, self._action)
        workflow.sources = {"README": "nothing\n"}
        return workflow

    def killed_until_done(self, most: int) -> int:
        """Kill attempt after attempt; how many kills there were.

        :raises WrongError: not as promised.
        """
        kills, longest = 0, 0.0
        with ExitStack() as closing:
            service = closing.enter_context(ActionsService.running())
            workflow = self._workflow(service)
            closing.callback(workflow.end)
            held = Held(service, self._folder / "held")
            settled: dict[str, int] = {}
            while True:
                machine = workflow.machine()
                running = machine.start(self._job.steps_text(), jobs=str(self._job.at_once))
                if kills >= most:
                    return kills + self._check(running.wait())
                moment = chosen_moment(self._chance, self._whole, longest)
                if self._chance.random() < 0.7:  # a slow start leaves little to time alone
                    _wait_for_steps(running, self._chance.randint(1, len(self._job.steps)))
                    moment = self._chance.uniform(0, 2 * SHORT)
                with suppress(subprocess.TimeoutExpired):
                    running.process.wait(moment)
                if running.process.returncode is not None:
                    self._check(running.wait())
                    self._see(workflow, settled, held)
                    return kills
                log = running.log
                alone = self._chance.random() < 0.5
                if alone:
                    running.process.kill()
                    running.process.wait()
                else:
                    running.die()
                kills += 1
                self._outcome.tried[
                    "kills of the action's Python step" + ("" if alone else " and all it had started")
                ] += 1
                self._outcome.tried[f"… of an action {_phase(log)}"] += 1
                _see_that_nothing_is_left(machine)
                before = dict(settled)
                self._see(workflow, settled, held)
                longest = max(longest, 0.5) * 1.4 if settled == before else 0.0

    def _see(self, workflow: Workflow, settled: dict[str, int], held: Held) -> None:
        """See that nothing that the store had began again, and what it has now.

        :raises WrongError: something did.
        """
        begun = workflow.kept("begun")
        for step, times in settled.items():
            if begun.count(step) != times:
                raise WrongError(f"{step} was in the store and began again on the next machine")
        if held.entries:
            for step, status in held.statuses().items():
                if status == "done":
                    settled.setdefault(step, begun.count(step))

    def _check(self, ended: Ended) -> int:
        """See that an attempt that was left alone did all.

        :raises WrongError: it did not.
        """
        if ended.code != 0 or ended.outputs["result"] != "success":
            raise WrongError(f"it ended with {ended.code}: {ended.log[-1500:]}")
        there: dict[str, Tree] = {step.name: outputs_in(ended.workspace, step) for step in self._job.steps}
        wrong = [step for step, tree in self._wanted.items() if there[step] != tree]
        if wrong:
            raise WrongError(f"in the end {wrong} left other files: {ended.log[-1500:]}")
        _see_that_nothing_is_left(ended.machine)
        return 0

    def with_a_killed_server(self) -> int:
        """Kill the server of the store while an attempt runs: it must end well all the same; how many kills there were.

        :raises WrongError: not as promised.
        """
        kills = 0
        for attempt in range(2):
            server = subprocess.Popen(
                [sys.executable, "-m", "tests.torture.service_process"],
                cwd=REPOSITORY,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            try:
                assert server.stdout is not None
                told: dict[str, Any] = json.loads(server.stdout.readline())
                service = SimpleNamespace(env=lambda told=told: told["runtime"], rest=SimpleNamespace(url=told["rest"]))
                workflow = Workflow(
                    self._folder / f"served-{attempt}", cast("ActionsService", service), self._tools, self._action
                )
                workflow.sources = {"README": "nothing\n"}
                try:
                    running = workflow.machine().start(self._job.steps_text(), jobs=str(self._job.at_once))
                    with suppress(subprocess.TimeoutExpired):
                        running.process.wait(self._chance.uniform(0.2, 1.5) * self._whole)
                    if running.process.returncode is None:
                        server.kill()
                        server.wait()
                        kills += 1
                        self._outcome.tried["kills of the store's server, after which the attempt ended well"] += 1
                    self._check(running.wait())
                finally:
                    workflow.end()
            finally:
                server.kill()
                server.communicate()
        return kills


def _wait_for_steps(running: Running, count: int) -> None:
    """Wait until so many steps have begun in an attempt, or it has ended."""
    while running.process.poll() is None and running.log.count("::group::") < count:
        time.sleep(0.01)


def _phase(log: str) -> str:
    """Where it was when it was killed."""
    if "::group::" not in log:
        return "before a step of this attempt"
    last = log.rindex("::group::")
    return "in a step" if "::endgroup::" not in log[last:] else "between two steps, or with uploads in flight"


def _see_that_nothing_is_left(machine: Machine) -> None:
    end = time.monotonic() + _LEFT
    while left := machine.leftovers():
        if time.monotonic() > end:
            raise WrongError(f"left over: {left}")
        time.sleep(0.02)
