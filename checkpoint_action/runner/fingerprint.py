"""What makes a step "the same step", and what differs when it is not."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING

from checkpoint_action.model import AUTO, Reason
from checkpoint_action.runner.hashing import text_digest
from checkpoint_action.runner.ignored import matched_by_none_but
from checkpoint_action.runner.outputs import names_in
from checkpoint_action.runner.patterns import expand
from checkpoint_action.runner.places import place_of
from checkpoint_action.runner.scan import UNREADABLE, entries_of
from checkpoint_action.runner.tracked import tracked_digest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from checkpoint_action.model import Step
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.ignored import IgnoredFiles

__all__ = [
    "NOT_AS_LEFT",
    "TRACKED_INPUTS",
    "USELESS_INPUTS",
    "declared_outputs",
    "explain_change",
    "fingerprint",
    "fingerprint_parts",
]

FORMAT = 1
TRACKED_INPUTS = "input files that git tracks"
"""The part of a fingerprint that stands for all files that git tracks."""

UNSET = "unset"
MISSING_INPUT = "missing"
IGNORED_INPUT = "ignored"

UNREADABLE_INPUT = "cannot be read"
NOT_AS_LEFT = "not as it was left"

USELESS_INPUTS = {
    MISSING_INPUT: "matches no file",
    UNREADABLE_INPUT: "cannot be read, so what is in it does not count",
    IGNORED_INPUT: "matches only files that git ignores; they count where a pattern names them",
}
"""What to say of an input, by its part of a fingerprint."""

_SHOWN = 60  # characters of a command in a message


def fingerprint_parts(
    step: Step,
    root: Path,
    env: Mapping[str, str],
    needs: Mapping[str, str],
    digests: ContentDigests,
    *,
    ignored: IgnoredFiles | None = None,
    looked: dict[tuple[tuple[str, ...], Path], dict[str, str]] | None = None,
    movable: bool = True,
) -> dict[str, str]:
    """Each thing that counts, under a name of its own: ``<kind>`` or ``<kind> <name>``.

    Values of variables are only here as digests.

    :param env: the outside environment, for ``pass-env``.
    :param ignored: what git ignores, which counts only where an input names it.
    :param looked: gets the inputs of steps, and tells those of steps alike, where no file changes meanwhile.
    :param movable: whether the job is the same in another folder.
    :param needs: result of each step it needs, by id.
    """
    cwd = _folder(step.cwd, root if movable else None)
    parts = {"command": _command(step.command), "shell": step.shell, "working-directory": cwd}
    parts.update(declared_outputs(step))
    for name, value in {**step.inherited_env, **step.env}.items():
        parts[f"env {name}"] = text_digest(value)
    for name in step.pass_env:
        parts[f"pass-env {name}"] = text_digest(env[name]) if name in env else UNSET
    if step.inputs is not None:
        wanted = step.inputs, step.cwd
        found = None if looked is None else looked.get(wanted)
        if found is None:
            found = _input_parts(step.inputs, step.cwd, root, digests, ignored)
            if looked is not None:
                looked[wanted] = found
        parts.update(found)
    if step.tracked_inputs:
        parts[TRACKED_INPUTS] = tracked_digest(root, digests, env)
    for name, result in needs.items():
        parts[f"needs {name}"] = result
    return parts


def declared_outputs(step: Step) -> dict[str, str]:
    """What a step declares to leave, as parts of its fingerprint; the order counts where something is taken away.

    What the job says nothing of counts for nothing: the command line and the action then see different things in it.
    """
    if step.outputs_assumed:
        return {}
    if not step.outputs:
        return {"output": "declared as none"}
    patterns = (AUTO,) if step.outputs == AUTO else step.outputs
    ordered = any(pattern.startswith("!") for pattern in patterns)
    return {f"output {pattern}": f"declared {at}" if ordered else "declared" for at, pattern in enumerate(patterns)}


def _input_parts(
    patterns: tuple[str, ...], cwd: Path, root: Path, digests: ContentDigests, ignored: IgnoredFiles | None
) -> dict[str, str]:
    parts: dict[str, str] = {}
    closed: set[str] = set()
    paths, missing = expand(patterns, cwd, through=True, closed=closed)
    literal = {place_of(cwd, pattern) for pattern in patterns} if len(paths) <= len(patterns) else ()
    if ignored is not None and not set(paths).issubset(literal):
        matched = paths  # some are not named by their very path
        paths = ignored.without(matched, patterns, cwd)
        if len(paths) < len(matched):
            useless = matched_by_none_but(patterns, cwd, set(matched).difference(paths), paths)
            parts.update((f"unmatched {pattern}", IGNORED_INPUT) for pattern in useless)
    unknown = []
    for path, name in names_in(root, paths):
        known = digests.remembered(path)
        if known is None:
            unknown.append((path, name))
        else:
            parts[f"input {name}"] = "{:04o} {}".format(*known)
    with closing(entries_of(unknown, digests)) as entries:
        for name, entry in entries:
            if isinstance(entry, OSError) or (entry is not None and entry.content == UNREADABLE):
                parts[f"input {name}"] = UNREADABLE_INPUT
            elif entry is not None and entry.type != "dir":
                parts[f"input {name}"] = f"{entry.mode:04o} {entry.content}"
    parts.update((f"input {name}", UNREADABLE_INPUT) for _path, name in names_in(root, closed))
    parts.update((f"unmatched {pattern}", MISSING_INPUT) for pattern in missing)
    return parts


@lru_cache(maxsize=64)
def _command(text: str) -> str:
    """A command as it counts; of many steps with the same one it is the same text."""
    return text_digest(text)


@lru_cache(maxsize=64)
def _folder(cwd: Path, root: Path | None) -> str:
    """The folder a step runs in, as it counts: from the job's root where it lies in it, as the job then may move."""
    if root is not None and cwd.is_relative_to(root):
        cwd = cwd.relative_to(root)
    return cwd.as_posix()


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def fingerprint(parts: Mapping[str, str]) -> str:
    """SHA-256 over the canonical JSON of the parts and the format number, hex."""
    text = _CANONICAL.encode({"format": FORMAT, "parts": dict(parts)})
    return hashlib.sha256(text.encode()).hexdigest()


_REASONS = (
    ("command", Reason.COMMAND_CHANGED),
    ("shell", Reason.COMMAND_CHANGED),
    ("working-directory", Reason.COMMAND_CHANGED),
    ("env", Reason.ENV_CHANGED),
    ("pass-env", Reason.ENV_CHANGED),
    ("input", Reason.INPUTS_CHANGED),
    ("unmatched", Reason.INPUTS_CHANGED),
    ("needs", Reason.NEEDS_CHANGED),
    ("value", Reason.NEEDS_CHANGED),
    ("output", Reason.OUTPUT_CHANGED),
)


def explain_change(
    old: Mapping[str, str], new: Mapping[str, str], old_command: str, new_command: str
) -> tuple[Reason, str]:
    """The first thing that differs, as a reason and a text ``name: old → new``, with how many more of its kind do."""
    for kind, reason in _REASONS:
        names = sorted(
            name for name in {*old, *new} if name.partition(" ")[0] == kind and old.get(name) != new.get(name)
        )
        if not names:
            continue
        if kind == "command":
            return reason, _commands(old_command, new_command)
        before, after = old.get(names[0]), new.get(names[0])
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        return reason, f"{names[0].partition(' ')[2] or kind}: {_change(kind, before, after)}{more}"
    return Reason.COMMAND_CHANGED, "recorded by another format"


_NOT_BEFORE = {
    "input": "not there",
    "unmatched": "matched, or no input",
    "needs": "not needed",
    "output": "not declared",
}
_NO_LONGER = {
    "input": "not there, or no input any more",
    "unmatched": "matches, or no input any more",
    "needs": "not needed",
    "output": "not declared",
}


def _change(kind: str, before: str | None, after: str | None) -> str:
    if kind in {"env", "pass-env", "value"}:
        return f"{_presence(before)} → {_presence(after)}"
    if kind == "unmatched":
        return "matches now, or is no input any more" if after is None else f"{_short(after)} now"
    if before is not None and after is not None:
        old_mode, space, old_content = before.partition(" ")
        new_mode, _, new_content = after.partition(" ")
        if kind == "input" and space and old_content == new_content:
            return f"mode {old_mode} → {new_mode}"
    old = _NOT_BEFORE.get(kind, "none") if before is None else _short(before)
    new = _NO_LONGER.get(kind, "none") if after is None else _short(after)
    return f"result {old} → {new}" if kind == "needs" else f"{old} → {new}"


def _commands(old: str, new: str) -> str:
    """Both commands, each in one short line that shows where they begin to differ."""
    before, after = " ".join(old.split()), " ".join(new.split())
    if before == after:
        return f"{_cut(before, 0)} → the same with other white space"
    pairs = enumerate(zip(before, after, strict=False))
    common = next((at for at, (one, other) in pairs if one != other), min(len(before), len(after)))
    start = 0 if common < _SHOWN // 2 else common - _SHOWN // 4
    return f"{_cut(before, start)} → {_cut(after, start)}"


def _cut(line: str, start: int) -> str:
    begin = "..." if start else ""
    rest = line[start:]
    return begin + (rest if len(rest) <= _SHOWN else f"{rest[: _SHOWN - 3]}...")


def _presence(value: str | None) -> str:
    if value is None:
        return "not declared"
    if value == UNSET:
        return "unset"
    return "empty" if value == text_digest("") else f"value {value[:8]}"


def _short(value: str) -> str:
    if value in USELESS_INPUTS:
        return USELESS_INPUTS[value].partition(";")[0]
    mode, space, content = value.partition(" ")
    if space and len(content) == 64:
        return f"{mode} sha256 {content[:12]}"
    return value[:12] if len(value) == 64 else value
