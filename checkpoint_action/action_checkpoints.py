"""The checkpoints that a use of the action has: under which keys, in which store, and within which limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.events import StepsKept, Warned
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.keys import KeyScheme, job_slug, shared_slug
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.store.no_store import NoStore
from checkpoint_action.store_choice import choose_store, takes_only
from checkpoint_action.toolkit import core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from checkpoint_action.action_inputs import ActionInputs
    from checkpoint_action.model import Job
    from checkpoint_action.runner.events import Listener
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store.base import Store

__all__ = ["checkpoints_in", "keys_of", "reachable_store"]

_RESTORE_SECONDS = 900.0


def keys_of(inputs: ActionInputs, job: Job) -> KeyScheme:
    """The keys of what is kept of a job."""
    reach = {"run": f"run{inputs.run_id}", "commit": f"commit{inputs.commit}", "content": "content"}[inputs.scope]
    return KeyScheme(reach, _slug_in_store(inputs, job), inputs.run_id, inputs.attempt, shared=inputs.share)


def _slug_in_store(inputs: ActionInputs, job: Job) -> str:
    """The job's name that no other shares, or all who are meant to: in a store of their own people share it too."""
    if inputs.share and inputs.store_url:
        return shared_slug(job.name, *inputs.machine)
    return job_slug(job.name, inputs.store_identity)


def reachable_store(
    inputs: ActionInputs,
    env: Mapping[str, str],
    runtime: Mapping[str, str],
    keys: KeyScheme,
    *,
    listen: Listener,
    mask: Callable[[str], None],
) -> Store | None:
    """The store for this run, ``None`` for none.

    :param runtime: the ``ACTIONS_*`` values that the runner gives to JavaScript actions only.
    :param mask: gets what must not appear in the log.
    :raises UsageError: there is not what the inputs ask for.
    """
    if fault := _no_reach(inputs, env):
        listen(Warned(fault))
        return None
    return choose_store(
        inputs,
        env,
        runtime,
        order=keys.origin,
        warn=lambda text: listen(Warned(text)),
        tell=core.info,
        mask=mask,
    )


def _no_reach(inputs: ActionInputs, env: Mapping[str, str]) -> str:
    """Why nothing can be kept: what the scope is bound to is not known, and all runs would share it."""
    name = {"run": "GITHUB_RUN_ID", "commit": "GITHUB_SHA"}.get(inputs.scope, "")
    if inputs.store == "none" or not name or env.get(name):
        return ""
    return f"{name} is not set, so 'scope: {inputs.scope}' cannot be told apart: steps are not kept for a re-run"


def checkpoints_in(
    store: Store | None,
    inputs: ActionInputs,
    env: Mapping[str, str],
    keys: KeyScheme,
    folder: Path,
    *,
    listen: Listener,
    stop: StopRequest,
    budget: float | None,
) -> Checkpoints:
    """Without a store too: what the steps leave is seen all the same, and missed when it goes.

    :param folder: an empty one of our own, for archives.
    :param budget: seconds that the job may take, if that is limited.
    """
    kept_in = NoStore() if store is None else store
    return Checkpoints(
        kept_in,
        keys,
        folder,
        Workspace.at(inputs.workspace, Excludes((*inputs.exclude, *_own_patterns(inputs, kept_in)))),
        warn=lambda text: listen(Warned(text)),
        kept=lambda done, unfinished, size: listen(StepsKept(done, kept_in.name, size, unfinished)),
        required=inputs.fail_on_store_error and store is not None,
        stop=stop,
        restore_seconds=_RESTORE_SECONDS if budget is None else min(_RESTORE_SECONDS, budget / 2),
        signing_key=inputs.signing_key,
        max_size=inputs.max_size,
        missed=lambda reach: _tell_of_miss(inputs, reach),
        off="no store is used" if store is None else "",
        read_only=inputs.mode == "plan" or takes_only(inputs, env),
    )


def _own_patterns(inputs: ActionInputs, store: Store) -> tuple[str, ...]:
    """What excludes a store that lies in the workspace."""
    if not inputs.store_url:
        return ()
    from checkpoint_action.store.urls import patterns_of  # noqa: PLC0415  # few jobs have a store of their own

    return patterns_of(store, inputs.workspace)


def _tell_of_miss(inputs: ActionInputs, reach: str) -> None:
    """Say that there is no checkpoint, and where was looked, unless there cannot be one."""
    if (inputs.scope, inputs.attempt) != ("run", "1"):
        core.info(f"no checkpoint of this job was found{f' ({reach})' if reach else ''}")
