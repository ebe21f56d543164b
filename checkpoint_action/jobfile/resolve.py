"""A job file's document resolved into a :class:`~checkpoint_action.model.Job`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import JobFileError, Kind, UsageError
from checkpoint_action.jobfile.document import Value, parse
from checkpoint_action.jobfile.fields import (
    check_not_secret,
    endpoint_of,
    env_of,
    folder_of,
    leftovers_of,
    on_crash_of,
    outputs_of,
    patterns_of,
    retry_of,
    shell_of,
    variables_of,
)
from checkpoint_action.jobfile.ordering import CircleError, in_order
from checkpoint_action.jobfile.values import NAME_RULE, SHELLS, is_name, unknown_id
from checkpoint_action.model import Job, Retry, Step

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

__all__ = ["SHELLS", "JobDefaults", "load_job", "load_steps", "read_job_file"]

JOB_KEYS = (
    "job",
    "shell",
    "env",
    "pass-env",
    "secrets",
    "working-directory",
    "continue-on-error",
    "max-failures",
    "budget",
    "defaults",
    "steps",
)
STEP_KEYS = (
    "id",
    "run",
    "shell",
    "env",
    "pass-env",
    "working-directory",
    "needs",
    "inputs",
    "outputs",
    "timeout",
    "idle-timeout",
    "retry",
    "wait-online",
    "interactive",
    "leftovers",
    "always",
    "partial",
    "on-crash",
)
_NO_ENV: dict[str, str] = {}  # one for all steps: there may be many
DEFAULTS_KEYS = ("timeout", "idle-timeout", "retry", "wait-online")


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """What a face (CLI or action) lays below the file: the file's own words win.

    :param root: absolute folder that outputs are recorded relative to.
    :param base: absolute folder that ``working-directory`` starts from.
    """

    name: str
    root: Path
    base: Path
    shell: str = "bash"
    outputs: tuple[str, ...] | Literal["auto"] = ()
    timeout: float | None = None
    retry: Retry = Retry()
    continue_on_error: bool = False
    max_failures: int | None = None


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a step inherits.

    :param base: where ``working-directory`` starts from, also a step's own: it replaces the job's, as on GitHub.
    """

    base: Path
    cwd: Path
    shell: str
    outputs: tuple[str, ...] | Literal["auto"]
    timeout: float | None
    retry: Retry
    idle_timeout: float | None = None
    wait_online: str = ""
    env: dict[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def read_job_file(path: Path, source: str) -> str:
    """The text of a job file.

    :raises UsageError: it cannot be read.
    :raises JobFileError: it is not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no job file {source}; check its name and folder", Kind.NO_JOB_FILE) from None
    except OSError as error:
        what = "it is a folder; name the file in it" if path.is_dir() else error.strerror
        raise UsageError(f"cannot read the job file {source}: {what}", Kind.NO_JOB_FILE) from None
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")  # without a byte order mark
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = "the job file is not UTF-8; save it as UTF-8"
        raise JobFileError(message, source=source, line=line, column=column, kind=Kind.NOT_YAML) from None


def load_job(text: str, source: str, defaults: JobDefaults) -> Job:
    """Resolve a whole job file.

    :param text: the YAML text.
    :param source: the file's name, for messages.
    :raises JobFileError: anything in it is not as documented.
    """
    document = parse(text, source, "the job file")
    fields = document.fields(JOB_KEYS)
    name = defaults.name
    if "job" in fields:
        name = fields["job"].text()
        if not is_name(name):
            fields["job"].fail(f"job name '{name}' is not valid; use {NAME_RULE}", Kind.BAD_NAME)
    if "steps" not in fields:
        document.fail("the job file has no steps; add 'steps:' with at least one 'id' and 'run'", Kind.MISSING_KEY)
    scope = _Scope(
        base=defaults.base,
        cwd=folder_of(fields, defaults.base, defaults.base),
        shell=shell_of(fields["shell"]) if "shell" in fields else defaults.shell,
        outputs=defaults.outputs,
        timeout=defaults.timeout,
        retry=defaults.retry,
        env=env_of(fields["env"]) if "env" in fields else {},
        pass_env=variables_of(fields["pass-env"]) if "pass-env" in fields else (),
        secrets=variables_of(fields["secrets"]) if "secrets" in fields else (),
    )
    if "pass-env" in fields:
        check_not_secret(fields["pass-env"], scope.secrets)
    if "defaults" in fields:
        given = fields["defaults"].fields(DEFAULTS_KEYS)
        if "timeout" in given:
            scope = replace(scope, timeout=given["timeout"].limit())
        if "idle-timeout" in given:
            scope = replace(scope, idle_timeout=given["idle-timeout"].limit())
        if "wait-online" in given:
            scope = replace(scope, wait_online=endpoint_of(given["wait-online"]))
        if "retry" in given:
            scope = replace(scope, retry=retry_of(given["retry"], scope.retry))
    return Job(
        name=name,
        root=defaults.root,
        steps=_steps(fields["steps"], scope),
        secrets=scope.secrets,
        continue_on_error=(
            fields["continue-on-error"].boolean() if "continue-on-error" in fields else defaults.continue_on_error
        ),
        max_failures=fields["max-failures"].integer(1) if "max-failures" in fields else defaults.max_failures,
        budget=fields["budget"].limit() if "budget" in fields else None,
    )


def load_steps(text: str, source: str, defaults: JobDefaults) -> Job:
    """Resolve a bare list of steps (the action's ``steps`` input) into a job.

    :raises JobFileError: anything in it is not as documented.
    """
    scope = _Scope(defaults.base, defaults.base, defaults.shell, defaults.outputs, defaults.timeout, defaults.retry)
    return Job(
        name=defaults.name,
        root=defaults.root,
        steps=_steps(parse(text, source, "steps"), scope),
        continue_on_error=defaults.continue_on_error,
        max_failures=defaults.max_failures,
    )


def _steps(value: Value, scope: _Scope) -> tuple[Step, ...]:
    if value.is_null:
        value.fail("steps is empty; add at least one '- id: NAME' with 'run: COMMAND' below it", Kind.MISSING_KEY)
    items = value.items()
    if not items:
        value.fail("there are no steps; add at least one 'id' and 'run'", Kind.MISSING_KEY)
    steps: dict[str, Step] = {}
    ids: dict[str, tuple[str, int]] = {}
    wanted: dict[str, list[Value]] = {}
    last: str | None = None
    for number, item in enumerate(items, 1):
        step, id_value, needs = _step(item.named(f"step {number}"), scope, last)
        folded = step.id.casefold()
        if folded in ids:
            first, line = ids[folded]
            also = "" if first == step.id else f" (as '{first}'; upper and lower case count as one)"
            id_value.fail(
                f"step id '{step.id}' is there twice, first in line {line}{also}; rename one", Kind.DUPLICATE_STEP
            )
        ids[folded] = step.id, id_value.node.line
        steps[step.id] = step
        if needs:
            wanted[step.id] = needs
        last = step.id
    for name, needs in wanted.items():
        for need in needs:
            if need.text() not in steps:
                need.fail(
                    f"step '{name}' needs '{need.text()}', which is no step{unknown_id(need.text(), steps)}",
                    Kind.UNKNOWN_NEED,
                )
    return _in_order(steps, wanted)


def _in_order(steps: dict[str, Step], needs: dict[str, list[Value]]) -> tuple[Step, ...]:
    """The steps as written, except that a step comes after all it needs."""
    try:
        ordered = in_order({step.id: step.needs for step in steps.values()})
    except CircleError as error:
        # A default only ever points back, so at least one link of a circle was written.
        link = next(need for step in error.steps for need in needs.get(step, ()) if need.text() in error.steps)
        link.fail(str(error), Kind.CIRCLE)
    return tuple(steps[name] for name in ordered)


def _step(item: Value, scope: _Scope, last: str | None) -> tuple[Step, Value, list[Value]]:
    known = item.peek("id")
    if is_name(known):
        item = item.named(f"step '{known}'")
    fields = item.fields(STEP_KEYS)
    for key in ("id", "run"):
        if key not in fields:
            item.fail(f"{item.what} has no '{key}'", Kind.MISSING_KEY)
    name = fields["id"].text()
    if not is_name(name):
        fields["id"].fail(f"step id '{name}' is not valid; use {NAME_RULE}", Kind.BAD_NAME)
    if fields["run"].is_list:
        fields["run"].fail(
            f"step '{name}': run must be a text, not a list; write 'run: |' and a command in each line below"
        )
    command = fields["run"].text()
    if not command.strip():
        fields["run"].fail(f"step '{name}' has an empty command")
    if "pass-env" in fields:
        check_not_secret(fields["pass-env"], scope.secrets)
    needs = fields["needs"].members() if "needs" in fields else []
    default = () if last is None else (last,)
    step = Step(
        id=name,
        command=command,
        shell=shell_of(fields["shell"]) if "shell" in fields else scope.shell,
        cwd=folder_of(fields, scope.base, scope.cwd),
        env=env_of(fields["env"]) if "env" in fields else _NO_ENV,
        inherited_env=scope.env,
        pass_env=_merge(scope.pass_env, variables_of(fields["pass-env"]) if "pass-env" in fields else ()),
        inputs=patterns_of(fields["inputs"]) if "inputs" in fields else None,
        outputs=outputs_of(fields["outputs"]) if "outputs" in fields else scope.outputs,
        outputs_assumed="outputs" not in fields,
        needs=tuple(need.text() for need in needs) if "needs" in fields else default,
        timeout=fields["timeout"].limit() if "timeout" in fields else scope.timeout,
        idle_timeout=fields["idle-timeout"].limit() if "idle-timeout" in fields else scope.idle_timeout,
        wait_online=endpoint_of(fields["wait-online"]) if "wait-online" in fields else scope.wait_online,
        interactive=fields["interactive"].boolean() if "interactive" in fields else False,
        leftovers=leftovers_of(fields["leftovers"]) if "leftovers" in fields else "leave",
        retry=retry_of(fields["retry"], scope.retry) if "retry" in fields else scope.retry,
        always=fields["always"].boolean() if "always" in fields else False,
        partial=patterns_of(fields["partial"]) if "partial" in fields else (),
        on_crash=on_crash_of(fields["on-crash"]) if "on-crash" in fields else "rerun",
    )
    return step, fields["id"], needs


def _merge(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
