"""Runs a job: decides on each step, runs or restores it, records it."""

from __future__ import annotations

import heapq
import queue
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.model import Action, Decision, Reason, Record, Status
from checkpoint_action.runner import events
from checkpoint_action.runner.fingerprint import MISSING_INPUT, fingerprint
from checkpoint_action.runner.outputs import name_in, result_of
from checkpoint_action.runner.plan import Planner
from checkpoint_action.runner.process import Command, Limits, Outcome, run_command
from checkpoint_action.runner.steprun import StepRunner, StepWatcher
from checkpoint_action.runner.stop import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.model import Job, Step
    from checkpoint_action.runner.attempts import Try
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.events import Event, Listener
    from checkpoint_action.runner.guardian import Guardian
    from checkpoint_action.runner.journal import Journal
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["INCOMPLETE", "Engine", "RunOptions"]

INCOMPLETE = 75
"""Exit code of a run that stopped before the end on purpose (EX_TEMPFAIL of sysexits.h)."""

_STOPPED = 128
_SPOOL = 1 << 20  # bytes of a parallel step's output kept in memory
_CHUNK = 1 << 18
_LOOK = 0.5  # seconds; on Windows a signal handler only runs once a wait has ended


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run behaves, apart from its job.

    :param forced: run every step.
    :param selected: ids of steps that run whatever is recorded of them.
    :param jobs: how many steps may run at once.
    :param terminal: whether a step's output is a terminal, where it runs alone.
    :param mask_output: whether secrets are kept out of the steps' output, not only out of their logs.
    :param grace: seconds between asking a step to end and killing it.
    :param drain: seconds that uploads may take at the end of a run that was not stopped.
    :param drain_on_stop: the same after a signal.
    """

    forced: bool = False
    selected: tuple[str, ...] = ()
    jobs: int = 1
    terminal: bool = False
    mask_output: bool = False
    grace: float = 10.0
    drain: float = 1800.0
    drain_on_stop: float = 4.0


@dataclass(frozen=True, slots=True)
class _Started:
    """A step that runs in a thread.

    :param output: what it printed, to be shown in one piece.
    """

    position: int
    pending: Record
    output: IO[bytes]


class Engine:
    """Runs one job once. Everything but the commands themselves happens in the caller's thread.

    :param env: the environment that steps start with.
    :param write: gets the output of steps.
    :param checkpoints: where steps are kept beyond this machine.
    :param run: starts a command and waits for it.
    :param guardian: ends the steps when we die.
    :param clock: seconds that never jump.
    """

    def __init__(
        self,
        job: Job,
        journal: Journal,
        env: Mapping[str, str],
        *,
        listener: Listener,
        write: Callable[[bytes], None],
        stop: StopRequest,
        options: RunOptions,
        checkpoints: Checkpoints | None = None,
        run: Callable[[Command, Limits, Callable[[bytes], None], StopRequest], Outcome] = run_command,
        guardian: Guardian | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._journal = journal
        self._tell: Callable[[Event], None] = listener
        self._write = write
        self._stop = stop
        self._options = options
        self._checkpoints = checkpoints
        self._clock = clock
        self._begin = clock()
        # A budget shorter than the grace would otherwise never let anything start.
        self._grace = options.grace if job.budget is None else min(options.grace, job.budget / 10)
        self._planner = Planner(
            job,
            journal.records,
            env,
            forced=options.forced,
            selected=options.selected,
            stopped=lambda: stop.signum is not None,
        )
        self._runner = StepRunner(
            job,
            env,
            stop=stop,
            digests=self._planner.digests,
            grace=self._grace,
            terminal=options.terminal and options.jobs == 1,
            mask_output=options.mask_output,
            run=run,
            guardian=guardian,
            seconds_left=self._seconds_left,
        )
        self._messages: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._running = 0
        self._waiting_for: dict[str, int] = {}
        self._dependents: dict[str, list[int]] = {}
        self._ready: list[int] = []
        self._out_of_budget = False
        self._blocked: set[str] = set()
        self._ran: list[str] = []
        self._skipped: list[str] = []
        self._restored: list[str] = []
        self._failed: list[str] = []
        self._saved = 0.0

    def run(self) -> events.RunEnded:
        """Run the job to its end, or until it fails or is stopped.

        :raises StateWriteError: a transition could not be recorded.
        :raises StoreError: the store failed, and it is required.
        """
        self._begin = self._clock()
        self._tell(events.RunStarted(self._job))
        self._arrange()
        try:
            while self._ready or self._running:
                while self._ready and self._running < self._options.jobs and not self._halted():
                    position = heapq.heappop(self._ready)
                    with suppress(StoppedError):  # no further step starts; those that run are ended and waited for
                        self._settle(position, self._job.steps[position])
                if not self._running:
                    break
                with suppress(StoppedError):
                    self._next_message()
        except BaseException:
            self._abandon()
            if self._checkpoints is not None:
                with suppress(StoreError):  # the first failure is the one that is told
                    self._checkpoints.finish(self._options.drain_on_stop)
            raise
        if self._checkpoints is not None:
            hurried = self._stop.signum is not None or self._out_of_budget
            self._checkpoints.finish(self._options.drain_on_stop if hurried else self._options.drain)
        ended = self._result(self._clock() - self._begin)
        self._tell(ended)
        return ended

    def _arrange(self) -> None:
        """Find out which steps wait for which."""
        for position, step in enumerate(self._job.steps):
            self._waiting_for[step.id] = len(step.needs)
            for need in step.needs:
                self._dependents.setdefault(need, []).append(position)
            if not step.needs:
                heapq.heappush(self._ready, position)

    def _release(self, step: Step) -> None:
        """A step is settled, in whatever way: those that waited for it alone may be looked at."""
        for position in self._dependents.get(step.id, ()):
            waiting = self._job.steps[position].id
            self._waiting_for[waiting] -= 1
            if not self._waiting_for[waiting]:
                heapq.heappush(self._ready, position)

    def _next_message(self) -> None:
        """Do what a running step asks for."""
        while True:
            try:
                self._messages.get(timeout=_LOOK)()
            except queue.Empty:
                continue
            return

    def _abandon(self) -> None:
        """We cannot go on: let no step run unwatched."""
        self._stop.request(15)
        while self._running:
            try:
                self._messages.get(timeout=_LOOK)()
            except queue.Empty:
                continue
            except Exception:  # noqa: S112  # the first failure is the one that is told
                continue

    def _seconds_left(self) -> float | None:
        return None if self._job.budget is None else self._job.budget - (self._clock() - self._begin)

    def _halted(self) -> bool:
        """Whether no further step may start."""
        if self._stop.signum is not None:
            return True
        if self._failed:
            limit = self._job.max_failures
            if not self._job.continue_on_error or (limit is not None and len(self._failed) >= limit):
                return True
        return self._out_of_budget

    def _result(self, seconds: float) -> events.RunEnded:
        settled = {*self._ran, *self._skipped, *self._restored}
        pending = tuple(step.id for step in self._job.steps if step.id not in settled)
        stopped = tuple(step for step in self._ran if self._journal.records[step].status is Status.INTERRUPTED)
        signum = self._stop.signum
        incomplete = False
        code = 1 if self._failed else 0
        if signum is not None and (pending or self._failed or stopped):
            code = _STOPPED + signum
        elif self._out_of_budget and not self._failed:
            code, incomplete = INCOMPLETE, True
        return events.RunEnded(
            self._job.name,
            code,
            tuple(self._ran),
            tuple(self._skipped),
            tuple(self._restored),
            tuple(self._failed),
            pending,
            signum,
            seconds,
            self._saved,
            incomplete,
            stopped,
        )

    def _settle(self, position: int, step: Step) -> None:
        """Skip, restore or start one step whose needs are settled."""
        for need in step.needs:
            record = self._journal.records.get(need)
            if need in self._blocked or record is None or record.status is not Status.DONE:
                self._blocked.add(step.id)  # whatever an older record of it says
                self._tell(events.StepBlocked(position, step.id, need))
                self._release(step)
                return
        parts = self._planner.parts(step)
        decision = self._planner.decide(step, parts)
        for name in sorted(part for part, value in parts.items() if value == MISSING_INPUT):
            self._tell(events.Warned(f"step '{step.id}': its {name} matches no file"))
        if decision.action is Action.RESTORE:
            decision = self._restore(position, step, decision)
        if decision.action is Action.RUN:
            left = self._seconds_left()
            if left is not None and left <= self._grace:
                self._out_of_budget = True
                return
            self._start(position, step, parts, decision)
            return
        if decision.action is Action.SKIP:
            record = self._journal.records[step.id]
            self._skipped.append(step.id)
            self._saved += record.duration
            self._tell(events.StepSkipped(position, decision, record))
        self._release(step)

    def _restore(self, position: int, step: Step, decision: Decision) -> Decision:
        record = self._journal.records[step.id]
        begin = self._clock()
        if self._checkpoints is None:
            return Decision(step.id, Action.RUN, Reason.ARCHIVE_MISSING, "no store is used")
        try:
            self._checkpoints.restore(record, self._planner.ownership.known_contents)
        except StoreError as error:
            if self._stop.signum is not None:
                raise StoppedError from error
            return Decision(step.id, Action.RUN, Reason.ARCHIVE_MISSING, str(error))
        self._restored.append(step.id)
        self._saved += record.duration
        self._tell(events.StepRestored(position, decision, record, self._clock() - begin))
        return decision

    def _start(self, position: int, step: Step, parts: Mapping[str, str], decision: Decision) -> None:
        self._tell(events.StepStarted(position, decision, step.command))
        if self._checkpoints is not None:
            self._checkpoints.look(self._planner.digests)
            self._checkpoints.started(step.id)
        pending = Record(
            step=step.id,
            status=Status.RUNNING,
            fingerprint=fingerprint(parts),
            command=step.command,
            parts=parts,
            started=time.time(),
            log=name_in(self._job.root, str(step.log)) if step.log else "",
        )
        self._note(pending, self._journal.start)
        if self._options.jobs == 1:
            watcher = StepWatcher(
                self._write,
                lambda failed, wait: self._tell(events.StepRetried(position, _with(pending, failed), wait)),
                lambda text: self._tell(events.Warned(text)),
            )
            self._end(position, step, pending, self._runner.run(step, watcher))
            return
        self._running += 1
        output = tempfile.SpooledTemporaryFile(max_size=_SPOOL)  # noqa: SIM115  # closed when it has been shown
        started = _Started(position, pending, output)
        threading.Thread(target=self._run_beside, args=(step, started), name=f"step {step.id}", daemon=True).start()

    def _run_beside(self, step: Step, started: _Started) -> None:
        """In a thread of the step's own: run it, and ask the engine's thread for all else."""
        position, pending = started.position, started.pending
        say = self._messages.put
        watcher = StepWatcher(
            lambda data: _spool(started.output, data),
            lambda failed, wait: say(lambda: self._tell(events.StepRetried(position, _with(pending, failed), wait))),
            lambda text: say(lambda: self._tell(events.Warned(text))),
        )
        try:
            tried = self._runner.run(step, watcher)
        except BaseException as error:  # raised again where somebody can see it
            failure = error
            say(lambda: self._died(failure))
            return
        say(lambda: self._ended_beside(step, started, tried))

    def _died(self, failure: BaseException) -> None:
        self._running -= 1
        raise failure

    def _ended_beside(self, step: Step, started: _Started, tried: Try) -> None:
        self._running -= 1
        with started.output as output:
            output.seek(0)
            while data := output.read(_CHUNK):
                self._write(data)
        self._end(started.position, step, started.pending, tried)

    def _end(self, position: int, step: Step, pending: Record, tried: Try) -> None:
        """Record how a step ended."""
        for note in tried.notes:
            self._tell(events.Warned(f"step '{step.id}': {note}"))
        record = _with(pending, tried)
        if record.status is Status.DONE and self._checkpoints is not None:
            record = replace(record, layer=self._checkpoints.changes(step, record.layer, self._planner.digests))
        elif self._checkpoints is not None:
            self._checkpoints.forget_look()
        if record.status is Status.DONE:
            record = replace(record, result=result_of(record.layer) if record.layer.entries else record.fingerprint)
        self._note(record, self._journal.finish)
        self._ran.append(step.id)
        if record.status in (Status.FAILED, Status.TIMEOUT):
            self._failed.append(step.id)
        elif record.status is Status.INTERRUPTED and self._stop.signum is None:
            self._out_of_budget = True
        self._tell(events.StepEnded(position, record))
        if record.status is Status.DONE and self._checkpoints is not None:
            self._checkpoints.keep(record)
        self._release(step)

    def _note(self, record: Record, append: Callable[[Record], None]) -> None:
        append(record)
        self._planner.recorded(record)


def _spool(output: IO[bytes], data: bytes) -> None:
    output.write(data)


def _with(record: Record, tried: Try) -> Record:
    return replace(
        record,
        status=tried.status,
        exit_code=tried.exit_code,
        signal=tried.signal,
        tries=tried.number,
        started=tried.started,
        duration=tried.duration,
        error=tried.error,
        layer=tried.layer,
    )
