"""What patterns match on the disk."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from checkpoint_action.runner.globs import literal, matcher, static_prefix
from checkpoint_action.runner.places import place_of
from checkpoint_action.runner.scan import OURS, walk, walk_items

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["expand", "is_ours", "leads_nowhere", "literal_path", "matched_by"]

_LONGEST_CHAIN = 256  # links on the way to a file; more than any system follows


def expand(
    patterns: Sequence[str], cwd: Path, *, through: bool = False, closed: set[str] | None = None
) -> tuple[list[str], list[str]]:
    """Paths that patterns match below a folder, and the patterns that match nothing.

    A folder stands for all it holds; links in it are just links. A link that a pattern itself names stands for what it
    leads to as well: those paths are found too, and one that leads nowhere counts as no match besides.
    ``!pattern`` takes away from what came before it. Our own files are never found.

    :param closed: gets the folders that do not let us look, where something might be matched.
    :param through: whether that goes for links in a folder that a pattern names, and for those matched by ``**`` and
        ``**/*`` at its end, too; else these stand for what a folder holds.
    :returns: absolute paths, sorted, folders before what they hold; and the unmatched patterns.
    """
    found: dict[str, None] = {}
    behind: dict[str, set[str]] = {}  # what links lead to, and which links
    contents: dict[str, list[str]] = {}
    missing = []
    closed = set() if closed is None else closed
    for pattern in patterns:
        if pattern.startswith("!"):
            taken = set(matched_by(pattern[1:], cwd, through=through, closed=set())[0])
            found = {path: None for path in found if path not in taken}
            behind = {path: links - taken for path, links in behind.items() if path not in taken and links - taken}
            closed.difference_update([os.path.join(path, "") for path in taken])
            continue
        matches, links = matched_by(pattern, cwd, through=through, closed=closed)
        path = literal_path(pattern, cwd)
        if not matches or (path is not None and links and leads_nowhere(path)):
            missing.append(pattern)
        found.update(dict.fromkeys(matches))
        for link in links:
            for path in _behind_all(link, contents, closed) if through else _behind(link, contents, closed):
                if not is_ours(path, cwd):
                    behind.setdefault(path, set()).add(link)
    return sorted({**found, **behind}), missing


def matched_by(pattern: str, cwd: Path, *, through: bool, closed: set[str]) -> tuple[list[str], list[str]]:
    """What a pattern matches, and the links that it means to name; the rest as for :func:`expand`."""
    path = literal_path(pattern, cwd)
    if path is not None:
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return [], []
        if is_ours(path, cwd) or (pattern.endswith("/") and not os.path.isdir(path)):
            return [], []
        if stat.S_ISDIR(mode):
            content = _with_content(path, closed)
            return content, [one for one in content if os.path.islink(one)] if through else []
        return [path], [path] if stat.S_ISLNK(mode) else []
    pattern = _slashes(pattern)
    folder = static_prefix(pattern)
    start = place_of(cwd, folder)
    if is_ours(start, cwd):
        return [], []
    matches = matcher(pattern[len(folder) + 1 :] if folder else pattern).match
    names_links = through or not pattern.endswith(("**", "**/*"))
    found = []
    links = []
    whole = set()  # folders that match, with all they hold
    shut: set[str] = set()
    for item, name in walk_items(start, "", closed=shut):
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
    closed.update(os.path.join(start, name) for name in shut)
    return found, links


def _slashes(pattern: str) -> str:
    return pattern.replace(os.sep, "/") if sys.platform == "win32" else pattern


def literal_path(pattern: str, cwd: Path) -> str | None:
    """Where the one path that a pattern names is, ``None`` where it can match others."""
    plain = literal(_slashes(pattern))
    return None if plain is None else place_of(cwd, plain)


def is_ours(path: str, cwd: Path) -> bool:
    """Whether a path below a folder is one of our own files."""
    inside = path.removeprefix(os.path.join(cwd, ""))
    return any(part.startswith(OURS) for part in inside.split(os.sep))


def _with_content(path: str, closed: set[str]) -> list[str]:
    if os.path.islink(path) or not os.path.isdir(path):
        return [path]
    shut: set[str] = set()
    content = [path, *(os.path.join(path, name) for name in walk(path, "", closed=shut))]
    closed.update(os.path.join(path, name) for name in shut)
    return content


def leads_nowhere(path: str) -> bool:
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


def _behind_all(link: str, contents: dict[str, list[str]], closed: set[str]) -> dict[str, None]:
    """The same, and what the links that are held there lead to, and so on."""
    found: dict[str, None] = {}
    todo = [link]
    followed = {link}
    while todo:
        for path in _behind(todo.pop(), contents, closed):
            found[path] = None
            if path not in followed and os.path.islink(path):
                followed.add(path)
                todo.append(path)
    return found


def _behind(link: str, contents: dict[str, list[str]], closed: set[str]) -> list[str]:
    """Where a link leads, all that is held there, and the further links on the way; their real paths.

    :param contents: what has been looked through already, by real path.
    """
    if leads_nowhere(link):
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
        contents[end] = _with_content(end, closed)
    return [*on_the_way[1:], *contents[end]]
