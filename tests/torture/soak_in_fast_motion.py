"""The engine runs very many steps, with a stand-in for their processes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import SYSTEM_SHELL, Job, Retry, Status, Step
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.events import StepEnded, Warned
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.process import End, Outcome
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.stop import StopRequest
from tests.runner.jobs import record
from tests.torture.soak import Sample, Soaked, sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.runner.events import Event
    from checkpoint_action.runner.process import Command, Limits

__all__ = ["soak"]

_LOOKS = 400
_RETRY = Retry(max=2, backoff=0.0)
_LOSING = frozenset({"steps that failed to the end"})

_FAULTS = (
    (97, "first tries that failed"),
    (101, "first tries that timed out"),
    (103, "first tries that a signal killed"),
    (107, "first tries that could not be started"),
    (109, "steps that failed to the end"),
    (113, "logs on a full disk"),
)


def _fault(number: int) -> str:
    return next((name for each, name in _FAULTS if number % each == 1), "")


def soak(folder: Path, count: int) -> Soaked:
    """Run so many steps as one job, all of which have a record of an earlier run; the state is on a real disk."""
    folder.mkdir()
    steps = []
    for number in range(count):
        log = None
        if _fault(number) == "logs on a full disk":
            log = Path("/dev/full")
        elif number % 20 == 0:
            log = folder / f"{number % 1000}.log"
        name = f"s{number}"
        steps.append(Step(name, f"work {number}", SYSTEM_SHELL, folder, retry=_RETRY, log=log, timeout=60.0))
    job = Job("soak", folder, tuple(steps), continue_on_error=True)
    paths = StatePaths(folder, "soak")
    journal = Journal(paths, load(paths))
    journal.open()
    journal.merge({step.id: record(step, folder, Status.FAILED) for step in steps})
    had: Counter[str] = Counter()
    samples: list[Sample] = []
    faults: list[str] = []
    ended = 0

    def run(
        command: Command,
        _limits: Limits,
        write: Callable[[bytes], None],
        _stop: StopRequest,
        *,
        started: Callable[[], None],
    ) -> Outcome:
        started()
        number = int(command.env["CHECKPOINT_STEP"][1:])
        fault = _fault(number)
        is_first = command.env["CHECKPOINT_TRY"] == "1"
        write(b"some output\n" * (20_000 if number % 500 == 0 else 20))
        if fault and (is_first or fault in _LOSING):
            had[fault] += is_first
            if fault == "first tries that timed out":
                return Outcome(End.TIMEOUT, None, signal.SIGKILL, 1.0)
            if fault == "first tries that a signal killed":
                return Outcome(End.EXITED, None, signal.SIGKILL, 1.0)
            if fault == "first tries that could not be started":
                return Outcome(End.NOT_STARTED, None, None, 0.0, ("no more processes",))
            if fault != "logs on a full disk":
                return Outcome(End.EXITED, 1, None, 1.0)
        return Outcome(End.EXITED, 0, None, 1.0, alone=True)

    def listen(event: Event) -> None:
        nonlocal ended
        if isinstance(event, StepEnded):
            wanted = Status.FAILED if _fault(ended) in _LOSING else Status.DONE
            if event.record.status is not wanted:
                faults.append(f"{event.record.step} is {event.record.status.value}: {event.record.error}")
            ended += 1
            if ended % max(1, count // _LOOKS) == 0:
                samples.append(sample(os.getpid(), ended))
        elif isinstance(event, Warned) and "log" not in event.message:
            faults.append(f"a warning: {event.message}")

    engine = Engine(
        job,
        journal,
        dict(os.environ),
        listener=listen,
        write=lambda _data: None,
        stop=StopRequest(),
        options=RunOptions(),
        state=paths,
        run=run,
        clock=_Clock(12 * 3600 / count).now,
    )
    result = engine.run()
    journal.close()
    if len(result.ran) != count:
        faults.append(f"{len(result.ran)} of {count} steps ran")
    wrong = [step for step, record in load(paths).records.items() if record.status is Status.RUNNING]
    if wrong:
        faults.append(f"recorded as running in the end: {wrong[:5]}")
    return Soaked("of one job in fast motion", ended, samples, faults[:10], sorted(had.items()))


class _Clock:
    """Says that twelve hours pass in the course of the run.

    :param step: seconds from look to look.
    """

    def __init__(self, step: float) -> None:
        self._step = step
        self._now = 0.0

    def now(self) -> float:
        """Seconds."""
        self._now += self._step
        return self._now
