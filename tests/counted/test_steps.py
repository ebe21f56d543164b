"""What a trivial step costs in system calls, its own apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console import PROGRAM
from tests.counted.tracing import NEW_PROCESS, NEW_THREAD, counts, needs_strace, per_item, rose, traced

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_strace]

WAITING = {
    "futex",
    "restart_syscall",
    "epoll_wait",
    "epoll_pwait",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "sched_yield",
}
"""How often these are made is a matter of who is faster."""
POLLED = "/.checkpoint-run-demo.run/requests"
"""A folder that is looked into from time to time."""
LIMITS = {
    "fsync": 1.1,  # what has ended and what begins are recorded together
    NEW_PROCESS: 1.1,
    NEW_THREAD: 0.1,
    "execve": 1.1,
    "openat": 6.3,
    "unlink": 0.1,
    "rename": 1.1,
    "stat": 27,
    "all calls": 180,
    "bytes written": 5200,
}


def run_costs(folder: Path, few: int, many: int) -> dict[str, float]:
    """Calls for each further step."""
    found = []
    for steps in (few, many):
        top = folder / str(steps)
        top.mkdir(parents=True)
        lines = "".join(f"- {{id: step{number:04d}, run: 'true'}}\n" for number in range(steps))
        (top / "checkpoint.yml").write_text(f"job: demo\nshell: sh\nsteps:\n{lines}")
        calls = traced([PROGRAM, "--quiet"], top).calls
        found.append(counts(call for call in calls if call.name not in WAITING and POLLED not in call.words))
        found[-1]["bytes written"] = sum(max(0, call.result) for call in calls if call.name in ("write", "pwrite64"))
    costs = per_item(found[0], found[1], many - few)
    costs["all calls"] = sum(cost for name, cost in costs.items() if name != "bytes written")
    return costs


def test_a_trivial_step(tmp_path: Path) -> None:
    costs = run_costs(tmp_path, 20, 60)
    assert rose(costs, LIMITS) == [], f"for each step, of {costs}"


def test_a_step_of_a_long_job_costs_what_one_of_a_short_job_does(tmp_path: Path) -> None:
    short, long = run_costs(tmp_path / "short", 20, 60), run_costs(tmp_path / "long", 200, 240)
    names = ("all calls", "fsync", "stat", "openat", "read", "write", "bytes written")
    assert rose(long, {name: short[name] * 1.1 + 0.5 for name in names}) == []
