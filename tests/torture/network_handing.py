"""``push`` and ``pull`` over a bad line, and a push that is killed."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.torture.network_line import Line
from tests.torture.network_story import GOOD, Story, Way
from tests.torture.network_weather import LYING, Weather

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Handing"]

_STEPS = ("one", "two", "three")
_JOB = """\
- id: one
  run: echo ran >> "$KEEP/one"; mkdir -p d; cp "$KEEP/bytes" d/bytes; seq 500 > d/numbers; ln -sf numbers d/link
  inputs: []
  outputs: [d/]
- id: two
  run: echo ran >> "$KEEP/two"; cksum d/bytes d/numbers > two.txt; chmod 755 two.txt
  inputs: []
  outputs: [two.txt]
- id: three
  run: echo ran >> "$KEEP/three"; cat two.txt > three.txt; tail -n 1 d/link >> three.txt
  inputs: []
  outputs: [three.txt]
"""
"""What steps leave has to be known for a push, and no step changes what another one left."""

_PUSHED = frozenset({0, 1})
_PULLED = frozenset({0, 1, 2})  # 2: there is no checkpoint that can be read
_PATIENCE = 60.0


class Handing(Story):
    """A job that is done on one machine, put into a store, taken from there by another one.

    The push is over a bad line; or it is killed with SIGKILL when it has made so many requests, some of them slow.
    Whatever came of it, the same push on a good line succeeds, and so does a pull, also after one over a bad line.
    """

    def tell(self) -> None:
        """Tell it."""
        self.far = self.tools.running.stores[self.kind]
        here, there = self.site.next_machine(_JOB), self.site.next_machine(_JOB)
        wanted = self.site.use_program(self.tools.calm, [], {}, here)
        self.check(wanted, GOOD, frozenset({0}))
        if self.chance.random() < 0.4:
            self._kill_a_push(here)
        else:
            with self.way() as way:
                self._use("push", way, self.tools.brisk, here, _PUSHED)
        with self._good() as way:
            self._use("push", way, self.tools.calm, here, frozenset({0}))
        with self.way() as way:
            self._use("pull", way, self.tools.brisk, there, _PULLED)
        with self._good() as way:
            self._use("pull", way, self.tools.calm, there, frozenset({0}))
        came = self.site.use_program(self.tools.calm, [], {}, there)
        self.check(came, GOOD, frozenset({0}))
        if came.files != wanted.files:
            self.fault("other files than where it was pushed", came)
        ran = [self.site.ran(step) for step in _STEPS]
        if ran != [1, 1, 1] and not self.met & LYING:
            self.fault(f"what was pushed and pulled ran again: {ran}", came)

    def _use(self, verb: str, way: Way, copy: Path, place: Path, codes: frozenset[int]) -> None:
        self.attempt += 1
        words, env = self._command(verb, way)
        came = self.site.use_program(copy, words, env, place)
        self.count(f"{verb} on {way.kind if way.kind == GOOD else 'a bad way'}, {self.kind}")
        self.check(came, way.kind, codes)

    def _kill_a_push(self, here: Path) -> None:
        """SIGKILL at the Nth request, which is slow like all after it."""
        self.attempt += 1
        with Line.open(self.far.origin) as line:
            line.weather = Weather(f"{self.number}", ["late"], 1.0, 10_000)
            words, env = self._command("push", Way("line", line.public, {}))
            number = self.chance.randint(1, 5)
            end = time.monotonic() + _PATIENCE

            def reached() -> bool:
                return line.requests >= number or time.monotonic() > end

            killed = self.site.kill_program(self.tools.calm, words, env, here, reached)
        self.count("push, killed with SIGKILL" if killed else "push, through before it was to be killed")

    def _command(self, verb: str, way: Way) -> tuple[list[str], dict[str, str]]:
        url = self.far.url.format(f"story-{self.number}-{id(self):x}")
        env = {**self.far.environment(way.address), **way.env}
        return [verb, "--store", url, "--run-id", "night"], env

    @contextmanager
    def _good(self) -> Iterator[Way]:
        with Line.open(self.far.origin) as line:
            yield Way(GOOD, line.public, {})
