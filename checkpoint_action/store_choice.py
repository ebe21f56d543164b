"""Which store the action uses: what the inputs ask for, and what the runner offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action import __version__
from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.store.fallback import FallbackStore
from checkpoint_action.store.github_artifact import GithubArtifactStore
from checkpoint_action.store.github_cache import GithubCacheStore
from checkpoint_action.toolkit.artifact import ArtifactClient, FindBy
from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.errors import ToolkitError
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.rest import DEFAULT_API_URL
from checkpoint_action.toolkit.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.action_inputs import ActionInputs
    from checkpoint_action.store.base import Store

__all__ = ["RETENTION_DAYS", "choose_store", "log_artifacts", "takes_only"]

RETENTION_DAYS = 7
"""Days that artifacts are kept when nothing is said: as long as the cache keeps what nobody uses. A run can be re-run
for 30 days, but hardly is after a week, and each day of an artifact is paid for."""

_LOW_TRUST = frozenset({"pull_request_target", "issue_comment"})
"""Events that run in the context of the default branch, often on what a stranger proposes. What is made there must not
serve another run; that of a fork's own ``pull_request`` cannot, as its cache is its own."""

_TOLD = ("GITHUB_SERVER_URL", "GITHUB_RETENTION_DAYS", "ACT")
_LOST = "steps are not kept for a re-run on another machine"


def choose_store(
    inputs: ActionInputs,
    env: Mapping[str, str],
    runtime: Mapping[str, str],
    *,
    order: Callable[[str], tuple[object, ...] | None],
    warn: Callable[[str], None],
    tell: Callable[[str], None],
    mask: Callable[[str], None],
) -> Store | None:
    """The store for this run, ``None`` for none.

    ``auto`` is the cache where it can be read and written, with artifacts for the moment that it takes nothing; both
    where it can only be read; artifacts where it cannot be read.

    :param env: the ``GITHUB_*`` variables.
    :param runtime: the ``ACTIONS_*`` values that the runner gives to JavaScript actions only.
    :param order: what a key tells of its age.
    :param warn: told of what a person should know.
    :param tell: told of what is as it should be.
    :param mask: gets what must not appear in the log.
    :raises UsageError: there is not what the inputs ask for.
    """
    if inputs.store == "none":
        return None
    if not inputs.store_url:
        return _offered_store(inputs, env, runtime, order=order, warn=warn, tell=tell, mask=mask)
    from checkpoint_action.store.urls import store_for  # noqa: PLC0415  # few jobs have a store of their own

    if takes_only(inputs, env):
        tell(f"{_stranger(env.get('GITHUB_EVENT_NAME', ''), 'the store')}: steps are only put back from it")
    return store_for(inputs.store_url, order=order) if inputs.scope == "run" else store_for(inputs.store_url)


def _offered_store(
    inputs: ActionInputs,
    env: Mapping[str, str],
    runtime: Mapping[str, str],
    *,
    order: Callable[[str], tuple[object, ...] | None],
    warn: Callable[[str], None],
    tell: Callable[[str], None],
    mask: Callable[[str], None],
) -> Store | None:
    """One that the runner offers."""
    try:
        offered = Runtime.resolve({**runtime, **{name: env.get(name, "") for name in _TOLD}})
    except ToolkitError as error:
        raise UsageError(str(error), Kind.NO_STORE) from None
    if offered.token:
        mask(offered.token)
    http = HttpClient(user_agent=f"checkpoint-run/{__version__}", env=env)
    no_cache = "" if _has_cache(offered) else "no cache service was handed to this action"
    no_artifacts = _missing_artifacts(offered)
    wanted = {"cache": no_cache, "artifact": no_artifacts, "auto": no_cache and no_artifacts}[inputs.store]
    if wanted:
        said = f"{no_cache}, and no artifacts: {no_artifacts}" if inputs.store == "auto" else wanted
        if inputs.fail_on_store_error or inputs.store != "auto":
            raise UsageError(f"{said}: {_LOST}; use the input 'store: none' if that is meant", Kind.NO_STORE)
        warn(f"{said}: {_LOST}")
        return None
    event = env.get("GITHUB_EVENT_NAME", "")
    low_trust = _is_low_trust(inputs, env)
    if inputs.store == "cache" or (inputs.store == "auto" and no_artifacts):
        if not low_trust:
            return GithubCacheStore(Cache(offered, http, mask=mask))
        if no_artifacts:
            warn(f"{_stranger(event)}, and there are no artifacts: {no_artifacts}: {_LOST}")
            return None
    artifacts = GithubArtifactStore(
        ArtifactClient(offered, http, mask=mask, fallback=_fallback(inputs, env)),
        retention_days=_retention(inputs, offered, warn),
        order=order,
    )
    if inputs.store == "artifact":
        return artifacts
    short = "" if inputs.scope == "run" else f"; they serve re-runs of this run only, not 'scope: {inputs.scope}'"
    if no_cache or not _can_read(offered):
        why = no_cache or "the cache may not be read here"
        (warn if short else tell)(f"{why}: steps are kept as artifacts of the run{short}")
        return artifacts
    read_only = low_trust or not _can_write(offered)
    if read_only:
        said = _stranger(event) if low_trust else "the cache is read-only here"
        (warn if short else tell)(f"{said}: steps are kept as artifacts of the run{short}")
    return FallbackStore(
        GithubCacheStore(Cache(offered, http, mask=mask)),
        artifacts,
        order=order,
        moved=lambda text: warn(f"{text}{short}"),
        read_only=read_only,
    )


def log_artifacts(
    env: Mapping[str, str], runtime: Mapping[str, str], mask: Callable[[str], None]
) -> ArtifactClient | None:
    """What puts other files than checkpoints into artifacts of the run; ``None`` where there are none.

    :param env: the ``GITHUB_*`` variables.
    :param runtime: the ``ACTIONS_*`` values that the runner gives to JavaScript actions only.
    :param mask: gets what must not appear in the log.
    """
    try:
        offered = Runtime.resolve({**runtime, **{name: env.get(name, "") for name in _TOLD}})
    except ToolkitError:
        return None
    if _missing_artifacts(offered):
        return None
    return ArtifactClient(offered, HttpClient(user_agent=f"checkpoint-run/{__version__}", env=env), mask=mask)


def takes_only(inputs: ActionInputs, env: Mapping[str, str]) -> bool:
    """Whether nothing may be put into a store that others trust: what a stranger's code makes must not serve them."""
    return bool(inputs.store_url) and _is_low_trust(inputs, env)


def _is_low_trust(inputs: ActionInputs, env: Mapping[str, str]) -> bool:
    return env.get("GITHUB_EVENT_NAME", "") in _LOW_TRUST and inputs.scope != "run"


def _stranger(event: str, place: str = "the cache") -> str:
    return f"a run for {event} may work with a stranger's code, so what it makes is not put into {place}"


def _has_cache(offered: Runtime) -> bool:
    """Whether there may be a cache: at act's address for artifacts there is none."""
    return offered.cache_service is not None and not (offered.act and not offered.cache_url)


def _missing_artifacts(offered: Runtime) -> str:
    """Why there are no artifacts; empty where there are."""
    if offered.enterprise:
        return "this server has no artifact service of version 4"
    if not offered.results_url or not offered.token or not offered.run_backend_id or not offered.job_backend_id:
        return "no artifact service was handed over either"
    return ""


def _can_read(offered: Runtime) -> bool:
    """Whether reading may be let: tokens of act and Gitea only tell of writing, and mean both."""
    granted = any(scope.readable or scope.writable for scope in offered.scopes)
    return offered.may_read_cache and (granted or not offered.scopes)


def _can_write(offered: Runtime) -> bool:
    return offered.may_write_cache and (not offered.scopes or any(scope.writable for scope in offered.scopes))


def _fallback(inputs: ActionInputs, env: Mapping[str, str]) -> FindBy | None:
    repository = env.get("GITHUB_REPOSITORY", "")
    if not inputs.token or not repository or not inputs.run_id.isdecimal():
        return None
    return FindBy(repository, int(inputs.run_id), inputs.token, env.get("GITHUB_API_URL") or DEFAULT_API_URL)


def _retention(inputs: ActionInputs, offered: Runtime, warn: Callable[[str], None]) -> int:
    days, most = inputs.retention_days or RETENTION_DAYS, offered.retention_days
    if not most or days <= most:
        return days
    if inputs.retention_days:
        warn(f"input retention-days: artifacts are kept for at most {most} days here, not {days}")
    return most
