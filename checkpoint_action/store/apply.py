"""An unpacked layer into a workspace: everything is looked at first, then everything is changed, or nothing."""

from __future__ import annotations

import os
import posixpath
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError, TornError
from checkpoint_action.store.paths import ancestors, check_layer, refuse_collisions
from checkpoint_action.store.transaction import Transaction
from checkpoint_action.store.tree import At, Tree, content_word, set_mode, set_times, status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from checkpoint_action.model import Entry, Layer

__all__ = ["apply_layer"]


def apply_layer(side: Path, root: Path, layer: Layer, acceptable: Callable[[str], Collection[str]]) -> None:
    """Move what :func:`~checkpoint_action.store.bundle.unpack_layer` put into ``side`` to its place in ``root``.

    Each path must be there as it was before the step, as the layer wants it, or in a state that ``acceptable`` gives
    for it; else nothing is changed and a ``BundleError`` names the path. A change that fails takes back all others.

    :param side: on the filesystem of ``root`` if possible (else everything is copied); used up by this.
    :param acceptable: other :attr:`~checkpoint_action.model.Entry.content` words that may be written over at a path;
        the empty word stands for nothing there.
    """
    check_layer(layer)
    try:
        refuse_collisions(layer, root)
        with Tree(root) as tree:
            present = _survey(tree, layer, acceptable)
            _change(tree, side, layer, present)
    except OSError as error:
        raise BundleError(f"cannot restore into {root}: {error}") from error


class _Present:
    """What is at a path before anything is changed."""

    __slots__ = ("content", "found")

    def __init__(self, content: str, found: os.stat_result | None) -> None:
        self.content = content
        self.found = found


def _survey(tree: Tree, layer: Layer, acceptable: Callable[[str], Collection[str]]) -> dict[str, _Present]:
    wanted = {entry.path: entry.content for entry in layer.entries} | dict.fromkeys(layer.deleted, "")
    present: dict[str, _Present] = {}
    for path in sorted(wanted):
        above = present.get(path.rpartition("/")[0])
        now = above if above is not None and not above.content else _look(tree, path, wanted)
        fine = now.content in (wanted[path], layer.before.get(path, "")) or now.content in acceptable(path)
        if not fine:
            raise BundleError(f"{path} is {_in_words(now.content)}, which no step of this job left there")
        present[path] = now
    deleted = set(layer.deleted)
    for path, now in present.items():
        if now.content == "dir" and wanted[path] != "dir":
            for name in tree.names(path):
                if f"{path}/{name}" not in deleted:
                    raise BundleError(f"{path} is to go, but holds {name}, which no step of this job left there")
    return present


def _look(tree: Tree, path: str, wanted: dict[str, str]) -> _Present:
    try:
        where = tree.at(path)
        found = status(where)
        return _Present(content_word(where, found), found)
    except FileNotFoundError:
        return _Present("", None)
    except NotADirectoryError as error:
        if error.filename not in wanted:
            raise BundleError(f"{path} is below {error.filename}, which is a link or a file here") from error
        return _Present("", None)  # what is in the way is judged by its own path


def _in_words(content: str) -> str:
    if content in ("", "dir", "other"):
        return {"": "missing", "dir": "a folder", "other": "a device or a pipe"}[content]
    return "another link" if content.startswith("link:") else "a file with other content"


def _change(tree: Tree, side: Path, layer: Layer, present: dict[str, _Present]) -> None:
    changes = Transaction(tree, side)
    try:
        entries = sorted(layer.entries, key=lambda entry: entry.path)
        _clear(changes, layer, present)
        in_place = _move_new_folders(changes, tree, side, entries, present)
        rest = [entry for entry in entries if entry.path not in in_place]
        _make_folders(changes, tree, rest)
        for entry in rest:
            if entry.type != "dir" and not _same(entry, present[entry.path].found, present[entry.path].content):
                _put(changes, tree.root, side, entry, replaces=_stays(present[entry.path].content))
        changes.finish({entry.path: (entry.mode & 0o777, entry.mtime_ns) for entry in entries if entry.type == "dir"})
    except BaseException as error:
        faults = changes.undo()
        if faults:
            kind = TornError if changes.torn else BundleError
            raise kind(f"restore failed ({error}) and could not be taken back: {'; '.join(faults)}") from error
        raise
    changes.keep()


def _clear(changes: Transaction, layer: Layer, present: dict[str, _Present]) -> None:
    """Take away what goes, and what is in the way of another type; what a folder holds before the folder."""
    folders = {entry.path: entry.type == "dir" for entry in layer.entries}
    for path in sorted(present, reverse=True):
        content = present[path].content
        if content == "dir":
            if not folders.get(path, False):
                changes.remove_folder(path)
        elif content and folders.get(path, True):
            changes.set_aside(path)


def _move_new_folders(
    changes: Transaction, tree: Tree, side: Path, entries: list[Entry], present: dict[str, _Present]
) -> set[str]:
    """Move each folder that is not there at all as a whole; the paths that are in place then, however many."""
    if sys.platform == "win32":  # where whoever has one file in it open is in the way, and links are of two kinds
        return set()
    in_place: set[str] = set()
    for top, below in _new_folders(entries, present).items():
        for entry in below:
            source = f"{side}/{entry.path}"
            if entry.type == "link":
                Path(source).symlink_to(entry.target)
            if entry.type != "dir":
                _stamp(source, entry)
        _make_folders(changes, tree, [below[0]], above_only=True)
        if changes.put_folder(top, side / top, [entry.path for entry in below if entry.type == "dir"]):
            in_place.update(entry.path for entry in below)
    return in_place


def _new_folders(entries: list[Entry], present: dict[str, _Present]) -> dict[str, list[Entry]]:
    """The outermost folders that are not there and whose inner folders are all in the layer, each with its entries."""
    folders = {entry.path for entry in entries if entry.type == "dir" and not present[entry.path].content}
    for entry in entries:
        above = entry.path.rpartition("/")[0]
        if above not in folders:  # what is above it is not the layer's alone
            folders.difference_update(ancestors(entry.path))
    new: dict[str, list[Entry]] = {}
    tops: dict[str, str] = {}
    for entry in entries:
        top = tops.get(entry.path.rpartition("/")[0], entry.path if entry.path in folders else "")
        if top:
            new.setdefault(top, []).append(entry)
            if entry.type == "dir":
                tops[entry.path] = top
    return new


def _stays(content: str) -> bool:
    return content not in ("", "dir")


def _make_folders(changes: Transaction, tree: Tree, entries: list[Entry], *, above_only: bool = False) -> None:
    seen: set[str] = {""}
    for entry in entries:
        is_folder = entry.type == "dir" and not above_only
        if not is_folder and entry.path.rpartition("/")[0] in seen:
            continue
        for path in (*ancestors(entry.path), entry.path):
            if path in seen or (path == entry.path and not is_folder):
                continue
            seen.add(path)
            if status(tree.at(path)) is None:
                changes.make_folder(path) if path == entry.path else changes.make_folder(path, 0o777)


def _same(entry: Entry, found: os.stat_result | None, content: str) -> bool:
    if found is None or content != entry.content or found.st_mtime_ns != entry.mtime_ns:
        return False
    return entry.type == "link" or (found.st_mode ^ (entry.mode & 0o777)) & 0o7777 == 0 or sys.platform == "win32"


def _put(changes: Transaction, root: Path, side: Path, entry: Entry, *, replaces: bool) -> None:
    if entry.type == "link":
        source = changes.new_link(entry.target, to_folder=_leads_to_folder(root, entry))
    else:
        source = Path(side, *entry.path.split("/"))
    _stamp(str(source), entry)
    changes.put(entry.path, source, replaces=replaces)


def _stamp(source: str, entry: Entry) -> None:
    """Give what is put into place its mode and time, where unpacking has not done so."""
    where, found = At(None, source), os.lstat(source)
    if entry.type == "file" and stat.S_IMODE(found.st_mode) != entry.mode & 0o777:
        set_mode(where, entry.mode & 0o777)
    if found.st_mtime_ns != entry.mtime_ns:
        set_times(where, entry.mtime_ns)


def _leads_to_folder(root: Path, entry: Entry) -> bool:
    """Whether a link is one to a folder: two kinds on Windows, the same elsewhere."""
    if sys.platform == "win32":
        target = posixpath.join(posixpath.dirname(entry.path), entry.target.replace("\\", "/"))
        return Path(root, posixpath.normpath(target)).is_dir()
    else:  # noqa: RET505 - the type checker follows this form
        return False
