"""The files that git tracks, as they are in the work tree."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.model import Entry
from checkpoint_action.runner.git_words import GIT, git_environment
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.scan import entries_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from checkpoint_action.runner.hashing import ContentDigests

__all__ = ["tracked_digest", "tracked_files"]


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


def tracked_digest(root: Path, digests: ContentDigests, env: Mapping[str, str]) -> str:
    """Digest over path, mode and content of every tracked file; one that is missing counts as missing.

    Where git cannot tell them (any more: a step may have removed the repository), no two digests are the same.
    """
    try:
        names = tracked_files(root, env)
    except UsageError:
        return f"unknown {os.urandom(8).hex()}"
    rows: list[list[str | int]] = []
    with closing(entries_of(((locate(root, name), name) for name in names), digests)) as entries:
        for name, entry in entries:
            if isinstance(entry, Entry):
                rows.append([name, entry.mode & 0o777, entry.content])
            else:  # it is missing, or its folder does not let us look
                rows.append([name])
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()
