"""A job of a GitHub workflow as a job file: its ``run:`` steps; what only GitHub can do becomes a comment."""

from __future__ import annotations

import re
from typing import Any

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.values import parse_limit, parse_shell, unknown_id
from checkpoint_action.starting.draft import Draft, DraftStep, Names

__all__ = ["draft_of_workflow"]

_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_NO_NAME = re.compile(r"[=*?\s\0]")
_UNTOLD = ("if", "continue-on-error")
_LEFT_OUT = ("strategy", "services", "container", "needs", "if", "outputs", "environment")
_POWERSHELL = {"powershell": "powershell -command \". '{0}'\"", "cmd": 'cmd /D /E:ON /V:OFF /S /C "CALL {0}"'}


def draft_of_workflow(text: str, path: str, wanted: str | None) -> Draft:
    """The job file for one job of a workflow.

    :param path: the workflow's, for messages.
    :param wanted: the id of the job; ``None`` takes the first that runs commands.
    :raises UsageError: it is no workflow, has no such job, or the job runs no command.
    """
    workflow = _mapping(_load(text, path))
    jobs = {str(name): _mapping(job) for name, job in _mapping(workflow.get("jobs")).items()}
    if not jobs:
        raise UsageError(f"init {path}: it is no GitHub workflow, it has no jobs", Kind.NO_DRAFT)
    running = [name for name, job in jobs.items() if any("run" in step for step in _steps(job))]
    if wanted is not None and wanted not in jobs:
        raise UsageError(f"init {path}: it has no job '{wanted}'{unknown_id(wanted, jobs)}", Kind.NO_DRAFT)
    name = wanted if wanted is not None else next(iter(running), "")
    if name not in running:
        which = f"its job '{name}' runs" if name else "none of its jobs runs"
        raise UsageError(f"init {path}: {which} a command of its own ('run:')", Kind.NO_DRAFT)
    job = jobs[name]
    notes = [f"'{key}' of the job is left out" for key in _LEFT_OUT if key in job]
    if len(running) > 1:
        others = ", ".join(other for other in running if other != name)
        notes.append(f"this is the job '{name}'; the workflow has more (init --job NAME takes another): {others}")
    env = _env({**_mapping(workflow.get("env")), **_mapping(job.get("env"))}, notes)
    defaults = {**_run_defaults(workflow), **_run_defaults(job)}
    default_shell = "pwsh" if "windows" in str(job.get("runs-on", "")).lower() else "bash -e {0}"  # as GitHub has it
    shell = _shell(str(defaults.get("shell", "")), notes) or default_shell
    steps, last = _draft_steps(_steps(job))
    return Draft(
        job=Names().make(name, "job"),
        source=f"the job '{name}' of {path}",
        steps=tuple(steps),
        notes=tuple(notes),
        env=env,
        shell="" if shell == "bash" else shell,
        directory=_plain(str(defaults.get("working-directory", "")), "working-directory", notes),
        last=tuple(last),
    )


def _load(text: str, path: str) -> object:
    import yaml  # noqa: PLC0415  # only this needs it

    try:
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  # makes nothing but texts, lists and mappings
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(f"init {path}{where}: it is not valid YAML", Kind.NO_DRAFT) from None


def _mapping(value: object) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _steps(job: dict[str, Any]) -> list[dict[str, Any]]:
    steps = job.get("steps")
    return [_mapping(step) for step in steps] if isinstance(steps, list) else []


def _run_defaults(where: dict[str, Any]) -> dict[str, Any]:
    return _mapping(_mapping(where.get("defaults")).get("run"))


def _env(values: dict[str, Any], notes: list[str]) -> dict[str, str]:
    """Variables whose values are there; the others are named."""
    env = {}
    for name, value in values.items():
        if not isinstance(value, str) or _EXPRESSION.search(value):
            notes.append(f"set {name} outside; GitHub fills it in: {value}")
        elif name and not _NO_NAME.search(name):
            env[name] = value
    return env


def _shell(text: str, notes: list[str]) -> str:
    """The shell in our words; empty where there is none, or none that we have."""
    if not text:
        return ""
    text = _POWERSHELL.get(text, text)
    try:
        if not _EXPRESSION.search(text):
            return parse_shell(text)
    except ValueError:
        pass
    notes.append(f"the shell '{text}' is left out")
    return ""


def _plain(text: str, key: str, notes: list[str]) -> str:
    """A text without expressions; one with them is left out and named."""
    if _EXPRESSION.search(text):
        notes.append(f"{key} is left out: {text}")
        return ""
    return text


def _draft_steps(steps: list[dict[str, Any]]) -> tuple[list[DraftStep], list[str]]:
    names = Names()
    drafts = []
    comments: list[str] = []
    for step in steps:
        label = str(step.get("name", "")).strip()
        command = step.get("run")
        if not isinstance(command, str) or not command.strip():
            comments.append(_left_out(step, label))
            continue
        if label:
            comments.append(label)
        comments += [f"left out: {key}: {step[key]}" for key in _UNTOLD if key in step]
        found = dict.fromkeys(match[0] for match in _EXPRESSION.finditer(command))
        if found:
            comments.append(f"GitHub fills these in; write what they stand for: {', '.join(found)}")
        minutes = str(step.get("timeout-minutes", ""))
        draft = DraftStep(
            id=names.make(_id_text(str(step.get("id", "")), label, command)),
            run=command,
            env=_env(_mapping(step.get("env")), comments),
            directory=_plain(str(step.get("working-directory", "")), "working-directory", comments),
            shell=_shell(str(step.get("shell", "")), comments),
            timeout=_timeout(minutes, comments),
            comments=tuple(comments),
        )
        drafts.append(draft)
        comments = []
    return drafts, comments


def _left_out(step: dict[str, Any], label: str) -> str:
    what = f"uses: {step['uses']}" if "uses" in step else "a step without a command"
    return f"left out: {what}" + (f" ({label})" if label else "")


def _timeout(minutes: str, notes: list[str]) -> str:
    if not minutes:
        return ""
    try:
        parse_limit(f"{minutes}m")
    except ValueError:
        notes.append(f"timeout-minutes is left out: {minutes}")
        return ""
    return f"{minutes}m"


def _id_text(given: str, label: str, command: str) -> str:
    """What the id is made of: the step's own, its name, or the words its command begins with."""
    if given:
        return given
    if label:
        return _EXPRESSION.sub("", label).strip().lower()[:60]
    words = re.findall(r"[\w.+-]+", next(line for line in command.splitlines() if line.strip()))
    return "-".join(words[:3])[:40]
