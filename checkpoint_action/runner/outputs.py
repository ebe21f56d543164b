"""What a step declares to leave: found, recorded and looked at again."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import Entry, Layer, Reason
from checkpoint_action.runner.globs import literal
from checkpoint_action.runner.patterns import expand, is_ours, leads_nowhere, literal_path, matched_by
from checkpoint_action.runner.scan import UNREADABLE, entries_of

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from checkpoint_action.runner.hashing import ContentDigests

__all__ = [
    "MissingOutputError",
    "collect",
    "differences",
    "locate",
    "name_in",
    "names_in",
    "result_for",
    "result_of",
    "verify",
]


KEPT_MODE = 0o777
"""The mode bits that are kept: set-id and sticky bits are never put back."""


class MissingOutputError(Exception):
    """A step ended well without what it declared; the text names it.

    :param missing: what is not there, in words; empty where it is there and cannot be kept.
    """

    def __init__(self, text: str, missing: str = "") -> None:
        super().__init__(text)
        self.missing = missing


def locate(root: Path, name: str) -> str:
    """Where the path that an entry names is."""
    return os.path.join(root, name)


def name_in(root: Path, path: str) -> str:
    """What an entry calls a path: relative to the workspace where it lies in it, else absolute."""
    path = os.path.normpath(path)
    inside = os.path.join(root, "")
    if path.startswith(inside):
        return path[len(inside) :].replace(os.sep, "/")
    for real in (False, True):  # what links lead to has the workspace's real path
        try:
            return Path(path).relative_to(os.path.realpath(root) if real else root).as_posix()
        except ValueError:
            continue
    return path.replace(os.sep, "/")


def names_in(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Paths that :func:`expand` found, each with what an entry calls it."""
    inside = os.path.join(root, "")
    for path in paths:
        yield path, path[len(inside) :].replace(os.sep, "/") if path.startswith(inside) else name_in(root, path)


def collect(patterns: Sequence[str], cwd: Path, root: Path, digests: ContentDigests) -> Layer:
    """The declared outputs of a step, as they are now.

    :raises MissingOutputError: one of them is not there, or nothing that can be kept.
    :raises StoppedError: the digests were cancelled.
    """
    paths, missing = expand(patterns, cwd)
    if missing:
        listed = _listed(missing, cwd)
        raise MissingOutputError(f"it ended without its declared output {listed}", listed)
    _check_kinds(patterns, cwd, set(paths))
    kept: dict[str, Entry] = {}
    with closing(entries_of(names_in(root, paths), digests)) as entries:
        for name, entry in entries:
            if isinstance(entry, OSError):
                raise entry
            if entry is not None:
                kept[name] = entry
    if len(kept) < len(paths):
        _check_globs(patterns, cwd, root, kept)
    kept.pop(".", None)  # the workspace itself is always there
    if not any(".git" in pattern for pattern in patterns):  # the checkout's own, unless it is named
        kept = {name: entry for name, entry in kept.items() if name != ".git" and not name.startswith(".git/")}
    return Layer(tuple(kept[path] for path in sorted(kept)))


def _typed(pattern: str) -> str:
    """A pattern as a person wrote it: flags hide the special characters of a path."""
    plain = literal(pattern)
    return pattern if plain is None else plain


def _listed(missing: Sequence[str], cwd: Path) -> str:
    texts, between = [], ", "
    for pattern in missing:
        path = literal_path(pattern, cwd)
        dangling = path is not None and leads_nowhere(path) and not is_ours(path, cwd)
        texts.append(_typed(pattern) + (", which is a link to nothing" if dangling else ""))
        between = "; " if dangling else between
    return between.join(texts)


def _check_kinds(patterns: Sequence[str], cwd: Path, found: Collection[str]) -> None:
    """See that what is declared by its very name can be kept.

    :raises MissingOutputError: it is a pipe, a socket, a device, or a link to one.
    """
    for pattern in patterns:
        path = literal_path(pattern, cwd)
        if path is None or path not in found:
            continue
        try:
            mode = os.stat(path).st_mode
        except OSError:  # told by whoever reads it
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            fault = "leads to no file or folder" if os.path.islink(path) else "is no file, folder or link"
            raise MissingOutputError(f"its declared output {_typed(pattern)} {fault}")


def _check_globs(patterns: Sequence[str], cwd: Path, root: Path, kept: Collection[str]) -> None:
    """See that each pattern takes in something that can be kept.

    :raises MissingOutputError: one matches pipes, sockets and devices alone.
    """
    for pattern in patterns:
        if pattern.startswith("!") or literal_path(pattern, cwd) is not None:
            continue
        matches = matched_by(pattern, cwd, through=False, closed=set())[0]
        if matches and not any(name in kept for _path, name in names_in(root, matches)):
            raise MissingOutputError(f"its declared output {pattern} matches no file, folder or link")


def result_of(layer: Layer) -> str:
    """Digest of what a step left: path, type, mode and content, never a time."""
    rows = [[entry.path, entry.type, entry.mode & KEPT_MODE, entry.content] for entry in layer.entries]
    text = json.dumps([rows, list(layer.deleted)], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def result_for(layer: Layer, mark: str) -> str:
    """What counts of a done step for those that need it.

    :param mark: its fingerprint, which stands for what it left where that is not known.
    """
    return result_of(layer) if layer.entries else mark


def verify(
    paths: Collection[str], wanted: Mapping[str, Entry | None], root: Path, digests: ContentDigests
) -> tuple[Reason, str] | None:
    """Whether paths are on disk as they should be.

    :param wanted: the entry each path should equal (times apart), ``None`` where there should be nothing.
    :returns: the first difference as a reason and a text, or ``None``.
    """
    if not paths:  # most steps of a long job leave nothing
        return None
    with closing(differences(paths, wanted, root, digests)) as found:
        return next(((reason, text) for _path, _present, reason, text in found), None)


def differences(
    paths: Iterable[str], wanted: Mapping[str, Entry | None], root: Path, digests: ContentDigests
) -> Generator[tuple[str, Entry | OSError | None, Reason, str], None, None]:
    """Each path that is not as it should be, with what is there, and how it differs as in :func:`verify`."""
    folder = str(root)
    with closing(entries_of(((os.path.join(folder, path), path) for path in paths), digests)) as entries:
        for path, present in entries:
            difference = _difference(path, wanted[path], present, folder)
            if difference is not None:
                yield path, present, *difference


def _difference(
    path: str, entry: Entry | None, present: Entry | OSError | None, root: str
) -> tuple[Reason, str] | None:
    """How a path differs from what it should be.

    :param present: what is there, or why we cannot look.
    """
    if isinstance(present, OSError):
        return Reason.OUTPUT_CHANGED, f"{path}: {present.strerror}"
    if entry is None:
        return None if present is None else (Reason.OUTPUT_CHANGED, f"{path}: removed → there")
    if present is None:
        return Reason.OUTPUT_MISSING, path
    if present.content == UNREADABLE:
        return Reason.OUTPUT_CHANGED, f"{path}: cannot be read"
    if present.content != entry.content:
        return Reason.OUTPUT_CHANGED, f"{path}: {_short(entry)} → {_short(present)}"
    if present.type == "dir" and not os.access(os.path.join(root, path), os.R_OK | os.X_OK):
        return Reason.OUTPUT_CHANGED, f"{path}/: cannot be read"
    if sys.platform != "win32" and entry.type != "link" and (present.mode ^ entry.mode) & KEPT_MODE:
        return Reason.OUTPUT_CHANGED, f"{path}: mode {entry.mode:04o} → {present.mode:04o}"
    return None


def _short(entry: Entry) -> str:
    if entry.content == UNREADABLE:
        return "could not be read"
    return f"sha256 {entry.sha256[:12]}" if entry.type == "file" else entry.content
