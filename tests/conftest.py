"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from itertools import chain, groupby, islice

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as nohup has it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Where nothing may be kept compiled, each worker and each of the thousands of processes that the tests start would
# compile everything again. A worker takes three times as long only to collect.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long an example takes says how busy the machine is. What a test hangs in is ended by its limit.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")

_WORKERS_A_CORE = 3
_MOST_WORKERS = 16
_TOGETHER = ("tests/store/test_every_store.py", "tests/store/test_objects.py", "tests/peers/")
"""Modules whose tests share a server or an installation: their worker has it only once."""
_LONGEST = (
    "tests/store/test_every_store.py",
    "tests/peers/test_cache.py",  # each of these three begins with another installation
    "tests/peers/test_summary.py",
    "tests/peers/test_editors.py",
    "tests/act/test_example_workflows.py",
    "tests/crash/test_kill_everything.py",
    "tests/test_examples.py",
    "tests/benchmarks/",
    "tests/action/test_real_builds.py",
    "tests/act/",
    "tests/peers/",
)
"""What takes longest, to be begun first."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """How many workers ``-n auto`` means: most tests wait for processes and servers, so more than there are cores."""
    cores = os.cpu_count() or 1
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))  # those that we may use
    return min(_WORKERS_A_CORE * cores, _MOST_WORKERS)


@pytest.hookimpl(trylast=True)  # what is not selected is gone by then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal out the slow tests, so that each worker begins with its share of them and none is the last one at work.

    ``--dist worksteal`` gives each worker a stretch of the list, and to the idle what others have not yet begun.
    """
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = sorted(filter(_is_slow, items), key=_rank)
    quick = [item for item in items if not _is_slow(item)]
    if workers > 1 and slow:
        hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
        for _, together in groupby(slow, key=_unit):
            min(hands, key=len).extend(together)
        left = iter(quick)
        each = -(-len(items) // workers)
        filled = (chain(hand, islice(left, max(each - len(hand), 0))) for hand in hands)
        items[:] = [*chain.from_iterable(filled), *left]


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def _rank(item: pytest.Item) -> int:
    """Where its module stands among the longest."""
    return next((place for place, name in enumerate(_LONGEST) if item.nodeid.startswith(name)), len(_LONGEST))


def _unit(item: pytest.Item) -> str:
    """Tests of one unit begin on one worker."""
    return item.nodeid.partition("::")[0] if item.nodeid.startswith(_TOGETHER) else item.nodeid
