"""The files that git tracks, as they are in the work tree."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.runner.git_words import GIT, git_environment
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.scan import entries_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from checkpoint_action.model import Entry
    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["changed_files", "tracked_digest", "tracked_files"]


def tracked_files(root: Path, env: Mapping[str, str]) -> list[str]:
    """Names of all files that git tracks below a folder, those of submodules too.

    :param env: the outside environment.
    :raises UsageError: the folder is in no git checkout, or there is no git.
    """
    command = [*GIT, "ls-files", "-z", "--recurse-submodules"]
    try:
        done = subprocess.run(
            command, cwd=root, env=git_environment(env), check=True, stdin=subprocess.DEVNULL, capture_output=True
        )
    except FileNotFoundError:
        raise UsageError("git is not on PATH; list the inputs of every step instead", Kind.NO_GIT) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise UsageError(
            f"git cannot list the files of {root} ({said[-1]}); list the inputs of every step", Kind.NO_GIT
        ) from None
    return sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})


def changed_files(root: Path, env: Mapping[str, str]) -> list[str]:
    """Names of the tracked files below a folder that are not as in the commit that is checked out.

    :param env: the outside environment.
    :raises UsageError: git cannot tell.
    """
    command = [*GIT, "diff", "-z", "--name-only", "--no-ext-diff", "--no-textconv", "--relative", "HEAD", "--", "."]
    try:
        done = subprocess.run(
            command, cwd=root, env=git_environment(env), check=True, stdin=subprocess.DEVNULL, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        raise UsageError(f"git cannot tell what differs from the commit in {root}", Kind.NO_GIT) from None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def tracked_digest(
    root: Path,
    digests: ContentDigests,
    env: Mapping[str, str],
    found: Callable[[str, Entry | None], str | None] = lambda _path, _present: None,
) -> str:
    """Digest over path, content and whether it may be executed of every tracked file; a missing one counts as missing.

    Other bits of a mode are not git's, but as the umask makes them. Where git cannot tell the files (any more: a step
    may have removed the repository), no two digests are the same.

    :param found: gives the content that counts for a path instead of what is there, where that is another one.
    """
    try:
        names = tracked_files(root, env)
    except UsageError:
        return f"unknown {os.urandom(8).hex()}"
    rows: list[list[str | int]] = []
    with closing(entries_of(((locate(root, name), name) for name in names), digests)) as entries:
        for name, entry in entries:
            present = None if isinstance(entry, OSError) else entry
            content = None if isinstance(entry, OSError) else found(name, entry)
            if content is None and present is not None:
                content = present.content
            if content or present is not None:
                rows.append([name, int(present is not None and present.mode & 0o100 != 0), content or ""])
            else:  # it is missing, or its folder does not let us look
                rows.append([name])
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()
