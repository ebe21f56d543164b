"""The action's inputs and the workflow around it, resolved once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.values import (
    NAME_RULE,
    is_name,
    name_from,
    nearest,
    parse_duration,
    parse_limit,
    parse_shell,
    parse_size,
)
from checkpoint_action.model import AUTO, Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.jobfile.resolve import JobDefaults

__all__ = ["ActionInputs", "Logs", "Scope", "StoreChoice", "read_inputs"]

Scope = Literal["run", "commit", "content"]
StoreChoice = Literal["auto", "cache", "artifact", "url", "none"]
Logs = Literal["on-failure", "always", "never"]
Mode = Literal["run", "plan"]

_PREFIX = "CPR_INPUT_"


@dataclass(frozen=True, slots=True)
class ActionInputs:
    """What the caller asks for.

    :param steps: text of the ``steps`` input, or empty.
    :param file: path of the ``file`` input as given, or empty.
    :param workspace: absolute folder whose changes are kept.
    :param base: absolute folder the steps start in.
    :param mode: whether steps run, or only what is to run is found out.
    :param only: id of the one step that is to run here, with what it needs; or empty.
    :param share: whether other uses of the action share this one's checkpoints.
    :param needed_only: whether only what a step that runs needs is put back.
    :param identity: JSON value that tells this use of the action from every other in the repository.
    :param store_identity: the same, but for those that share checkpoints.
    :param machine: operating system and processor, as the runner calls them.
    :param temporary: folder for state and archives.
    :param store_url: of the store, where that is one outside of GitHub; else empty.
    :param retention_days: how long artifacts are kept; ``None``: not said.
    :param signing_key: what archives are signed with, or ``None``.
    :param max_size: bytes that the files of a step may have to be kept, or ``None``.
    :param trust_stat: whether a file with the same size and times is taken to have the same content.
    :param token: for GitHub's REST interface, or empty.
    :param budget: seconds after which the action stops on purpose, or ``None``; the job file's own is overruled.
    :param jobs: how many steps may run at once.
    :param logs: whose logs become an artifact.
    :param cleanup: whether checkpoints are deleted once all is done.
    """

    steps: str
    file: str
    scope: Scope
    store: StoreChoice
    store_url: str
    workspace: Path
    base: Path
    temporary: Path
    defaults: JobDefaults
    force: bool
    block_commands: bool
    exclude: tuple[str, ...]
    fail_on_store_error: bool
    retention_days: int | None
    signing_key: bytes | None = field(repr=False)
    max_size: int | None
    trust_stat: bool
    token: str = field(repr=False)
    budget: float | None
    jobs: int
    logs: Logs
    summary: bool
    cleanup: bool
    mode: Mode
    only: str
    share: bool
    needed_only: bool
    identity: Any
    store_identity: Any
    machine: tuple[str, str]
    run_id: str
    attempt: str
    commit: str


def read_inputs(env: Mapping[str, str]) -> ActionInputs:
    """Resolve the inputs.

    :param env: ``CPR_INPUT_*``, ``GITHUB_*`` and ``RUNNER_*`` variables.
    :raises UsageError: an input is not usable; the text names it and the nearest valid word.
    """
    from checkpoint_action.jobfile.resolve import JobDefaults  # noqa: PLC0415  # needs the YAML package

    def given(name: str) -> str:
        return env.get(_PREFIX + name.upper().replace("-", "_"), "").strip()

    workspace = Path(env.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    base = (workspace / given("working-directory")).resolve()
    if not base.is_dir():
        raise UsageError(
            f"input working-directory: there is no folder '{given('working-directory')}' in the workspace",
            Kind.INPUT_FOLDER,
        )
    if not base.is_relative_to(workspace):
        raise UsageError(
            f"input working-directory: '{given('working-directory')}' is not in the workspace", Kind.INPUT_FOLDER
        )
    shell = given("shell") or "bash"
    try:
        parse_shell(shell)
    except ValueError as error:
        raise UsageError(f"input shell: {error}", Kind.INPUT) from None
    job = given("job")
    if job and not is_name(job):
        raise UsageError(f"input job: '{job}' is not valid; use {NAME_RULE}", Kind.INPUT)
    share = given("share")
    mode = cast("Mode", _word("mode", given, ("run", "plan")))
    _check_fan_out(given, mode)
    retry = Retry(max=_whole("retry", given, 0) or 0)
    backoff = _seconds("backoff", given)
    if backoff is not None:
        retry = Retry(max=retry.max, backoff=backoff)
    scope = cast("Scope", _word("scope", given, ("run", "commit", "content")))
    url = given("store") if "://" in given("store") else ""
    store = cast("StoreChoice", "url" if url else _word("store", given, ("auto", "cache", "artifact", "none")))
    if store == "artifact" and scope != "run":
        raise UsageError(
            f"input store: a run finds only its own artifacts, so they cannot serve 'scope: {scope}'; "
            "use 'store: cache', or 'scope: run'",
            Kind.INPUT,
        )
    return ActionInputs(
        steps=env.get(_PREFIX + "STEPS", "") if given("steps") else "",
        file=given("file"),
        scope=scope,
        store=store,
        store_url=url,
        workspace=workspace,
        base=base,
        temporary=Path(env.get("RUNNER_TEMP") or workspace.parent).resolve(),
        defaults=JobDefaults(
            name=job or name_from(share or env.get("GITHUB_JOB", ""), "job"),
            root=workspace,
            base=base,
            shell=shell,
            outputs=cast("Literal['auto']", AUTO),
            timeout=_seconds("timeout", given, parse_limit),
            retry=retry,
            continue_on_error=_flag("continue-on-error", given),
            max_failures=_whole("max-failures", given, 1),
        ),
        force=_flag("force", given),
        block_commands=_word("workflow-commands", given, ("pass", "block")) == "block",
        exclude=tuple(line.strip() for line in given("exclude").splitlines() if line.strip()),
        fail_on_store_error=_flag("fail-on-store-error", given),
        retention_days=_whole("retention-days", given, 1),
        signing_key=given("signing-key").encode() or None,
        max_size=_size("max-size", given),
        trust_stat=_word("verify", given, ("full", "stat")) == "stat",
        token=given("token"),
        budget=_seconds("budget", given, parse_limit),
        jobs=_whole("jobs", given, 1) or 1,
        logs=cast("Logs", _word("logs", given, ("on-failure", "always", "never"))),
        summary=_flag("summary", given, default=True),
        cleanup=_word("cleanup", given, ("never", "on-success")) == "on-success",
        mode=mode,
        only=given("only"),
        share=bool(share),
        needed_only=_word("restore", given, ("all", "needed")) == "needed",
        identity=_identity(env, given),
        store_identity=_shared_identity(env, given) if share else _identity(env, given),
        machine=(env.get("RUNNER_OS", ""), env.get("RUNNER_ARCH", "")),
        run_id=env.get("GITHUB_RUN_ID", "0"),
        attempt=env.get("GITHUB_RUN_ATTEMPT", "1"),
        commit=env.get("GITHUB_SHA", ""),
    )


def _identity(env: Mapping[str, str], given: Callable[[str], str]) -> dict[str, Any]:
    """The job's identity: two legs, two uses in a job and two operating systems never meet."""
    workflow = env.get("GITHUB_WORKFLOW_REF", "").partition("@")[0] or env.get("GITHUB_WORKFLOW", "")
    return {
        "repository": env.get("GITHUB_REPOSITORY", ""),
        "workflow": workflow,
        "job": env.get("GITHUB_JOB", ""),
        "matrix": _json(given("matrix")),
        "name": given("job"),
        "use": given("use"),
        "os": env.get("RUNNER_OS", ""),
        "arch": env.get("RUNNER_ARCH", ""),
    }


def _shared_identity(env: Mapping[str, str], given: Callable[[str], str]) -> dict[str, Any]:
    """The identity of all uses with one name: workflow file, job, matrix values and step apart. Systems never meet."""
    return {
        "repository": env.get("GITHUB_REPOSITORY", ""),
        "share": given("share"),
        "name": given("job"),
        "os": env.get("RUNNER_OS", ""),
        "arch": env.get("RUNNER_ARCH", ""),
    }


def _check_fan_out(given: Callable[[str], str], mode: Mode) -> None:
    """See that inputs for a job on several machines go together.

    :raises UsageError: they do not.
    """
    plan = "mode: plan" if mode == "plan" else ""
    part = plan or ("only" if given("only") else "")
    if plan and given("only"):
        raise UsageError(
            "input only: it is for the jobs that run what 'mode: plan' has found; leave one of them out", Kind.INPUT
        )
    if part and not given("share"):
        raise UsageError(
            f"input {part} needs the input share: a name that all jobs have which work on these steps", Kind.INPUT
        )
    if part and _flag("force", given):
        raise UsageError(
            f"input force: with {part} every step would run again in each job; use it where the whole job runs",
            Kind.INPUT,
        )
    if part and given("cleanup") == "on-success":
        raise UsageError(
            f"input cleanup: with {part} the job is not at its end; use it where the whole job runs", Kind.INPUT
        )


def _json(text: str) -> Any:  # a matrix holds any JSON
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return text


def _word(name: str, given: Callable[[str], str], valid: tuple[str, ...]) -> str:
    word = given(name) or valid[0]
    if word not in valid:
        raise UsageError(
            f"input {name}: unknown value '{word}'{nearest(word, valid)}; valid are {', '.join(valid)}", Kind.INPUT
        )
    return word


def _flag(name: str, given: Callable[[str], str], *, default: bool = False) -> bool:
    word = given(name).lower()
    if not word:
        return default
    if word == "false":
        return False
    if word == "true":
        return True
    raise UsageError(f"input {name}: '{word}' is neither true nor false", Kind.INPUT)


def _seconds(name: str, given: Callable[[str], str], parse: Callable[[str], float] = parse_duration) -> float | None:
    if not given(name):
        return None
    try:
        return parse(given(name))
    except ValueError as error:
        raise UsageError(f"input {name}: {error}", Kind.INPUT) from None


def _size(name: str, given: Callable[[str], str]) -> int | None:
    if not given(name):
        return None
    try:
        return parse_size(given(name))
    except ValueError as error:
        raise UsageError(f"input {name}: {error}", Kind.INPUT) from None


def _whole(name: str, given: Callable[[str], str], least: int) -> int | None:
    text = given(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < least:
        raise UsageError(f"input {name}: '{text}' is not a whole number from {least}", Kind.INPUT)
    return int(text)
