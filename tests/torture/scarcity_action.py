"""The action's Python step while the disk under ``RUNNER_TEMP``, or the workspace, refuses one call after another."""

from __future__ import annotations

import errno
import random
import re
import shutil
from typing import TYPE_CHECKING

from tests.action.installation import tool_cache
from tests.actions_service import ActionsService
from tests.torture.network_machines import Site
from tests.torture.network_places import runtime_of
from tests.torture.trouble import CHANGES, Trouble, calls_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.torture.network_machines import Came
    from tests.torture.scarcity_desk import Desk

__all__ = ["action"]

_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE)
_FAILED = re.compile(
    r"failed after .*: cannot (prepare|look at|start)|hands on cannot be used|RUNNER_TEMP must be writable"
)
"""What a step fails with for which no files can be made, or whose files nobody can look at; and the action."""

_STEPS = ("one", "two", "three")


class _Job:
    """A job on the cache, two attempts of it: the first one fails at step three, the second one is in trouble."""

    def __init__(self, desk: Desk, folder: Path, tools: Path, service: ActionsService) -> None:
        self.desk = desk
        self.site = Site(folder, 40_000, tools)
        self.service = service
        self._attempt = 0

    def attempt(self, env: Mapping[str, str] | None = None) -> Came:
        """The next attempt, on a fresh machine."""
        self._attempt += 1
        runtime, _token = runtime_of(self.service, "Actions cache v2", self.service.origin, self._attempt)
        return self.site.use_action(self.service, self.desk.brisk, runtime, env or {}, {"store": "cache"})

    def place(self, what: str) -> Path:
        """Where the disk is in trouble."""
        work = self.site.folder / "workflow" / "machine" / "work"
        return work / "_temp" if what == "RUNNER_TEMP" else work / "demo"


def action(desk: Desk) -> None:
    """Fail the first call, the second one, and so on, of a first and of a second attempt."""
    tools = tool_cache(desk.folder / "tools")
    chance = random.Random(1)
    for what in ("RUNNER_TEMP", "the workspace"):
        for second in (False, True):
            count = len(_tried(desk, tools, what, second=second, trouble=None))
            chosen = range(1, count + 1) if desk.long else chance.sample(range(1, count + 1), min(1, count))
            for first in chosen:
                trouble = Trouble((), CHANGES, first, chance.choice((first, 0)), chance.choice(_ERRORS))
                _tried(desk, tools, what, second=second, trouble=trouble)


def _tried(desk: Desk, tools: Path, what: str, *, second: bool, trouble: Trouble | None) -> list[tuple[bool, str, str]]:
    """One attempt in trouble and one without; the calls that counted."""
    folder = desk.new_folder()
    log = folder.with_suffix(".calls")
    with ActionsService.running() as service:
        job = _Job(desk, folder, tools, service)
        if second:
            assert job.attempt().code == 1
        job.site.fix()
        made = trouble or Trouble(calls=CHANGES)
        env = made.environment(desk.library, log) | {"TROUBLE_IN": str(job.place(what))}
        before = [job.site.ran(step) for step in _STEPS]
        came = job.attempt(env)
        calls = calls_in(log)
        ran = [job.site.ran(step) for step in _STEPS]
        again = job.attempt()
    if trouble is None:
        assert came.code == again.code == 0, came.said
    else:
        found = []
        desk.count(f"the action, {'second' if second else 'first'} attempt, {what}: calls that failed")
        desk.count(f"such an attempt ended with {came.code}")
        # Where nothing can be written below RUNNER_TEMP, the runner itself can start no step either.
        honest = _FAILED.search(came.said) is not None
        if came.code not in (0, 5) and not honest:
            found.append(f"ended with {came.code}")
        if "Traceback" in came.said or "CPR901" in came.said:
            found.append("a traceback")
        if came.code == 0 and came.files != again.files:
            found.append("other files")
        if max(b - a for a, b in zip(before, ran, strict=True)) > 1:
            found.append("a step ran twice")
        if again.code != 0:
            found.append(f"afterwards ended with {again.code}: {again.said[-500:]!r}")
        if found:
            struck = next((f"{kind} {path}" for met, kind, path in calls if met), "no call")
            desk.fault(f"the action, {what}, {trouble} ({struck}): {'; '.join(found)}; said: {came.said[-1500:]!r}")
    shutil.rmtree(folder, ignore_errors=True)
    return calls
