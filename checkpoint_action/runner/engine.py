"""Runs a job: decides on each step, runs or restores it, records it."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from checkpoint_action.errors import StateWriteError, StoreError, TornError
from checkpoint_action.model import AUTO, Action, Decision, Reason, Record, Status, Values
from checkpoint_action.runner import events
from checkpoint_action.runner.attempts import recorded
from checkpoint_action.runner.beside import Beside
from checkpoint_action.runner.fingerprint import USELESS_INPUTS, fingerprint
from checkpoint_action.runner.keeping import Keeping
from checkpoint_action.runner.leaving import NOT_NEEDED, LeftAlone
from checkpoint_action.runner.lent import Lent
from checkpoint_action.runner.log_places import log_of
from checkpoint_action.runner.outputs import name_in, result_for
from checkpoint_action.runner.plan import Planner
from checkpoint_action.runner.process import RunCommand, run_command
from checkpoint_action.runner.schedule import Schedule
from checkpoint_action.runner.steprun import StepRunner, StepWatcher
from checkpoint_action.runner.stop import StoppedError
from checkpoint_action.runner.tally import Tally
from checkpoint_action.runner.telling import Telling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from checkpoint_action.model import Job, Step
    from checkpoint_action.runner.attempts import Try
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.events import Listener
    from checkpoint_action.runner.guardian import Guardian
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.journal import Journal, StatePaths
    from checkpoint_action.runner.run_options import RunOptions
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["Engine"]

_NEXT_TIME = "the next run puts that right"
_SPOOL = 1 << 20  # bytes of a parallel step's output kept in memory
_CHUNK = 1 << 18


class Engine:
    """Runs one job once. Everything but the commands themselves happens in the caller's thread.

    :param env: the environment that steps start with.
    :param write: gets the output of steps.
    :param state: where the folders lie that are lent to steps; see :class:`Lent`.
    :param digests: instead of new ones; they ask by themselves whether a stop is requested.
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
        state: StatePaths | None = None,
        digests: ContentDigests | None = None,
        checkpoints: Checkpoints | None = None,
        run: RunCommand = run_command,
        guardian: Guardian | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._journal = journal
        self._telling = Telling(journal, listener)
        self._tell = self._telling.tell
        self._write = write
        self._stop = stop
        self._options = options
        self._clock = clock
        self._begin = clock()
        # A budget shorter than the grace would otherwise never let anything start.
        self._grace = options.grace if job.budget is None else min(options.grace, job.budget / 10)
        self._planner = Planner(
            job,
            journal.records,
            env,
            selection=options.selection,
            stopped=lambda: stop.signum is not None,
            digests=digests,
        )
        self._guardian = guardian
        self._lent = Lent(job, state, lambda: stop.signum is not None)
        self._keeping = Keeping(job, checkpoints, self._lent, stop, self._tell)
        self._runner = StepRunner(
            job,
            env,
            self._lent,
            stop=stop,
            digests=self._planner.digests,
            grace=self._grace,
            terminal=options.terminal and options.jobs == 1,
            mask_output=options.mask_output,
            run=run,
            guardian=guardian,
            seconds_left=self._seconds_left,
        )
        self._beside = Beside()
        self._done: list[str] = []  # steps whose own folders are to go
        self._latest: tuple[str, ...] | Literal["auto"] = ()  # outputs of the step that was looked at last
        self._blocked: set[str] = set()
        self._running: dict[str, Step] = {}
        self._left = LeftAlone(
            options.selection.left,
            self._put_back,
        )
        looked_at = options.selection.scope(job)
        self._schedule = Schedule(job, looked_at)
        self._tally = Tally([step.id for step in looked_at], left_out_is_wrong=options.selection.only)

    def run(self) -> events.RunEnded:
        """Run the job to its end, or until it fails or is stopped.

        :raises StateWriteError: a transition could not be recorded.
        :raises StoreError: the store failed, and it is required.
        """
        self._begin = self._clock()
        self._tell(events.RunStarted(self._job, self._tally.steps))
        self._lent.open()
        if self._guardian is not None:
            self._guardian.watch(self._lent.scripts.token)  # it has no processes, but files to clear up
        self._forget_done()
        try:
            self._work()
        finally:
            self._lent.close()
            if self._guardian is not None:
                self._guardian.unwatch(self._lent.scripts.token)
        ended = self._tally.ended(self._job.name, self._stop.signum, self._clock() - self._begin)
        self._tell(ended)
        return ended

    def _forget_done(self) -> None:
        """What done steps have in their own folders goes, where a run died before it could."""
        for step in self._lent.progress.left():
            record = self._journal.records.get(step)
            if record is not None and record.status is Status.DONE:
                self._lent.progress.forget(step)

    def handed_on(self) -> dict[str, Values]:
        """What each step that was settled well hands on, with what nobody may keep; the summary of failed ones too."""
        settled = self._tally.settled
        return {
            step.id: self._planner.handed_on.of(position, self._journal.records[step.id].values)
            for position, step in enumerate(self._job.steps)
            if step.id in settled
        }

    def _work(self) -> None:
        try:
            while self._schedule or self._beside.running:
                while self._schedule and self._beside.running < self._options.jobs and not self._halted():
                    step = self._job.steps[self._schedule.next()]
                    if self._beside.running and AUTO in (step.outputs, self._latest):
                        break  # what changes while it runs would be taken for its own
                    self._latest = step.outputs
                    with suppress(StoppedError):  # no further step starts; those that run are ended and waited for
                        self._settle(self._schedule.take(), step)
                self._catch_up()
                if not self._beside.running:
                    break
                with suppress(StoppedError):
                    self._beside.next()
        except BaseException:
            self._stop.request(15)  # we cannot go on: let no step run unwatched
            try:
                with suppress(StateWriteError):
                    self._telling.catch_up()
            finally:
                self._beside.abandon()
            with suppress(StoreError):  # the first failure is the one that is told
                self._keeping.finish(self._options.drain_on_stop, self._options.drain_on_stop)
            raise
        hurried = self._stop.signum is not None or self._tally.out_of_budget
        drain = self._options.drain_on_stop if hurried else self._options.drain
        if (left := self._seconds_left()) is not None:
            drain = min(drain, max(left, self._options.drain_on_stop))
        self._keeping.finish(drain, self._options.drain_on_stop)

    def _seconds_left(self) -> float | None:
        return None if self._job.budget is None else self._job.budget - (self._clock() - self._begin)

    def _halted(self) -> bool:
        """Whether no further step may start."""
        if self._stop.signum is not None:
            return True
        if failed := len(self._tally.failed):
            limit = self._job.max_failures
            if not self._job.continue_on_error or (limit is not None and failed >= limit):
                return True
        return self._tally.out_of_budget

    def _settle(self, position: int, step: Step) -> None:
        """Skip, restore or start one step whose needs are settled, or leave it."""
        if (need := self._missing(step)) is not None:
            self._blocked.add(step.id)  # whatever an older record of it says
            self._tell(events.StepBlocked(position, step.id, need))
            self._schedule.settled(position)
            return
        known = self._journal.records.get(step.id)
        if known is not None and self._left.takes(step, self._tally.ran_ids):
            self._left.put_off(known)
            self._skip(position, Decision(step.id, Action.SKIP, Reason.DONE, NOT_NEEDED), known)
            return
        fault = self._left.make_good(step)
        parts = self._planner.parts(step)
        decision = self._planner.decide(step, parts)
        if fault:
            decision = Decision(step.id, Action.STOP, Reason.ARCHIVE_MISSING, f"{fault}; {_NEXT_TIME}")
        for name in sorted(part for part, value in parts.items() if value in USELESS_INPUTS):
            pattern = name.partition(" ")[2]
            self._tell(events.Warned(f"step '{step.id}': its input {pattern} {USELESS_INPUTS[parts[name]]}"))
        if decision.action is Action.RESTORE:
            decision = self._planner.held.judge(step, self._restore(position, step, decision))
        if decision.action is Action.RUN:
            left = self._seconds_left()
            if left is not None and left <= self._grace:
                self._tally.out_of_budget = True
                return
            self._start(position, step, parts, decision)
            return
        if decision.action is Action.SKIP:
            self._skip(position, decision, self._journal.records[step.id])
            return
        if decision.action is Action.STOP:
            self._hold(position, decision)
            return
        self._schedule.settled(position)

    def _hold(self, position: int, decision: Decision) -> None:
        wanted = not self._options.selection.leaves_out(decision.step)
        if wanted:
            self._tally.held(decision)
        self._tell(events.StepHeld(position, decision, wanted))
        self._schedule.settled(position)

    def _missing(self, step: Step) -> str | None:
        """A step that this one needs and that is not done, where that is not told in other words."""
        if any(need in self._planner.held for need in step.needs):
            return None
        for need in step.needs:
            record = self._journal.records.get(need)
            if need in self._blocked or record is None or record.status is not Status.DONE:
                return need
        return None

    def _skip(self, position: int, decision: Decision, record: Record) -> None:
        if record.step in self._options.selection.back:
            self._tally.restored(record)
            self._tell(events.StepRestored(position, decision, record, 0.0))
        else:
            self._tally.skipped(record)
            self._tell(events.StepSkipped(position, decision, record))
        self._keeping.skipped(self._job.steps[position], record)
        self._schedule.settled(position)

    def _restore(self, position: int, step: Step, decision: Decision) -> Decision:
        record = self._journal.records[step.id]
        begin = self._clock()
        self._tell(events.StepRestoring(position, record))
        try:
            fault, instead = self._put_back(record), Action.RUN
        except TornError as error:  # on half of what it left, it might do something else than it did
            fault, instead = f"{error}; {_NEXT_TIME}", Action.STOP
        if fault:
            return Decision(step.id, instead, Reason.ARCHIVE_MISSING, fault)
        self._planner.restored()
        self._tally.restored(record)
        self._tell(events.StepRestored(position, decision, record, self._clock() - begin))
        return decision

    def _put_back(self, record: Record) -> str:
        return self._keeping.restore(record, self._planner.ownership.known_contents, self._planner.to_stay(record))

    def _start(self, position: int, step: Step, parts: Mapping[str, str], decision: Decision) -> None:
        if self._keeping.is_active:
            try:
                more = self._keeping.begin(position, step, self._planner.digests)
            except TornError as error:  # on half of what its last try left, it might do anything
                text = f"{error}; {_NEXT_TIME}"
                self._hold(position, self._planner.held.judge(step, replace(decision, action=Action.STOP, detail=text)))
                return
            self._tell(events.StepStarted(position, decision, step.command))
            if more is not None:
                self._tell(more)
        parts, notes = self._planner.as_started(step, parts, self._running.values())
        log = log_of(self._job, step)
        self._running[step.id] = step
        pending = Record(
            step=step.id,
            status=Status.RUNNING,
            fingerprint=fingerprint(parts),
            command=step.command,
            parts=parts,
            started=time.time(),
            log=name_in(self._job.root, log) if log else "",
        )
        # Where nothing is recorded of it, it runs again, whether the disk has kept that it started or not.
        meanwhile = not self._keeping.is_active and step.id not in self._journal.records and step.on_crash == "rerun"
        self._journal.start(pending, sync=not meanwhile)
        self._planner.recorded(pending)
        if not self._keeping.is_active:  # told after the start is recorded, so that one wait for the disk is enough
            self._telling.later(events.StepStarted(position, decision, step.command))
        if not meanwhile:
            self._telling.catch_up()
        for note in notes:
            self._tell(events.Warned(f"step '{step.id}' starts from files that are not as they were recorded: {note}"))
        self._keeping.started(step, pending)
        seen = self._planner.handed_on.seen_by(step, secret=True)
        output: IO[bytes] | None = None
        if self._options.jobs > 1:
            output = tempfile.SpooledTemporaryFile(max_size=_SPOOL)  # noqa: SIM115  # closed when it has been shown
        say = _at_once if output is None else self._beside.say
        watcher = StepWatcher(
            log,
            self._write if output is None else _into(output),
            lambda failed, wait: say(lambda: self._tell(events.StepRetried(position, recorded(pending, failed), wait))),
            lambda text: say(lambda: self._tell(events.Warned(text))),
            lambda: self._keeping.save(step, pending),
            lambda number: say(lambda: self._tell(events.TryStarted(position, step.id, number))),
            lambda endpoint: say(lambda: self._tell(events.StepWaiting(position, step.id, endpoint))),
            self._catch_up if output is None else _nothing,
        )
        if output is None:
            self._end(position, step, pending, self._runner.run(step, seen, watcher))
            return
        self._beside.start(
            f"step {step.id}",
            lambda: self._runner.run(step, seen, watcher),
            lambda tried: self._ended_beside(position, step, pending, output, tried),
        )
        self._catch_up()

    def _ended_beside(self, position: int, step: Step, pending: Record, output: IO[bytes], tried: Try) -> None:
        """Show what a step has printed in one piece, and record how it ended."""
        self._tell(events.OutputShown(position))
        with output:
            output.seek(0)
            while data := output.read(_CHUNK):
                self._write(data)
        self._end(position, step, pending, tried)

    def _end(self, position: int, step: Step, pending: Record, tried: Try) -> None:
        """Record how a step ended."""
        for note in tried.notes:
            self._tell(events.Warned(f"step '{step.id}': {note}"))
        record = recorded(pending, tried)
        if record.status is Status.DONE:
            record = self._keeping.seen(step, record, self._planner.digests)
            record = replace(record, result=result_for(record.layer, record.fingerprint))
        self._running.pop(step.id)
        self._tally.ran(record)
        if record.status is Status.INTERRUPTED and self._stop.signum is None:
            self._tally.out_of_budget = True
        self._schedule.settled(position)
        self._planner.recorded(record)
        soon = self._starts_another()
        self._journal.finish(record, sync=not soon)
        self._telling.later(events.StepEnded(position, record))
        if record.status is Status.DONE:
            self._planner.handed_on.put(position, record.values, tried.left.secret)
            self._done.append(step.id)
        if not soon:
            self._catch_up()
        self._keeping.keep(step, record, stopping=self._halted())

    def _catch_up(self) -> None:
        """Do what need not be done before the next step starts, but while it does."""
        self._telling.catch_up()
        while self._done:
            self._lent.progress.forget(self._done.pop())

    def _starts_another(self) -> bool:
        """Whether another step starts at once, so that the disk is waited for once for both."""
        if self._keeping.is_active or not self._schedule or self._halted():
            return False
        return self._planner.needs_no_look(self._job.steps[self._schedule.next()])


def _nothing() -> None:
    """A step that runs beside others begins in a thread of its own."""


def _into(output: IO[bytes]) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        output.write(data)

    return write


def _at_once(message: Callable[[], None]) -> None:
    message()
