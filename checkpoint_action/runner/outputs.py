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
from checkpoint_action.runner.globs import literal, matcher, static_prefix
from checkpoint_action.runner.scan import OURS, UNREADABLE, entries_of, walk, walk_items

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from checkpoint_action.runner.hashing import ContentDigests

__all__ = [
    "MissingOutputError",
    "collect",
    "expand",
    "locate",
    "name_in",
    "names_in",
    "result_for",
    "result_of",
    "verify",
]


KEPT_MODE = 0o777
"""The mode bits that are kept: set-id and sticky bits are never put back."""

_LONGEST_CHAIN = 256  # links on the way to a file; more than any system follows


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
    for folder in (root, os.path.realpath(root)):  # what links lead to has the workspace's real path
        try:
            return Path(path).relative_to(folder).as_posix()
        except ValueError:
            continue
    return path.replace(os.sep, "/")


def names_in(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Paths that :func:`expand` found, each with what an entry calls it."""
    inside = os.path.join(root, "")
    for path in paths:
        yield path, path[len(inside) :].replace(os.sep, "/") if path.startswith(inside) else name_in(root, path)


def expand(patterns: Sequence[str], cwd: Path, *, through: bool = False) -> tuple[list[str], list[str]]:
    """Paths that patterns match below a folder, and the patterns that match nothing.

    A folder stands for all it holds; links in it are just links. A link that a pattern itself names stands for what it
    leads to as well: those paths are found too, and one that leads nowhere counts as no match besides.
    ``!pattern`` takes away from what came before it. Our own files are never found.

    :param through: whether that goes for links in a folder that a pattern names, and for those matched by ``**`` and
        ``**/*`` at its end, too; else these stand for what a folder holds.
    :returns: absolute paths, sorted, folders before what they hold; and the unmatched patterns.
    """
    found: dict[str, None] = {}
    behind: dict[str, set[str]] = {}  # what links lead to, and which links
    contents: dict[str, list[str]] = {}
    missing = []
    for pattern in patterns:
        if pattern.startswith("!"):
            taken = set(_matches(pattern[1:], cwd, through=through)[0])
            found = {path: None for path in found if path not in taken}
            behind = {path: links - taken for path, links in behind.items() if path not in taken and links - taken}
            continue
        matches, links = _matches(pattern, cwd, through=through)
        path = _literal_path(pattern, cwd)
        if not matches or (path is not None and links and _leads_nowhere(path)):
            missing.append(pattern)
        found.update(dict.fromkeys(matches))
        for link in links:
            for path in _behind(link, contents):
                if not _is_ours(path, cwd):
                    behind.setdefault(path, set()).add(link)
    return sorted({**found, **behind}), missing


def _matches(pattern: str, cwd: Path, *, through: bool) -> tuple[list[str], list[str]]:
    """What a pattern matches, and the links that it means to name."""
    path = _literal_path(pattern, cwd)
    if path is not None:
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return [], []
        if _is_ours(path, cwd) or (pattern.endswith("/") and not os.path.isdir(path)):
            return [], []
        if stat.S_ISDIR(mode):
            content = _with_content(path)
            return content, [one for one in content if os.path.islink(one)] if through else []
        return [path], [path] if stat.S_ISLNK(mode) else []
    pattern = _slashes(pattern)
    folder = static_prefix(pattern)
    start = os.path.normpath(os.path.join(cwd, folder))
    if _is_ours(start, cwd):
        return [], []
    matches = matcher(pattern[len(folder) + 1 :] if folder else pattern).match
    names_links = through or not pattern.endswith(("**", "**/*"))
    found = []
    links = []
    whole = set()  # folders that match, with all they hold
    for item, name in walk_items(start, ""):
        matched = matches(name) is not None
        if matched and pattern.endswith("/"):
            matched = os.path.isdir(item.path)
        if not matched and name.rpartition("/")[0] not in whole:
            continue
        found.append(item.path)
        if item.is_dir(follow_symlinks=False):
            whole.add(name)
        elif matched and names_links and item.is_symlink():
            links.append(item.path)
    return found, links


def _slashes(pattern: str) -> str:
    return pattern.replace(os.sep, "/") if sys.platform == "win32" else pattern


def _literal_path(pattern: str, cwd: Path) -> str | None:
    """Where the one path that a pattern names is, ``None`` where it can match others."""
    plain = literal(_slashes(pattern))
    return None if plain is None else os.path.normpath(os.path.join(cwd, plain))


def _is_ours(path: str, cwd: Path) -> bool:
    inside = path.removeprefix(os.path.join(cwd, ""))
    return any(part.startswith(OURS) for part in inside.split(os.sep))


def _with_content(path: str) -> list[str]:
    if os.path.islink(path) or not os.path.isdir(path):
        return [path]
    return [path, *(os.path.join(path, name) for name in walk(path, ""))]


def _leads_nowhere(path: str) -> bool:
    """Whether it is a link without an end: to nothing, or in a circle."""
    if not os.path.islink(path):
        return False
    try:
        os.stat(path)
    except PermissionError:
        return False
    except OSError:
        return True
    return False


def _behind(link: str, contents: dict[str, list[str]]) -> list[str]:
    """Where a link leads, all that is held there, and the further links on the way; their real paths.

    :param contents: what has been looked through already, by real path.
    """
    if _leads_nowhere(link):
        return []
    on_the_way: list[str] = []
    here = os.path.realpath(os.path.dirname(link))
    todo = [os.path.basename(link)]
    while todo and len(on_the_way) < _LONGEST_CHAIN:
        here = os.path.normpath(os.path.join(here, todo.pop()))
        if not os.path.islink(here):
            continue
        on_the_way.append(here)
        try:
            target = os.readlink(here)
        except OSError:  # it is gone meanwhile
            break
        if os.path.isabs(target):
            here, name = os.path.split(os.path.normpath(target))
            here, parts = os.path.realpath(here), [name]
        else:
            here, parts = os.path.dirname(here), _slashes(target).split("/")
        todo.extend(reversed(parts))
    end = os.path.realpath(link)
    if end not in contents:
        contents[end] = _with_content(end)
    return [*on_the_way[1:], *contents[end]]


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
        path = _literal_path(pattern, cwd)
        dangling = path is not None and _leads_nowhere(path) and not _is_ours(path, cwd)
        texts.append(_typed(pattern) + (", which is a link to nothing" if dangling else ""))
        between = "; " if dangling else between
    return between.join(texts)


def _check_kinds(patterns: Sequence[str], cwd: Path, found: Collection[str]) -> None:
    """See that what is declared by its very name can be kept.

    :raises MissingOutputError: it is a pipe, a socket, a device, or a link to one.
    """
    for pattern in patterns:
        path = _literal_path(pattern, cwd)
        if path is None or path not in found:
            continue
        try:
            mode = os.stat(path).st_mode
        except OSError:  # told by whoever reads it
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            fault = "leads to no file or folder" if os.path.islink(path) else "is no file, folder or link"
            raise MissingOutputError(f"its declared output {_typed(pattern)} {fault}")


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
    paths: Iterable[str], wanted: Mapping[str, Entry | None], root: Path, digests: ContentDigests
) -> tuple[Reason, str] | None:
    """Whether paths are on disk as they should be.

    :param wanted: the entry each path should equal (times apart), ``None`` where there should be nothing.
    :returns: the first difference as a reason and a text, or ``None``.
    """
    folder = str(root)
    with closing(entries_of(((os.path.join(folder, path), path) for path in paths), digests)) as entries:
        for path, present in entries:
            difference = _difference(path, wanted[path], present)
            if difference is not None:
                return difference
    return None


def _difference(path: str, entry: Entry | None, present: Entry | OSError | None) -> tuple[Reason, str] | None:
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
    if sys.platform != "win32" and entry.type != "link" and (present.mode ^ entry.mode) & KEPT_MODE:
        return Reason.OUTPUT_CHANGED, f"{path}: mode {entry.mode:04o} → {present.mode:04o}"
    return None


def _short(entry: Entry) -> str:
    return f"sha256 {entry.sha256[:12]}" if entry.type == "file" else entry.content
