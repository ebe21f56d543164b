"""Files that git ignores: a pattern takes them in only where it names them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from checkpoint_action.runner.git_words import LIST_IGNORED, git_environment
from checkpoint_action.runner.globs import literal, matcher, static_prefix
from checkpoint_action.runner.places import place_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["IgnoredFiles", "matched_by_none_but"]

_GIT_FOLDER = f"{os.sep}.git{os.sep}"


class IgnoredFiles:
    """What git ignores below a folder, asked for when it is first needed. Without git or a checkout it is nothing.

    :param root: absolute folder.
    :param env: the outside environment.
    :ivar asked: whether git has been asked.
    :ivar said: what it has said when it was last asked; ``None`` where it failed.
    """

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self._root = root
        self._env = git_environment(env)
        self._known: tuple[frozenset[str], tuple[str, ...]] | None = None
        self.asked = False
        self.said: bytes | None = b""
        self._checkout: bool | None = None

    def forget(self) -> None:
        """Files may have come and gone."""
        self._known = None

    def without(self, paths: Iterable[str], patterns: Sequence[str], cwd: Path) -> list[str]:
        """Paths that patterns matched, without git's own and those that it ignores, unless a pattern names them.

        A path is named by a pattern without wildcards, and by one that begins with an ignored folder: ``build/**``
        names what ``build/`` holds.

        :param paths: absolute.
        :param cwd: absolute folder that the patterns start from.
        """
        paths = list(paths)
        files, folders = self._ignored()
        if files.isdisjoint(paths) and not any(path.startswith(folders) or _GIT_FOLDER in path for path in paths):
            return paths
        beginnings = [place_of(cwd, _beginning(pattern)) for pattern in patterns if pattern[:1] != "!"]
        ends = [os.path.realpath(begin) for begin in beginnings]  # a link names what it leads to
        named = tuple(begin for begin in (*beginnings, *ends) if _is_out(begin, files, folders))
        return [path for path in paths if not _is_out(path, files, folders) or _below(path, named)]

    def _ignored(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """Absolute paths of the ignored files and folders, and of the folders again with a separator at the end."""
        if self._known is None:
            files, folders = [], []
            for name in self._listed():
                path = os.path.join(self._root, name.replace("/", os.sep))
                files.append(path.removesuffix(os.sep))
                if name.endswith("/"):
                    folders.append(path)
            self._known = frozenset(files), tuple(folders)
        return self._known

    def _listed(self) -> list[str]:
        if self._checkout is None:  # no process for a folder that is in no checkout
            self._checkout = any((folder / ".git").exists() for folder in (self._root, *self._root.parents))
        if not self._checkout:
            return []
        self.asked = True
        try:
            done = subprocess.run(
                LIST_IGNORED, cwd=self._root, env=self._env, check=True, stdin=subprocess.DEVNULL, capture_output=True
            )
        except (OSError, subprocess.CalledProcessError):
            self.said = None
            return []
        self.said = done.stdout
        names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
        # Where all of it lies in an ignored folder, whoever works there means it.
        return [] if "./" in names else names


def _is_out(path: str, files: frozenset[str], folders: tuple[str, ...]) -> bool:
    return path in files or path.startswith(folders) or _GIT_FOLDER in os.path.join(path, "")


def _beginning(pattern: str) -> str:
    """The path that a pattern names, or the folder that all it matches lies in."""
    plain = literal(pattern.replace(os.sep, "/"))
    return static_prefix(pattern.replace(os.sep, "/")) if plain is None else plain


def _below(path: str, named: tuple[str, ...]) -> bool:
    return any(path == begin or path.startswith(os.path.join(begin, "")) for begin in named)


def matched_by_none_but(
    patterns: Sequence[str], cwd: Path, left_out: Collection[str], paths: Collection[str]
) -> list[str]:
    """Patterns that matched something, all of which was left out.

    :param left_out: absolute paths.
    :param paths: the absolute paths that count.
    """
    if not left_out:
        return []
    return [
        pattern
        for pattern in patterns
        if pattern[:1] != "!" and _matches(pattern, cwd, left_out) and not _matches(pattern, cwd, paths)
    ]


def _matches(pattern: str, cwd: Path, paths: Collection[str]) -> bool:
    rule = matcher(os.path.normpath(pattern).replace(os.sep, "/"))
    inside = os.path.join(cwd, "")
    return any(rule.match(path[len(inside) :].replace(os.sep, "/")) for path in paths if path.startswith(inside))
