"""One step from its first try to its last, in whatever thread."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from checkpoint_action.model import AUTO, Layer, Status, Values
from checkpoint_action.runner.attempts import Left, judge, run_tries
from checkpoint_action.runner.descendants import MARKER
from checkpoint_action.runner.masks import MaskWatcher, hide, without_secrets
from checkpoint_action.runner.online import LONGEST_WAIT, wait_online
from checkpoint_action.runner.outputs import collect
from checkpoint_action.runner.process import Command, End, Limits, Outcome, RunCommand, run_command
from checkpoint_action.runner.redact import secret_values
from checkpoint_action.runner.save_requests import VARIABLE as SAVE
from checkpoint_action.runner.shells import shell_command
from checkpoint_action.runner.tee import Tee, open_to_write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from checkpoint_action.model import Job, Step
    from checkpoint_action.runner.attempts import Try
    from checkpoint_action.runner.guardian import Guardian
    from checkpoint_action.runner.handed_on import Seen
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.lent import Lent
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.runner.value_files import ValueFiles

__all__ = ["StepRunner", "StepWatcher"]

_PROTECTED = ("GITHUB_", "RUNNER_")
"""Of the variables with these beginnings, those that are there already keep their value, whatever a step hands on."""


@dataclass(frozen=True, slots=True)
class StepWatcher:
    """What a running step tells, from whatever thread it runs in.

    :param log: the file that its output goes to besides; empty where it goes to none.
    :param write: gets its output.
    :param retrying: told of a failed try that another follows, and the seconds before it.
    :param warn: told of what a person should know.
    :param save: makes its progress durable now, and says what it did; called from a thread of its own.
    :param trying: told of each further try as it begins, by its number.
    :param waiting: told of the ``HOST:PORT`` that is waited for before one.
    :param started: told of each try once its shell runs, before it gets any output: for what may take its time.
    """

    log: str
    write: Callable[[bytes], None]
    retrying: Callable[[Try, float], None]
    warn: Callable[[str], None]
    save: Callable[[], str]
    trying: Callable[[int], None] = lambda _number: None
    waiting: Callable[[str], None] = lambda _endpoint: None
    started: Callable[[], None] = lambda: None


class _How(NamedTuple):
    write: Callable[[bytes], None]
    begun: Callable[[], None]
    save: Callable[[], str]


class StepRunner:
    """Runs the steps of one job, several at once where the caller has threads for it.

    :param env: the environment that steps start with.
    :param lent: folders and files for the steps.
    :param grace: seconds between asking a step to end and killing it.
    :param terminal: whether a step's output is a terminal.
    :param mask_output: whether secrets are kept out of the output too, not only out of logs.
    :param run: starts a command and waits for it.
    :param guardian: ends the steps when we die.
    :param seconds_left: seconds until the run has to stop; ``None`` when it never has to.
    """

    def __init__(
        self,
        job: Job,
        env: Mapping[str, str],
        lent: Lent,
        *,
        stop: StopRequest,
        digests: ContentDigests,
        grace: float,
        terminal: bool = False,
        mask_output: bool = False,
        run: RunCommand = run_command,
        guardian: Guardian | None = None,
        seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._job = job
        self._env = env
        self._lent = lent
        self._stop = stop
        self._digests = digests
        self._grace = grace
        self._terminal = terminal
        self._mask_output = mask_output
        self._run = run
        self._guardian = guardian
        self._seconds_left = seconds_left
        self._secrets = secret_values(job.secrets, env)
        self._protected = frozenset(name for name in env if name.startswith(_PROTECTED))

    def run(self, step: Step, seen: Seen, watcher: StepWatcher) -> Try:
        """Try a step until it is done, not to be retried, or out of tries; the last try.

        :param seen: what earlier steps hand on to it.
        """
        return run_tries(
            step.retry,
            lambda number: self._try(step, seen, number, watcher),
            lambda seconds: self._wait(step, seconds, watcher),
            lambda failed, seconds: self._announce(step, failed, seconds, watcher),
        )

    def _announce(self, step: Step, failed: Try, seconds: float, watcher: StepWatcher) -> None:
        if self._fits(seconds):
            watcher.retrying(failed, seconds)
        else:
            watcher.warn(f"step '{step.id}': the budget leaves no time for another try")

    def _fits(self, seconds: float) -> bool:
        """Whether a try may start in so many seconds."""
        left = self._seconds_left()
        return left is None or left - self._grace > seconds

    def _wait(self, step: Step, seconds: float, watcher: StepWatcher) -> bool:
        """Wait before another try; whether there is none to be."""
        if not self._fits(seconds) or self._stop.wait(seconds):
            return True
        if step.wait_online:
            left = self._seconds_left()
            limit = LONGEST_WAIT if left is None else min(LONGEST_WAIT, left - self._grace)

            def waiting() -> None:
                watcher.warn(f"step '{step.id}': waiting for {step.wait_online} to answer before the next try")
                watcher.waiting(step.wait_online)

            wait_online(step.wait_online, self._stop, limit=limit, waiting=waiting)
        return self._stop.signum is not None or not self._fits(0)

    def _try(self, step: Step, seen: Seen, number: int, watcher: StepWatcher) -> Try:
        if number > 1:
            watcher.trying(number)
        started = time.time()
        token = os.urandom(8).hex()
        masks = MaskWatcher()
        tee = Tee(
            watcher.write,
            lambda: self._open_log(step, watcher),
            lambda error: self._lost(step, error, watcher),
            self._secrets,
            mask_output=self._mask_output,
        )

        def write(data: bytes) -> None:
            masks.write(data)
            try:
                tee.write(data)
            except OSError as error:  # of whoever gets the output; it says nothing of the step
                raise _TakerError from error

        def begun() -> None:
            tee.open()
            try:
                watcher.started()
            except OSError as error:
                raise _TakerError from error

        if self._guardian is not None:
            self._guardian.watch(token)
        try:
            how = _How(write, begun, watcher.save)
            outcome, files = self._run_command(step, seen, how, number=number, token=token)
        except _TakerError as error:
            raise (error.__cause__ or error) from None
        finally:
            self._lent.desk.close_for(token)
            if self._guardian is not None:
                self._guardian.unwatch(token)
            tee.close()
        masks.close()
        secrets = [*masks.values, *(value.decode("utf-8", "surrogateescape") for value in self._secrets)]
        try:
            tried = judge(
                outcome,
                number,
                started,
                step.timeout,
                lambda: self._left(step, files, secrets),
                idle_timeout=step.idle_timeout,
                stopped_by=self._stop.name,
            )
            if tried.status is not Status.DONE and files is not None:
                summary, _withheld = without_secrets(Values(summary=files.summary()), secrets)
                tried = replace(tried, left=Left(values=summary))
            if tried.error or tried.notes:
                tried = replace(
                    tried, error=hide(tried.error, secrets), notes=tuple(hide(note, secrets) for note in tried.notes)
                )
        finally:
            if files is not None:
                self._lent.folder.give_back(files, alone=outcome.alone)
        return tried

    def _run_command(
        self,
        step: Step,
        seen: Seen,
        how: _How,
        *,
        number: int,
        token: str,
    ) -> tuple[Outcome, ValueFiles | None]:
        """Run the step's text to its end; with the files that it was lent, where it came that far."""
        files: ValueFiles | None = None
        try:
            _check_folder(step.cwd)
            files = self._lent.folder.take_value_files()
            env = self._environment(step, seen, token, files)
            env |= {"CHECKPOINT_TRY": str(number), SAVE: self._lent.desk.open_for(token, how.save)}
            argv, script = shell_command(step, env, self._lent.scripts)
            command = Command(argv, step.cwd, env, self._terminal, step.interactive)
            outcome = self._run(command, self._limits(step), how.write, self._stop, started=how.begun)
            if script is not None:
                self._lent.scripts.give_back(script, alone=outcome.alone)
            if not outcome.alone:
                self._lent.progress.keep_apart(step.id)
        except FolderError as error:
            outcome = Outcome(End.NOT_STARTED, None, None, 0.0, (str(error),))
        except OSError as error:
            outcome = Outcome(End.NOT_STARTED, None, None, 0.0, (f"cannot prepare its files: {error}",))
        return outcome, files

    def _environment(self, step: Step, seen: Seen, token: str, files: ValueFiles) -> dict[str, str]:
        """All variables of a try: the outside's, the job's, what earlier steps hand on, the step's, and ours.

        :raises OSError: a file that one of them names cannot be made.
        """
        handed = {name: value for name, value in seen.env.items() if name not in self._protected}
        env = {**self._env, **step.inherited_env, **handed, **seen.variables(), **step.env}
        path = self._lent.folder.search_path(env.get("PATH"), seen)
        if path is not None:
            env["PATH"] = path
        return {
            **env,
            **files.variables(),
            "CHECKPOINT_JOB": self._job.name,
            "CHECKPOINT_STEP": step.id,
            "CHECKPOINT_DIR": self._lent.progress.make(step.id),
            "CHECKPOINT_STEPS": str(self._lent.folder.outputs_file(seen, token)),
            MARKER: token,
        }

    def _left(self, step: Step, files: ValueFiles | None, secrets: list[str]) -> Left:
        values = Values() if files is None else files.read()
        kept, withheld = without_secrets(values, secrets)
        return Left(self._declared(step), kept, withheld, values if withheld else None)

    def _limits(self, step: Step) -> Limits:
        return Limits(step.timeout, step.idle_timeout, self._seconds_left(), self._grace, step.leftovers == "kill")

    def _open_log(self, step: Step, watcher: StepWatcher) -> int | None:
        if not watcher.log:
            return None
        try:
            folder = os.path.dirname(watcher.log)  # noqa: PTH120  # for speed
            if folder and not os.path.isdir(folder):  # noqa: PTH112
                os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
            return open_to_write(watcher.log)
        except OSError as error:
            watcher.warn(f"step '{step.id}': cannot write its log {watcher.log}: {error.strerror}")
            return None

    def _lost(self, step: Step, error: OSError, watcher: StepWatcher) -> None:
        watcher.warn(f"step '{step.id}': its log {watcher.log} ends early: {error.strerror}")

    def _declared(self, step: Step) -> Layer:
        if step.outputs == AUTO or not step.outputs:
            return Layer()
        return collect(step.outputs, step.cwd, self._job.root, self._digests)


class _TakerError(Exception):
    """Who gets the output has failed in a way that looks like a fault of ours."""


class FolderError(Exception):
    """A step has no folder to run in."""


def _check_folder(folder: Path) -> None:
    """Say so before the system does, which would name the shell.

    :raises FolderError: it is not there, or no folder.
    """
    if not os.path.isdir(folder):  # noqa: PTH112  # for speed
        raise FolderError(f"its working directory {folder} is not there")
