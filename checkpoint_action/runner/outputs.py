"""What a step declares to leave: found, recorded and looked at again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import Entry, Layer, Reason
from checkpoint_action.runner.globs import has_magic, matcher, static_prefix
from checkpoint_action.runner.scan import UNREADABLE, entry_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["MissingOutputError", "collect", "expand", "locate", "name_in", "result_of", "verify"]


KEPT_MODE = 0o777
"""The mode bits that are kept: set-id and sticky bits are never put back."""


_LITERAL = re.compile(r"\[([*?\[])\]")  # how a flag's path hides its special characters


class MissingOutputError(Exception):
    """A step ended well without what it declared; the text names it."""


def locate(root: Path, name: str) -> str:
    """Where the path that an entry names is."""
    return os.path.join(root, name)


def name_in(root: Path, path: str) -> str:
    """What an entry calls a path: relative to the workspace where it lies in it, else absolute."""
    path = os.path.normpath(path)
    try:
        relative = Path(path).relative_to(root)
    except ValueError:
        return path.replace(os.sep, "/")
    return relative.as_posix()


def expand(patterns: Sequence[str], cwd: Path) -> tuple[list[str], list[str]]:
    """Paths that patterns match below a folder, and the patterns that match nothing.

    A folder stands for all it holds. ``!pattern`` takes away from what came before it.

    :returns: absolute paths, sorted, folders before what they hold; and the unmatched patterns.
    """
    found: dict[str, None] = {}
    missing = []
    for pattern in patterns:
        if pattern.startswith("!"):
            taken = set(_matches(pattern[1:], cwd))
            found = {path: None for path in found if path not in taken}
            continue
        matches = _matches(pattern, cwd)
        if not matches:
            missing.append(pattern)
        found.update(dict.fromkeys(matches))
    return sorted(found), missing


def _matches(pattern: str, cwd: Path) -> list[str]:
    pattern = pattern.replace(os.sep, "/") if sys.platform == "win32" else pattern
    if not has_magic(pattern):
        path = os.path.join(cwd, pattern)
        if not os.path.lexists(path) or (pattern.endswith("/") and not os.path.isdir(path)):
            return []
        return _with_content(os.path.normpath(path))
    folder = static_prefix(pattern)
    start = os.path.join(cwd, folder) if folder else str(cwd)
    prefix = f"{folder}/" if folder else ""
    rule = matcher(pattern)
    found: dict[str, None] = {}
    for name in walk(start, prefix):
        path = os.path.normpath(os.path.join(cwd, name))
        if path in found or not rule.match(name):
            continue
        if pattern.endswith("/") and not os.path.isdir(path):
            continue
        found.update(dict.fromkeys(_with_content(path)))
    return list(found)


def _with_content(path: str) -> list[str]:
    if os.path.islink(path) or not os.path.isdir(path):
        return [path]
    return [path, *(os.path.join(path, name) for name in walk(path, ""))]


def collect(patterns: Sequence[str], cwd: Path, root: Path, digests: ContentDigests) -> Layer:
    """The declared outputs of a step, as they are now.

    :raises MissingOutputError: one of them is not there.
    """
    paths, missing = expand(patterns, cwd)
    if missing:
        typed = ", ".join(_LITERAL.sub(r"\1", pattern) for pattern in missing)
        raise MissingOutputError(f"it ended without its declared output {typed}")
    entries = (entry_of(path, name_in(root, path), digests) for path in paths)
    kept = {entry.path: entry for entry in entries if entry is not None}
    return Layer(tuple(kept[path] for path in sorted(kept)))


def result_of(layer: Layer) -> str:
    """Digest of what a step left: path, type, mode and content, never a time."""
    rows = [[entry.path, entry.type, entry.mode & KEPT_MODE, entry.content] for entry in layer.entries]
    text = json.dumps([rows, list(layer.deleted)], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def verify(
    paths: Iterable[str], wanted: Mapping[str, Entry | None], root: Path, digests: ContentDigests
) -> tuple[Reason, str] | None:
    """Whether paths are on disk as they should be.

    :param wanted: the entry each path should equal (times apart), ``None`` where there should be nothing.
    :returns: the first difference as a reason and a text, or ``None``.
    """
    for path in paths:
        entry = wanted[path]
        try:
            present = entry_of(locate(root, path), path, digests)
        except OSError as error:
            return Reason.OUTPUT_CHANGED, f"{path}: {error.strerror}"
        if entry is None:
            if present is not None:
                return Reason.OUTPUT_CHANGED, f"{path}: removed → there"
        elif present is None:
            return Reason.OUTPUT_MISSING, path
        elif present.content == UNREADABLE:
            return Reason.OUTPUT_CHANGED, f"{path}: cannot be read"
        elif present.content != entry.content:
            return Reason.OUTPUT_CHANGED, f"{path}: {_short(entry)} → {_short(present)}"
        elif sys.platform != "win32" and entry.type != "link" and (present.mode ^ entry.mode) & KEPT_MODE:
            return Reason.OUTPUT_CHANGED, f"{path}: mode {entry.mode:04o} → {present.mode:04o}"
    return None


def _short(entry: Entry) -> str:
    return f"sha256 {entry.sha256[:12]}" if entry.type == "file" else entry.content
