"""A store behind a bad line, and what is looked at after each run."""

from __future__ import annotations

import random
import re
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.action.installation import tool_cache
from tests.torture.network_ends import closed_port, self_signed, silent_port
from tests.torture.network_line import Line
from tests.torture.network_machines import EXPECTED_CODE, Site, copies
from tests.torture.network_places import Far
from tests.torture.network_weather import FAULTS, Weather

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.torture.network_machines import Came
    from tests.torture.network_places import Servers
    from tests.torture.outcome import Outcome

__all__ = ["GOOD", "SOUND", "Story", "Tools", "Way"]

GOOD = "a good line"
"""How the last runs of a story reach the store."""


_SIZES = (40_000,) * 8 + (3_000_000, 3_000_000, 18_000_000)
_WAYS: Mapping[str, str] = {
    "line": "straight through the bad line",
    "proxy": "a bad proxy (`HTTP_PROXY`)",
    "no-proxy": "a dead proxy that `NO_PROXY` spares the store",
    "dead-proxy": "a dead proxy",
    "refused": "nobody listens",
    "name": "a name that does not exist",
    "silent": "accepts and never says a word",
    "self-signed": "TLS with a certificate that nobody trusts",
    "no-tls": "TLS where none is spoken",
}
SOUND = frozenset({"line", "proxy", "no-proxy"})
"""The ways at whose end a service is."""

_SPEED = dict.fromkeys(_WAYS, "on a bad way")
_NAME = "http://store.example"


@dataclass(frozen=True)
class Way:
    """How a run reaches the store.

    :param kind: key of ``_WAYS``.
    :param address: what the run is told.
    :param env: variables of proxies.
    """

    kind: str
    address: str
    env: Mapping[str, str]


class Tools:
    """What all stories share."""

    def __init__(self, folder: Path, running: Servers) -> None:
        self.folder = folder
        self.running = running
        self.calm, self.brisk = copies(folder)
        self.tools = tool_cache(folder / "tools")
        self.certificate = self_signed(folder)
        self.expected: dict[tuple[int, bool], Mapping[str, tuple[int, str]]] = {}
        self.lock = threading.Lock()

    def files(self, size: int, fixed: bool) -> Mapping[str, tuple[int, str]]:
        """What the job leaves without a store."""
        with self.lock:
            if (size, fixed) not in self.expected:
                site = Site(self.folder / f"expected-{size}-{fixed}", size, self.tools)
                if fixed:
                    site.fix()
                came = site.use_program(self.calm, ["--store", "none"], {})
                assert came.code == EXPECTED_CODE[fixed], came.said
                self.expected[size, fixed] = came.files
            return self.expected[size, fixed]


class Story:
    """One store, from its first run to its last.

    :param number: what chance starts from.
    :param kinds: names of the stores that it may be.
    :param short: nothing that takes long is drawn.
    :ivar met: keys of all faults that requests have met so far.
    :ivar attempt: number of the run.
    :ivar failed: whether something was not as promised.
    """

    def __init__(self, tools: Tools, number: int, kinds: Sequence[str], outcome: Outcome, *, short: bool) -> None:
        self.tools = tools
        self.number = number
        self.outcome = outcome
        self.chance = random.Random(number)
        self.kind = self.chance.choice(kinds)
        self.size = self.chance.choice(_SIZES[:8] if short else _SIZES)
        self.site = Site(tools.folder / f"story-{number}", self.size, tools.tools)
        self.short = short
        self.attempt = 0
        self.met: set[str] = set()
        self.failed = False
        self.far = Far("")

    @contextmanager
    def way(self) -> Iterator[Way]:
        """The way of one run, with its weather."""
        kinds = self.chance.sample(list(FAULTS), self.chance.randint(1, 4))
        rate = self.chance.choice([0.1, 0.3, 0.6, 1.0])
        calm = self.chance.choice([2, 5, 20, 10_000])
        way = self.chance.choices(list(_WAYS), [40, 6, 2, 2, 2, 2, 2, 2, 2])[0]
        if self.short and way == "silent":
            way = "line"
        if way == "self-signed" and self.tools.certificate is None:
            way = "no-tls"
        with ExitStack() as stack:
            secure = self.tools.certificate if way == "self-signed" else None
            line = stack.enter_context(Line.open(self.far.origin, secure))
            if way in SOUND:
                line.weather = Weather(f"{self.number}/{self.attempt}", kinds, rate, calm)
            dead = {"http_proxy": f"http://127.0.0.1:{closed_port()}"}
            proxied = {"http_proxy": f"http://{line.address}"}
            chosen = {
                "line": Way(way, line.public, {}),
                "proxy": Way(way, _NAME, proxied),
                "no-proxy": Way(way, line.public, {**dead, "no_proxy": "example.org,127.0.0.1"}),
                "dead-proxy": Way(way, _NAME, dead),
                "refused": Way(way, f"http://127.0.0.1:{closed_port()}", {}),
                "name": Way(way, "http://no-such-name.invalid", {}),
                "self-signed": Way(way, f"https://{line.address}", {}),
                "no-tls": Way(way, f"https://{line.address}", {}),
            }
            if way == "silent":
                silent = stack.enter_context(silent_port())
                chosen[way] = Way(way, f"http://{silent.address}", {})
            if way == "proxy":
                line.public = _NAME
            yield chosen[way]
            with self.tools.lock:
                tried = self.outcome.tried
                tried[f"way: {_WAYS[way]}"] += 1
                for fault, times in line.weather.met.items():
                    tried[f"request: {FAULTS[fault]}"] += times
            self.met |= set(line.weather.met)
            if way == "proxy" and line.requests != line.proxied:
                self.fault("the proxy was passed by", None)
            if way == "proxy" and not line.requests:
                self.fault("the proxy was not asked", None)

    def count(self, what: str) -> None:
        """Count a try."""
        with self.tools.lock:
            self.outcome.tried[what] += 1

    def check_run(self, came: Came, way: str, *, fixed: bool) -> None:
        """Look at what a run of the job came to.

        :param fixed: whether its last step succeeds.
        """
        self.check(came, way, {EXPECTED_CODE[fixed]})
        self.check_files(came, way, fixed=fixed)

    def check(self, came: Came, way: str, codes: Collection[int]) -> None:
        """Look at what a use of the program came to.

        :param codes: what it may end with.
        """
        if came.code is None:
            self.fault(f"{way}: no end within {came.seconds:.0f} s", came)
        elif came.code not in codes:
            self.fault(f"{way}: ended with {came.code}", came)
        if "Traceback" in came.said or "panicked" in came.said or "bug in checkpoint-run" in came.said:
            self.fault(f"{way}: a traceback", came)
        if any(secret in came.said for secret in self.far.secret) or re.search(r"sig=[\w%/+]{20}", came.said):
            self.fault(f"{way}: a secret in what is said", came)
        with self.tools.lock:
            longest = f"longest use of the program in seconds, {_SPEED.get(way, way)}"
            self.outcome.tried[longest] = max(self.outcome.tried[longest], round(came.seconds))

    def check_files(self, came: Came, way: str, *, fixed: bool) -> None:
        """See that the workspace holds what it holds without a store."""
        expected = self.tools.files(self.size, fixed)
        if came.files != expected:
            differ = sorted({name for name, _ in came.files.items() ^ expected.items()})
            self.fault(f"{way}: other files than without a store: {differ}", came)

    def fault(self, what: str, came: Came | None) -> None:
        """Tell of something that is not as promised."""
        self.failed = True
        said = "" if came is None else f"; said: {came.said[-3000:]!r}"
        met = ", ".join(sorted(self.met))
        with self.tools.lock:
            self.outcome.faults.append(
                f"{what} ({self.kind}, run {self.attempt}, met {met or 'nothing'};"
                f" again with --seed {self.number} --count 1){said}"
            )
