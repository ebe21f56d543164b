"""Runs a job: decides on each step, runs or restores it, records it."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.model import AUTO, Action, Decision, Layer, Reason, Record, Status
from checkpoint_action.runner import events
from checkpoint_action.runner.attempts import judge, run_tries
from checkpoint_action.runner.descendants import MARKER
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.outputs import collect, name_in, result_of
from checkpoint_action.runner.plan import Planner
from checkpoint_action.runner.process import Command, End, Limits, Outcome, run_command
from checkpoint_action.runner.shells import shell_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.model import Job, Step
    from checkpoint_action.runner.attempts import Try
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.events import Event, Listener
    from checkpoint_action.runner.journal import Journal
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["Engine", "RunOptions"]

_STOPPED = 128


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run behaves, apart from its job.

    :param forced: run every step.
    :param grace: seconds between asking a step to end and killing it.
    :param drain: seconds that uploads may take at the end of a run that was not stopped.
    :param drain_on_stop: the same after a signal.
    """

    forced: bool = False
    grace: float = 10.0
    drain: float = 1800.0
    drain_on_stop: float = 4.0


class Engine:
    """Runs one job once.

    :param env: the environment that steps start with.
    :param write: gets the output of steps.
    :param checkpoints: where steps are kept beyond this machine.
    :param run: starts a command and waits for it.
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._journal = journal
        self._env = env
        self._tell: Callable[[Event], None] = listener
        self._write = write
        self._stop = stop
        self._options = options
        self._checkpoints = checkpoints
        self._run_command = run
        self._clock = clock
        self._planner = Planner(job, journal.records, env, forced=options.forced)
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
        begin = self._clock()
        self._tell(events.RunStarted(self._job))
        for position, step in enumerate(self._job.steps):
            if self._stop.signum is not None or self._enough_failures():
                break
            self._settle(position, step)
        if self._checkpoints is not None:
            stopped = self._stop.signum is not None
            self._checkpoints.finish(self._options.drain_on_stop if stopped else self._options.drain)
        ended = self._result(self._clock() - begin)
        self._tell(ended)
        return ended

    def _enough_failures(self) -> bool:
        if not self._failed:
            return False
        limit = self._job.max_failures
        return not self._job.continue_on_error or (limit is not None and len(self._failed) >= limit)

    def _result(self, seconds: float) -> events.RunEnded:
        settled = {*self._ran, *self._skipped, *self._restored}
        pending = tuple(step.id for step in self._job.steps if step.id not in settled)
        signum = self._stop.signum
        code = 1 if self._failed else 0
        if signum is not None and (pending or self._failed or self._interrupted()):
            code = _STOPPED + signum
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
        )

    def _interrupted(self) -> bool:
        return any(self._journal.records[step].status is Status.INTERRUPTED for step in self._ran)

    def _settle(self, position: int, step: Step) -> None:
        """Skip, restore or run one step."""
        for need in step.needs:
            record = self._journal.records.get(need)
            if record is None or record.status is not Status.DONE:
                self._tell(events.StepBlocked(position, step.id, need))
                return
        parts = self._planner.parts(step)
        decision = self._planner.decide(step, parts)
        if decision.action is Action.RESTORE:
            decision = self._restore(position, step, decision)
        if decision.action is Action.RUN:
            self._run(position, step, parts, decision)
        elif decision.action is Action.SKIP:
            record = self._journal.records[step.id]
            self._skipped.append(step.id)
            self._saved += record.duration
            self._tell(events.StepSkipped(position, decision, record))

    def _restore(self, position: int, step: Step, decision: Decision) -> Decision:
        record = self._journal.records[step.id]
        begin = self._clock()
        if self._checkpoints is None:
            return Decision(step.id, Action.RUN, Reason.ARCHIVE_MISSING, "no store is used")
        try:
            self._checkpoints.restore(record, self._planner.ownership.known_contents)
        except StoreError as error:
            return Decision(step.id, Action.RUN, Reason.ARCHIVE_MISSING, str(error))
        self._restored.append(step.id)
        self._saved += record.duration
        self._tell(events.StepRestored(position, decision, record, self._clock() - begin))
        return decision

    def _run(self, position: int, step: Step, parts: Mapping[str, str], decision: Decision) -> None:
        self._tell(events.StepStarted(position, decision, step.command))
        if self._checkpoints is not None:
            self._checkpoints.look(self._planner.digests)
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
        tried = run_tries(
            step.retry,
            lambda number: self._try(step, number),
            self._stop.wait,
            lambda failed, wait: self._tell(events.StepRetried(position, _with(pending, failed), wait)),
        )
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
        self._tell(events.StepEnded(position, record))
        if record.status is Status.DONE and self._checkpoints is not None:
            self._checkpoints.keep(record)

    def _note(self, record: Record, append: Callable[[Record], None]) -> None:
        append(record)
        self._planner.recorded(record)

    def _try(self, step: Step, number: int) -> Try:
        started = time.time()
        env = {
            **self._env,
            **step.env,
            "CHECKPOINT_JOB": self._job.name,
            "CHECKPOINT_STEP": step.id,
            "CHECKPOINT_TRY": str(number),
            MARKER: secrets.token_hex(8),
        }
        limits = Limits(step.timeout, self._options.grace)
        log = None
        try:
            if step.log is not None:
                step.log.parent.mkdir(parents=True, exist_ok=True)
                log = step.log.open("wb", buffering=0)
        except OSError as error:
            self._tell(events.Warned(f"step '{step.id}': cannot write its log {step.log}: {error.strerror}"))
        try:
            with shell_command(step, env) as argv:
                write = self._write if log is None else _Tee(self._write, log.write, self._log_lost(step))
                outcome = self._run_command(Command(argv, step.cwd, env), limits, write, self._stop)
        except OSError as error:
            outcome = Outcome(End.NOT_STARTED, None, None, 0.0, (f"cannot prepare its script: {error}",))
        finally:
            if log is not None:
                log.close()
        return judge(outcome, number, started, step.timeout, lambda: self._declared(step))

    def _log_lost(self, step: Step) -> Callable[[OSError], None]:
        return lambda error: self._tell(
            events.Warned(f"step '{step.id}': its log {step.log} ends early: {error.strerror}")
        )

    def _declared(self, step: Step) -> Layer:
        if step.outputs == AUTO or not step.outputs:
            return Layer()
        return collect(step.outputs, step.cwd, self._job.root, self._planner.digests)


class _Tee:
    """Hands output on and writes it to a log; a log that fails is given up, the step is not."""

    def __init__(
        self, write: Callable[[bytes], None], log: Callable[[bytes], object], lost: Callable[[OSError], None]
    ) -> None:
        self._write = write
        self._log: Callable[[bytes], object] | None = log
        self._lost = lost

    def __call__(self, data: bytes) -> None:
        self._write(data)
        if self._log is not None:
            try:
                self._log(data)
            except OSError as error:
                self._log = None
                self._lost(error)


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
