"""Running, planning and looking, from Python."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from checkpoint_action import model
from checkpoint_action.api import definition
from checkpoint_action.api.checking import (
    boolean,
    called,
    environment,
    number,
    of_kind,
    path_text,
    several,
    text,
    whole,
)
from checkpoint_action.api.lacking import tells_of_lacks
from checkpoint_action.api.resolving import resolve_job
from checkpoint_action.api.result import result_of
from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.intent import SIGNING_KEY
from checkpoint_action.jobfile.values import NAME_RULE, is_name, name_from, unknown_id
from checkpoint_action.model import Record, Status
from checkpoint_action.runner.journal import StatePaths
from checkpoint_action.runner.selection import Selection
from checkpoint_action.runner.stop import StopRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from checkpoint_action.api.definition import Job
    from checkpoint_action.api.result import Result
    from checkpoint_action.runner.events import Event
    from checkpoint_action.store_use import StoreUse

__all__ = ["load_job", "plan", "run", "status"]


@tells_of_lacks
def load_job(path: str | os.PathLike[str], *, cwd: str | os.PathLike[str] | None = None) -> model.Job:
    """The job of a job file, for :func:`run`, :func:`plan` and :func:`status`.

    :param cwd: the folder that its paths start from, instead of the current one.
    :raises UsageError: it cannot be read, or (:class:`~checkpoint_action.errors.JobFileError`) is not as documented.
    """
    from checkpoint_action.jobfile import resolve  # noqa: PLC0415  # brings YAML

    folder, source = _absolute(cwd, "cwd"), Path(path_text("path", path))
    name = name_from(source.absolute().parent.name, "job")
    text = resolve.read_job_file(source, os.fspath(path))
    return resolve.load_job(text, os.fspath(path), resolve.JobDefaults(name=name, root=folder, base=folder))


@tells_of_lacks
def run(
    job: Job | model.Job,
    *,
    state_dir: str | os.PathLike[str] = ".",
    jobs: int = 1,
    only: Collection[str] = (),
    first: str | None = None,
    force: bool | Collection[str] = False,
    verify: Literal["full", "stat"] = "full",
    logs: bool = True,
    wait_lock: float | None = 0,
    store: str | None = None,
    scope: Literal["run", "commit", "content"] | None = None,
    run_id: str | None = None,
    fail_on_store_error: bool = False,
    env: Mapping[str, str] | None = None,
    write: Callable[[bytes], Any] | None = None,
    on_event: Callable[[Event], Any] | None = None,
    stop: StopRequest | None = None,
    handle_signals: bool = False,
    grace: float = 10.0,
) -> Result:
    """Run a job: only what is left of it, and record each step as it ends.

    It may be called from any thread. It prints nothing and never exits. Whatever it raises, steps that were recorded as
    done stay done, and nothing that it started runs on.

    :param state_dir: folder of the state files; it is made where it is not there.
    :param jobs: how many steps may run at once.
    :param only: ids of steps to run whatever is recorded of them, and no others.
    :param first: id of a step to run, with all that stand after it, whatever is recorded of them.
    :param force: whether to begin with fresh state; or ids of steps that run though they are done.
    :param verify: ``"full"`` reads all files, ``"stat"`` trusts those whose size, times and inode are as recorded.
    :param logs: whether each step's output is kept in a file beside the state.
    :param wait_lock: seconds to wait for another run of this job to end; ``None`` for ever.
    :param store: URL of a store, from which finished steps come and to which they go.
    :param scope: how far what is in the store may serve: see the command line's ``--scope``.
    :param run_id: what ties runs on several machines together, with the scope ``run``.
    :param fail_on_store_error: whether a failure of the store is one of the run.
    :param env: the environment of the steps, instead of our own.
    :param write: gets the steps' output in pieces as it comes, without the values of declared secrets; without it the
        output goes to the logs alone.
    :param on_event: gets each event of :mod:`checkpoint_action.runner.events`, in the calling thread. What it or
        ``write`` raises ends the run and is raised here.
    :param stop: ask it from another thread (``stop.request()``) to end the run: the running steps are ended, the state
        is saved, and ``exit_code`` is 128 and the signal's number.
    :param handle_signals: whether SIGINT, SIGTERM and SIGHUP end the run in that way; for the main thread only.
    :param grace: seconds between asking a step to end and killing it.
    :returns: how it ended, also when steps failed; :meth:`Result.check` makes an error of that.
    :raises UsageError: the job or what is asked cannot be as it is.
    :raises StateError: the state cannot be read, or is a newer version's.
    :raises StateWriteError: the state cannot be written.
    :raises LockHeldError: another run holds this job.
    :raises StoreError: the store failed, and that was to be an error.
    """
    # Only what runs needs all this.
    from checkpoint_action.report.hiding import Hiding  # noqa: PLC0415
    from checkpoint_action.runner.digest_index import kept_digests  # noqa: PLC0415
    from checkpoint_action.runner.engine import Engine  # noqa: PLC0415
    from checkpoint_action.runner.events import Warned  # noqa: PLC0415
    from checkpoint_action.runner.guardian import Guardian  # noqa: PLC0415
    from checkpoint_action.runner.masks import secret_texts  # noqa: PLC0415
    from checkpoint_action.runner.opening import opened  # noqa: PLC0415
    from checkpoint_action.runner.run_options import RunOptions  # noqa: PLC0415
    from checkpoint_action.runner.signals import stop_on_signals  # noqa: PLC0415

    whole("jobs", jobs, 1)
    number("grace", grace)
    if wait_lock is not None:
        number("wait_lock", wait_lock)
    boolean("logs", logs)
    boolean("handle_signals", handle_signals)
    called("write", write)
    called("on_event", on_event)
    if stop is not None:
        of_kind("stop", stop, StopRequest, "a StopRequest")
    if verify not in ("full", "stat"):
        raise UsageError(f"verify must be full or stat, not '{verify}'", Kind.BAD_VALUE)
    if handle_signals and threading.current_thread() is not threading.main_thread():
        raise UsageError(
            "handle_signals is for the main thread; leave it out, and end the run with stop", Kind.EXCLUSIVE
        )
    ready = _resolved(job, state_dir)
    around = dict(os.environ) if env is None else environment(env)
    use = _store_use(ready, around, store, scope, run_id, fail_on_store_error=fail_on_store_error)
    if use is not None:
        ready = use.prepared(ready, around)
    around.pop(SIGNING_KEY, None)  # no business of the steps
    paths = StatePaths(_absolute(state_dir), ready.name)
    selection = _selection(ready, only, first, force)
    stopping = StopRequest() if stop is None else stop
    listen = Hiding(_discard if on_event is None else on_event, secret_texts(ready.secrets, around))

    def warn(*texts: str) -> None:
        for message in texts:
            listen(Warned(message))

    with ExitStack() as closing:
        ready, journal = closing.enter_context(
            opened(
                ready,
                paths,
                selection,
                around,
                wait=wait_lock,
                logs=logs,
                warn=lambda warnings: warn(*warnings),
            )
        )
        guardian = Guardian()
        guardian.start()
        closing.callback(guardian.stop)
        closing.enter_context(stop_on_signals(stopping) if handle_signals else nullcontext())
        index = kept_digests(paths.index, lambda: stopping.signum is not None, lost=warn) if verify == "stat" else None
        checkpoints = None
        if use is not None:
            from checkpoint_action.store_use import kept  # noqa: PLC0415  # only where it is asked for

            checkpoints = closing.enter_context(
                kept(use, ready, paths, journal, around, listen=listen, stop=stopping, fresh=selection.everything)
            )
        engine = Engine(
            ready,
            journal,
            around,
            listener=listen,
            write=_discard if write is None else write,
            stop=stopping,
            options=RunOptions(selection=selection, jobs=jobs, mask_output=True, grace=grace),
            guardian=guardian,
            state=paths,
            digests=None if index is None else closing.enter_context(index),
            checkpoints=checkpoints,
        )
        ended = engine.run()
        journal.close()
        return result_of(ended, engine.handed_on(), journal.records)


@tells_of_lacks
def plan(
    job: Job | model.Job,
    *,
    state_dir: str | os.PathLike[str] = ".",
    only: Collection[str] = (),
    first: str | None = None,
    force: bool | Collection[str] = False,
    verify: Literal["full", "stat"] = "full",
    env: Mapping[str, str] | None = None,
) -> model.Plan:
    """What :func:`run` would do with each step now, and why. Writes nothing; the arguments are those of :func:`run`.

    :raises UsageError: the job or what is asked cannot be as it is.
    :raises StateError: the state cannot be read.
    """
    from checkpoint_action.runner.looking import foreseen  # noqa: PLC0415  # only what this needs

    ready = _resolved(job, state_dir)
    paths = StatePaths(_absolute(state_dir), ready.name)
    around = dict(os.environ) if env is None else environment(env)
    return foreseen(ready, paths, around, _selection(ready, only, first, force), trust_stat=verify == "stat").plan


@tells_of_lacks
def status(job: Job | model.Job | str, *, state_dir: str | os.PathLike[str] = ".") -> dict[str, Record]:
    """What is recorded of each step, by id: those of the job in its order, then others that are on record.

    A step that has never started is ``pending``. Writes nothing, and may be called in the midst of a run.

    :param job: the job, or its name, where only what is recorded is of interest.
    :param state_dir: folder of the state files.
    :raises UsageError: the job cannot be as it is.
    :raises StateError: the state cannot be read.
    """
    from checkpoint_action.runner.looking import recorded  # noqa: PLC0415  # only what this needs

    found: dict[str, Record] = {}
    if isinstance(job, str):
        name = text("the job's name", job)
        if not is_name(name):
            raise UsageError(f"job name '{name}' is not valid; use {NAME_RULE}", Kind.BAD_NAME)
    else:
        ready = _resolved(job, state_dir)
        name = ready.name
        found = {step.id: Record(step.id, Status.PENDING, "", step.command) for step in ready.steps}
    found.update(recorded(StatePaths(_absolute(state_dir), name)).records)
    return found


def _absolute(folder: str | os.PathLike[str] | None, what: str = "state_dir") -> Path:
    try:
        here = Path.cwd()
    except OSError as error:
        raise UsageError(
            f"the current folder cannot be used: {error.strerror}; go to another first", Kind.FOLDER
        ) from None
    return here if folder is None else here / path_text(what, folder)


def _resolved(job: Job | model.Job, state_dir: str | os.PathLike[str]) -> model.Job:
    if isinstance(job, model.Job):
        ready = job
    else:
        ready = resolve_job(of_kind("the job", job, definition.Job, "a Job, or what load_job gives"), _absolute(None))
    # State that lies elsewhere does not move with the folder, and may serve several.
    return replace(ready, movable=_absolute(state_dir).resolve().is_relative_to(ready.root.resolve()))


def _store_use(
    job: model.Job,
    env: Mapping[str, str],
    store: str | None,
    scope: str | None,
    run_id: str | None,
    *,
    fail_on_store_error: bool,
) -> StoreUse | None:
    """What is asked of a store, in the words of the command line."""
    if store is None:
        if scope or run_id or fail_on_store_error:
            raise UsageError("scope, run_id and fail_on_store_error are for a store; give one", Kind.EXCLUSIVE)
        return None
    if not text("store", store).strip():
        raise UsageError("store is empty; give the URL of a store, or leave it out", Kind.STORE_URL)
    from argparse import Namespace  # noqa: PLC0415  # only where it is asked for

    from checkpoint_action.store_use import store_use_of  # noqa: PLC0415

    asked = Namespace(
        store=store,
        scope=scope,
        run_id=run_id,
        fail_on_store_error=fail_on_store_error,
        read_only=False,
        exclude=(),
        max_size=None,
    )
    return store_use_of(asked, job, env)


def _selection(job: model.Job, only: Collection[str], first: str | None, force: bool | Collection[str]) -> Selection:
    ids = [step.id for step in job.steps]
    wanted = _ids("only", only, ids)
    forced = () if isinstance(force, bool) else _ids("force", force, ids)
    beginning = () if first is None else _ids("first", [first], ids)
    everything = force is True
    if wanted and beginning:
        raise UsageError("only and first exclude each other; name all steps that are to run in only", Kind.EXCLUSIVE)
    if wanted and everything:
        raise UsageError("only runs its steps whatever is recorded of them; leave force out", Kind.EXCLUSIVE)
    for name in forced:
        if wanted and name not in wanted:
            raise UsageError(f"force: '{name}' is a step that only leaves out; name it there instead", Kind.EXCLUSIVE)
    selected = wanted or (tuple(ids[ids.index(beginning[0]) :]) if beginning else ())
    named = frozenset([*forced, *wanted, *beginning])
    return Selection(everything, frozenset(forced), frozenset(selected), only=bool(wanted), named=named)


def _ids(what: str, given: Collection[str], valid: Collection[str]) -> tuple[str, ...]:
    alone = isinstance(given, str)
    names = tuple(text(what, one) for one in ([given] if alone else several(what, given, "a list of ids")))
    for name in names:
        if name not in valid:
            raise UsageError(
                f"{what}: '{name}' is the id of no step{unknown_id(name, valid, 'give a list of ids')}",
                Kind.NO_SUCH_STEP,
            )
    return names


def _discard(_given: object) -> None:
    """Nobody listens."""
