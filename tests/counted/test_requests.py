"""How many requests a job in CI sends: to save 50 steps, to restore them on another machine, and where all is there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tests.actions_service.messages import Route
from tests.counted.tracing import rose

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from tests.action.machine import Workflow
    from tests.action.running import Ended
    from tests.actions_service.messages import Reply, Request
    from tests.actions_service.server import ActionsService

pytestmark = pytest.mark.slow

STEPS = 50
JOB = "".join(
    f"- {{id: s{number:02d}, run: 'echo {number} > out{number}{'; touch $KEEP/last' if number == STEPS else ''}'}}\n"
    for number in range(1, STEPS + 1)
)
LOOK = {"GetCacheEntryDownloadURL": 1, "CacheUsage": 1}
"""What a run begins and ends with: the newest state, and how full the cache is."""


class Gate:
    """Keeps the first upload waiting until the last step has run, so that all others gather meanwhile."""

    def __init__(self, service: ActionsService, sign: Path) -> None:
        self._service = service
        self._sign = sign

    def route(self, request: Request) -> Route | None:
        for part in self._service.parts[1:]:
            if route := part.route(request):
                return Route(route.operation, lambda: self._wait(route))
        return None

    def _wait(self, route: Route) -> Reply:
        limit = threading.Event()
        while route.operation.startswith("CreateCacheEntry") and not self._sign.exists() and not limit.wait(0.05):
            pass
        return route.answer()


def asked(workflow: Workflow, *, renewed: bool = False) -> tuple[Ended, Counter[str]]:
    """A use of the action on a fresh machine, or on the last one with RUNNER_TEMP emptied, and what it asked for."""
    before = workflow.service.calls.copy()
    if renewed:
        machine = workflow.machines[-1]
        machine.renew()
        ended = machine.run(JOB, store="cache")
    else:
        ended = workflow.run(JOB, store="cache")
    assert ended.code == 0, ended.log
    return ended, workflow.service.calls - before


def test_of_50_steps(workflow: Workflow) -> None:
    service = workflow.service
    service.parts.insert(0, Gate(service, workflow.keep / "last"))

    ended, calls = asked(workflow)
    assert len(ended.outputs["ran"]) == STEPS
    archives = calls["CreateCacheEntry"]
    # The first step's archive is on its way while all others gather; the last step may just miss those.
    assert rose({"archives": archives}, {"archives": 3}) == []
    limits = dict.fromkeys(("CreateCacheEntry", "PutBlob", "FinalizeCacheEntryUpload"), archives)
    assert rose(calls, {**limits, **LOOK}) == [], "requests to save 50 steps"
    assert set(calls) <= {*limits, *LOOK}, "further kinds of requests to save 50 steps"

    # The newest entry tells the whole state and has its own layers; each further one is a look-up and a download.
    restoring = {"GetCacheEntryDownloadURL": archives, "GetBlob": archives, "CacheUsage": 1}
    ended, calls = asked(workflow)
    assert len(ended.outputs["restored"]) == STEPS
    assert rose(calls, restoring) == [], "requests to restore 50 steps on a fresh machine"
    assert set(calls) <= {*restoring}, "further kinds of requests to restore 50 steps"

    there = {"GetCacheEntryDownloadURL": 1, "GetBlob": 1, "CacheUsage": 1}
    ended, calls = asked(workflow, renewed=True)
    assert len(ended.outputs["skipped"]) == STEPS
    assert rose(calls, there) == [], "requests where all is done and there"
    assert set(calls) <= {*there}, "further kinds of requests where all is done and there"
