"""A line to the store on which anything goes wrong, in front of every kind of store, and each time the real program.

A story is of one store: a run that fails at step three and one that goes on on a fresh machine, both while the line
is bad, and one more on a fresh machine while it is good; or it is of a push and a pull. ``--seed N --count 1`` has
story N again.
"""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.actions_service import ActionsService
from tests.torture.network_handing import Handing
from tests.torture.network_line import Line
from tests.torture.network_places import ACTIONS, Far, runtime_of, servers
from tests.torture.network_story import GOOD, SOUND, Story, Tools, Way
from tests.torture.network_weather import LYING
from tests.torture.outcome import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from tests.torture.network_machines import Came
    from tests.torture.outcome import Scale

__all__ = ["torture"]

_AT_ONCE = 2
_STEPS = ("one", "two", "three")


class _Runs(Story):
    """Two runs on a bad line, and one on a good one."""

    _service: ActionsService | None = None

    def tell(self) -> None:
        """Tell it."""
        with ExitStack() as stack:
            if self.kind in ACTIONS:
                self._service = stack.enter_context(ActionsService.running())
                self.far = Far(self._service.origin)
            else:
                self.far = self.tools.running.stores[self.kind]
            silent = True
            for fixed in (False, True):
                if fixed:
                    self.site.fix()
                with self.way() as way:
                    came = self._run(way, self.tools.brisk)
                self.count(f"runs on a bad way, {self.kind}")
                if "restored" in came.said:
                    self.count("runs on a bad way that put steps back")
                self.check_run(came, way.kind, fixed=fixed)
                silent = silent and not came.warned and way.kind in SOUND
            ran = [self.site.ran(step) for step in _STEPS]
            with Line.open(self.far.origin) as line:
                came = self._run(Way(GOOD, line.public, {}), self.tools.calm)
            self.count("runs on a good line afterwards, on a fresh machine")
            self.check_run(came, GOOD, fixed=True)
            again = [self.site.ran(step) for step in _STEPS]
            if silent and again != ran and not self.met & LYING:
                self.fault(f"nothing was said, and yet steps ran again: {ran}, {again}", came)

    def _run(self, way: Way, copy: Path) -> Came:
        """Run the job on a fresh machine.

        :param copy: of the package.
        """
        self.attempt += 1
        if self._service is not None:
            runtime, token = runtime_of(self._service, self.kind, way.address, self.attempt)
            self.far = Far(self._service.origin, secret=(token, *token.split(".")[1:]))
            api = self._service.rest.url.replace(self._service.origin, way.address)
            env = {"GITHUB_API_URL": api, **way.env}
            return self.site.use_action(self._service, copy, runtime, env, {"store": ACTIONS[self.kind][1]})
        url = self.far.url.format(f"story-{self.number}-{id(self):x}")
        env = {**self.far.environment(way.address), **way.env}
        return self.site.use_program(copy, ["--store", url, "--run-id", "night"], env)


def torture(folder: Path, scale: Scale) -> Outcome:
    """Tell stories, two at a time: of each four, one is of a push and a pull.

    :param scale: its count is of stories.
    """
    outcome = Outcome()
    end = time.monotonic() + scale.seconds
    with servers(folder / "servers") as running, ThreadPoolExecutor(_AT_ONCE) as pool:
        tools = Tools(folder, running)
        short = scale.count <= 20

        def one(number: int) -> None:
            if time.monotonic() > end:
                return
            story: Story
            if number % 4:
                story = _Runs(tools, number, running.kinds, outcome, short=short)
            else:
                story = Handing(tools, number, list(running.stores), outcome, short=short)
            story.tell()
            if not story.failed:
                shutil.rmtree(story.site.folder, ignore_errors=True)

        for done in [pool.submit(one, scale.seed + number) for number in range(scale.count)]:
            done.result()
    return outcome
