"""The real program runs some thousands of real steps in one job."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkpoint_action.model import Record, Status
from checkpoint_action.runner.journal import Journal, StatePaths, load
from tests.console import environment
from tests.torture.killing import MARK, kill_tree, marked
from tests.torture.soak import Sample, Soaked, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["soak"]

REPOSITORY = Path(__file__).resolve().parents[2]
_LONGEST = 4 * 3600.0
_FIRST = '[ "$CHECKPOINT_TRY" -gt 1 ] || '

_FAULTS = (
    (17, "first tries that failed", f"{_FIRST}exit 3"),
    (29, "first tries that killed themselves", f"{_FIRST}kill -KILL $$"),
    (151, "first tries that timed out", f"{_FIRST}sleep 100"),
    (31, "children left behind", "sleep 0.3 & :"),
    (43, "steps that failed to the end", "exit 1"),
)


def _fault(number: int) -> tuple[str, str]:
    return next(((name, command) for each, name, command in _FAULTS if number % each == 5), ("", ":"))


def _steps(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        _name, command = _fault(number)
        body = f"echo step {number}; {command}; echo {number} > out.{number % 50}"
        step = {"id": f"s{number}", "run": body, "shell": "sh", "needs": [], "inputs": [], "leftovers": "kill"}
        yield {**step, "outputs": [f"out.{number % 50}"] if number % 10 == 0 else []}


def soak(folder: Path, count: int, *, store: bool) -> Soaked:
    """Run so many steps as one job, all of which have a record of an earlier run.

    :param store: whether they go to a store, which stops to work halfway.
    """
    folder.mkdir()
    work = folder / "work"
    work.mkdir()
    defaults = {"timeout": "2s", "retry": {"max": 5, "backoff": 0, "on": ["error", "timeout"]}}
    steps = list(_steps(count))
    job = {"job": "soak", "continue-on-error": True, "defaults": defaults, "steps": steps}
    (work / "checkpoint.yml").write_text(json.dumps(job))
    paths = StatePaths(work, "soak")
    journal = Journal(paths, load(paths))
    journal.open()
    before = {"command": "0" * 64}
    journal.merge({one["id"]: Record(one["id"], Status.FAILED, "0" * 64, one["run"], before) for one in steps})
    journal.close()
    mark = f"soak-{time.time_ns()}"
    words = ["--json", "--no-logs"]
    if store:
        words += ["--store", f"file://{folder}/store", "--run-id", "soak"]
    told = folder / "told"
    with told.open("wb") as output, (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "checkpoint_action", *words],
            cwd=work,
            env=environment({"PYTHONPATH": str(REPOSITORY), MARK: mark}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=said,
        )
    try:
        samples, faults = _watched(process, told, folder / "store" if store else None, count)
    finally:
        if process.poll() is None:
            kill_tree(process)
    events = [json.loads(line) for line in told.read_bytes().splitlines()]
    ended = {event["id"]: event for event in events if event["event"] == "step-ended"}
    losing = {f"s{number}" for number in range(count) if _fault(number)[0] == "steps that failed to the end"}
    if process.returncode != (1 if losing else 0):
        faults.append(f"it ended with {process.returncode}: {(folder / 'said').read_text()[-300:]}")
    for name, event in ended.items():
        if (event["status"] == "failed") != (name in losing):
            faults.append(f"{name} is {event['status']}: {event['error']}")
    if len(ended) != count:
        faults.append(f"{len(ended)} of {count} steps ended")
    if store and not any(event["event"] == "warning" for event in events):
        faults.append("nothing was said of the store that did not work any more")
    end = time.monotonic() + 60
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    if left:
        faults.append(f"left over: {left}")
    had = [(name, sum(_fault(number)[0] == name for number in range(count))) for _each, name, _command in _FAULTS]
    name = "of the program with a store that fails halfway" if store else "of the program"
    return Soaked(name, len(ended), samples, faults[:10], had)


def _watched(
    process: subprocess.Popen[bytes], told: Path, store: Path | None, count: int
) -> tuple[list[Sample], list[str]]:
    """Look at a process until it ends, and break its store when it is halfway."""
    samples: list[Sample] = []
    steps = offset = 0
    end = time.monotonic() + _LONGEST
    while process.poll() is None:
        if time.monotonic() > end:
            return samples, ["it did not end"]
        with told.open("rb") as file:
            file.seek(offset)
            news = file.read()
        offset += len(news)
        steps += news.count(b'"event": "step-ended"')
        if steps:
            with suppress(OSError, IndexError):
                samples.append(sample(process.pid, steps))
        if store is not None and steps >= count // 2 and store.is_dir():
            store.rename(store.with_name("store-away"))
            store.write_text("no folder any more")
        time.sleep(0.02)
    return samples, []
