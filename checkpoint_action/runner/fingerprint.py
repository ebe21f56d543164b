"""What makes a step "the same step", and what differs when it is not."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from checkpoint_action.model import AUTO, Reason
from checkpoint_action.runner.hashing import text_digest
from checkpoint_action.runner.outputs import expand, name_in
from checkpoint_action.runner.scan import entry_of
from checkpoint_action.runner.tracked import tracked_digest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from checkpoint_action.model import Step
    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["MISSING_INPUT", "explain_change", "fingerprint", "fingerprint_parts"]

FORMAT = 1
UNSET = "unset"
MISSING_INPUT = "missing"


def fingerprint_parts(
    step: Step,
    root: Path,
    env: Mapping[str, str],
    needs: Mapping[str, str],
    digests: ContentDigests,
    *,
    movable: bool = True,
) -> dict[str, str]:
    """Each thing that counts, under a name of its own: ``<kind>`` or ``<kind> <name>``.

    Values of variables are only here as digests.

    :param env: the outside environment, for ``pass-env``.
    :param movable: whether the job is the same in another folder.
    :param needs: result of each step it needs, by id.
    """
    cwd = step.cwd.as_posix()
    if movable and step.cwd.is_relative_to(root):
        cwd = step.cwd.relative_to(root).as_posix()
    parts = {"command": text_digest(step.command), "shell": step.shell, "working-directory": cwd}
    parts.update((f"output {pattern}", "declared") for pattern in ([AUTO] if step.outputs == AUTO else step.outputs))
    for name, value in {**step.inherited_env, **step.env}.items():
        parts[f"env {name}"] = text_digest(value)
    for name in step.pass_env:
        parts[f"pass-env {name}"] = text_digest(env[name]) if name in env else UNSET
    if step.inputs is not None:
        paths, missing = expand(step.inputs, step.cwd, through=True)
        for path in paths:
            part = f"input {name_in(root, path)}"
            try:
                entry = entry_of(path, path, digests)
            except OSError:
                parts[part] = "cannot be read"
                continue
            if entry is not None and entry.type != "dir":
                parts[part] = f"{entry.mode:04o} {entry.content}"
        parts.update((f"input {pattern}", MISSING_INPUT) for pattern in missing)
    if step.tracked_inputs:
        parts["input files that git tracks"] = tracked_digest(root, digests)
    for name, result in needs.items():
        parts[f"needs {name}"] = result
    return parts


def fingerprint(parts: Mapping[str, str]) -> str:
    """SHA-256 over the canonical JSON of the parts and the format number, hex."""
    text = json.dumps({"format": FORMAT, "parts": dict(parts)}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


_REASONS = (
    ("command", Reason.COMMAND_CHANGED),
    ("shell", Reason.COMMAND_CHANGED),
    ("working-directory", Reason.COMMAND_CHANGED),
    ("env", Reason.ENV_CHANGED),
    ("pass-env", Reason.ENV_CHANGED),
    ("input", Reason.INPUTS_CHANGED),
    ("needs", Reason.NEEDS_CHANGED),
    ("output", Reason.OUTPUT_CHANGED),
)


def explain_change(
    old: Mapping[str, str], new: Mapping[str, str], old_command: str, new_command: str
) -> tuple[Reason, str]:
    """The first thing that differs, as a reason and a text ``name: old → new``."""
    for kind, reason in _REASONS:
        names = sorted(name for name in {*old, *new} if name.partition(" ")[0] == kind)
        for name in names:
            before, after = old.get(name), new.get(name)
            if before == after:
                continue
            if kind == "command":
                return reason, f"{_one_line(old_command)} → {_one_line(new_command)}"
            if kind == "output":
                return reason, f"{name.partition(' ')[2]}: {before or 'not declared'} → {after or 'not declared'}"
            label = name.partition(" ")[2] or name
            if kind in {"env", "pass-env"}:
                return reason, f"{label}: {_presence(before)} → {_presence(after)}"
            return reason, f"{label}: {_short(before)} → {_short(after)}"
    return Reason.COMMAND_CHANGED, "recorded by another format"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def _presence(value: str | None) -> str:
    if value is None:
        return "not declared"
    if value == UNSET:
        return "unset"
    return "empty" if value == text_digest("") else f"value {value[:8]}"


def _short(value: str | None) -> str:
    if value is None:
        return "not there"
    mode, space, content = value.partition(" ")
    if space and len(content) == 64:
        return f"{mode} sha256 {content[:12]}"
    return value[:12] if len(value) == 64 else value
