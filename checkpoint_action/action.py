"""The GitHub action: the other face. Only here are workflow variables, outputs and exit codes."""

from __future__ import annotations

import time
import traceback
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action import __version__
from checkpoint_action.action_checkpoints import checkpoints_in, keys_of, reachable_store
from checkpoint_action.action_end import Closing, unless_stopped
from checkpoint_action.action_fanout import FanOut, only_part, set_level
from checkpoint_action.action_inputs import ActionInputs, read_inputs
from checkpoint_action.action_job import job_of_inputs, with_tracked_inputs
from checkpoint_action.action_outputs import hand_on, set_outputs
from checkpoint_action.errors import Kind, StateWriteError, UsageError, failure_of, kind_of_write
from checkpoint_action.jobfile.values import log_name
from checkpoint_action.model import Status
from checkpoint_action.report.action_reports import ActionReports
from checkpoint_action.report.hiding import Hiding
from checkpoint_action.report.log_bundle import likely_secrets
from checkpoint_action.report.terminal import StepOutput
from checkpoint_action.report.words import duration, worth_saying
from checkpoint_action.runner.descendants import adopt_orphans
from checkpoint_action.runner.digest_index import kept_digests
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.events import Warned
from checkpoint_action.runner.guardian import Guardian
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.keys import job_slug
from checkpoint_action.runner.lock import JobLock
from checkpoint_action.runner.masks import hide, secret_texts
from checkpoint_action.runner.progress import discard
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.shells import check_shells
from checkpoint_action.runner.signals import stop_on_signals
from checkpoint_action.runner.stop import StopRequest
from checkpoint_action.store.temporary import TemporaryFolder
from checkpoint_action.toolkit import core
from checkpoint_action.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from checkpoint_action.model import Job, Record
    from checkpoint_action.runner.events import Listener
    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["main"]

_GRACE = 5.0  # seconds; the runner kills us ten seconds after its first signal
_DRAIN_ON_STOP = 3.0
_LEAST_BUDGET = 1.0  # seconds; what is used up before the steps begin still ends as a used-up budget
_STOPPED = 128
_BUG = 70
_NAMED = 20  # steps in a sentence
# What only we may have: the service variables that act and Gitea give to every step, and our own inputs.
_PRIVATE = ("ACTIONS_RUNTIME_", "ACTIONS_RESULTS_URL", "ACTIONS_CACHE_", "CPR_")


def main(env: Mapping[str, str], runtime: Mapping[str, str]) -> int:
    """Run the action.

    :param env: the process environment with the inputs.
    :param runtime: the ``ACTIONS_*`` values that the runner gives to JavaScript actions only.
    :returns: the exit code of the workflow step.
    """
    try:
        return _run(env, runtime)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:  # the third ending: a fault of ours, with all that is needed to report it
            _report_bug()
    # Out of the handlers what was going on is let go of, which may be what there is no memory for.
    if failure is not None:
        core.error(str(failure), title=f"checkpoint-run {failure.code}")
    with suppress(MemoryError):  # what has failed is told
        set_outputs(env, None)
    return _BUG if failure is None else failure.exit_code


def _report_bug() -> None:
    with suppress(OSError):  # nobody reads the log any more
        core.info(f"checkpoint-run {__version__}\n{traceback.format_exc()}")
        core.error(
            "this is a bug in checkpoint-run; please report it with the lines above",
            title=f"checkpoint-run {Kind.BUG.value}",
        )


def _run(env: Mapping[str, str], runtime: Mapping[str, str]) -> int:
    inputs = read_inputs(env)
    job = only_part(job_of_inputs(inputs), inputs.only)
    secrets = [*secret_texts(job.secrets, env), inputs.token, (inputs.signing_key or b"").decode()]
    secrets = [secret for secret in secrets if secret]
    for secret in secrets:
        core.set_secret(secret)
    if inputs.scope == "content":
        job = with_tracked_inputs(job, env)
    steps_env = {name: value for name, value in env.items() if not name.startswith(_PRIVATE)}
    check_shells(job.steps, steps_env)
    slug = job_slug(job.name, inputs.identity)
    folder = _state_folder(inputs, slug)
    paths = StatePaths(folder, job.name)
    job = replace(job, steps=tuple(replace(step, log=step.log or paths.logs / log_name(step.id)) for step in job.steps))
    use = _Use(inputs, env, runtime, job, slug, paths, secrets)
    lock = JobLock(paths.lock)
    lock.acquire()
    try:
        with _folder_for_archives(paths) as archives:
            return _run_locked(use, lock, steps_env, archives)
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class _Use:
    """One use of the action: what it was told, and what it is about.

    :param runtime: the ``ACTIONS_*`` values that the runner gives to JavaScript actions only.
    :param slug: the job's name on this machine, that no other use of the action shares.
    :param secrets: values that must not show.
    """

    inputs: ActionInputs
    env: Mapping[str, str]
    runtime: Mapping[str, str] = field(repr=False)
    job: Job
    slug: str
    paths: StatePaths
    secrets: Sequence[str] = field(repr=False)


def _run_locked(use: _Use, lock: JobLock, steps_env: Mapping[str, str], folder: Path) -> int:
    """Run the job.

    :param folder: an empty one of our own, for archives.
    """
    begin = time.monotonic()
    inputs, job, paths = use.inputs, use.job, use.paths
    stop = StopRequest()
    guardian = Guardian()
    output = StepOutput(1, shared=True, stop=stop)
    reports = ActionReports(
        output,
        [*use.secrets, *_likely(job, steps_env)],
        block_commands=inputs.block_commands,
        at_once=inputs.jobs > 1,
    )
    listen = Hiding(reports.tell, use.secrets)
    try:
        with stop_on_signals(stop), _digests(inputs, paths, stop, listen) as digests:
            keys = keys_of(inputs, job)
            store = reachable_store(inputs, use.env, use.runtime, keys, listen=listen, mask=reports.log.mask)
            checkpoints = checkpoints_in(
                store, inputs, use.env, keys, folder, listen=listen, stop=stop, budget=job.budget
            )
            journal = Journal(paths, load(paths), lock=lock, lost=lambda text: listen(Warned(text)))
            reports.log.done_here = frozenset(
                step for step, record in journal.records.items() if record.status is Status.DONE
            )
            if inputs.force:
                discard(paths.progress)
            else:
                journal.merge(checkpoints.learn([step.id for step in job.steps]))
            machines = FanOut(job, journal.records, checkpoints, keys, steps_env)
            if inputs.mode == "plan":
                set_level(use.env, *machines.plan(listen, lambda text: hide(text, use.secrets)))
                return 0 if stop.signum is None else _STOPPED + stop.signum
            selection = machines.selection(everything=inputs.force, needed_only=inputs.needed_only)
            _tell_of_done(job, journal.records)
            journal.open()
            adopt_orphans()
            guardian.start()
            if job.budget is not None:  # what looking into the store took is part of it
                job = replace(job, budget=max(_LEAST_BUDGET, job.budget - (time.monotonic() - begin)))
            engine = Engine(
                job,
                journal,
                steps_env,
                listener=listen,
                write=reports.write,
                stop=stop,
                options=RunOptions(
                    selection=selection,
                    jobs=inputs.jobs,
                    grace=_GRACE,
                    drain_on_stop=_DRAIN_ON_STOP,
                ),
                checkpoints=checkpoints,
                guardian=guardian,
                state=paths,
                digests=digests,
            )
            ended = engine.run()
            journal.close()
            handed = engine.handed_on()
            closing = Closing(inputs, use.env, use.runtime, job, listen, use.secrets, folder)
            hurried = stop.signum is not None  # the runner kills us before more is through
            closing.write_summary(
                reports.summary.told,
                reports.tail.of,
                handed.values(),
                kept=store is not None,
                look=not hurried,
            )
            hand_on(use.env, handed, listen)
            values = {step: journal.records[step].values for step in handed}
            set_outputs(use.env, ended, values, state=str(paths.snapshot))
            if not hurried:
                name = f"checkpoint-run-logs-{use.slug}-{inputs.attempt}"
                logs = partial(closing.upload_logs, journal.records, ended.ran, reports.tail.masked, name)
                if artifact := unless_stopped(logs, stop):
                    with suppress(ToolkitError):
                        core.set_output("artifact", artifact, env=use.env)
                if inputs.cleanup and ended.exit_code == 0:
                    unless_stopped(partial(closing.clean_up, keys.prefix, store), stop)
            return 0 if ended.incomplete else ended.exit_code
    finally:
        guardian.stop()


def _likely(job: Job, env: Mapping[str, str]) -> set[str]:
    """Values that are secrets by their names."""
    return {*likely_secrets(env)}.union(
        *(likely_secrets(some) for step in job.steps for some in (step.env, step.inherited_env))
    )


def _tell_of_done(job: Job, records: Mapping[str, Record]) -> None:
    """Say at the beginning how much was done before; what has changed since runs all the same."""
    done = [step.id for step in job.steps if step.id in records and records[step.id].status is Status.DONE]
    if done:
        seconds = sum(records[step].duration for step in done)
        took = f", which took {duration(seconds)}" if worth_saying(seconds) else ""
        more = f" and {len(done) - _NAMED} more" if len(done) > _NAMED else ""
        names = ", ".join(done[:_NAMED]) + more
        core.info(f"{len(done)} of {len(job.steps)} steps were done before{took}: {names}")


def _state_folder(inputs: ActionInputs, slug: str) -> Path:
    folder = inputs.temporary / "checkpoint-run" / slug
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make {folder}: {error.strerror}; RUNNER_TEMP must be writable", Kind.INPUT_FOLDER
        ) from None
    return folder


@contextmanager
def _folder_for_archives(paths: StatePaths) -> Iterator[Path]:
    """Have an empty folder for archives beside the state, and the one for logs.

    :raises StateWriteError: they cannot be made.
    """
    try:
        paths.logs.mkdir(mode=0o700, exist_ok=True)
        made = TemporaryFolder("archives-", paths.logs.parent)
    except OSError as error:
        raise StateWriteError(f"cannot make {error.filename}: {error.strerror}", kind_of_write(error)) from None
    with made as name:
        yield Path(name)


def _digests(
    inputs: ActionInputs, paths: StatePaths, stop: StopRequest, listen: Listener
) -> AbstractContextManager[ContentDigests | None]:
    """What is known of files from an earlier use on this machine, where that is to be trusted."""
    if not inputs.trust_stat:
        return nullcontext()
    return kept_digests(paths.index, lambda: stop.signum is not None, lost=lambda text: listen(Warned(text)))
