"""The times of the files a job starts from.

A fresh checkout gives every file the time of the checkout, and a build tool then takes all that was restored for out of
date. So the times that the files had when the first step ran travel with the records, and each file whose content is
still the same gets its time back.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from checkpoint_action.runner.hashing import file_digest
from checkpoint_action.runner.outputs import locate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Entry
    from checkpoint_action.runner.scan import Workspace

__all__ = ["Source", "restore_times", "sources_from_json", "sources_of", "sources_to_json"]

_DIGITS = 16  # of the digest: a mistake would only move a time, so half of the usual length will do


class Source(NamedTuple):
    """A file before the first step.

    :param digest: the first digits of its SHA-256.
    """

    size: int
    mtime_ns: int
    digest: str


def sources_of(entries: Mapping[str, Entry]) -> dict[str, Source]:
    """The files of a scan, in the order of their paths: what is alike lies together, which compresses well."""
    return {
        path: Source(entry.size, entry.mtime_ns, entry.sha256[:_DIGITS])
        for path, entry in sorted(entries.items())
        if entry.type == "file" and entry.sha256
    }


def sources_to_json(sources: Mapping[str, Source]) -> list[list[str | int]]:
    """As rows, to be short."""
    return [[path, *source] for path, source in sources.items()]


def sources_from_json(rows: object) -> dict[str, Source]:
    """What :func:`sources_to_json` made.

    :raises ValueError: it is something else.
    """
    if not isinstance(rows, list):
        raise ValueError("sources: must be a list")  # noqa: TRY004  # one kind of error for whoever reads
    found = {}
    for row in rows:
        match row:
            case [str() as path, int() as size, int() as mtime_ns, str() as digest]:
                found[path] = Source(size, mtime_ns, digest)
            case _:
                raise ValueError("sources: each must be a path, a size, a time and a digest")
    return found


def restore_times(workspace: Workspace, sources: Mapping[str, Source]) -> int:
    """Give each file that is still the same its time back; links are not followed.

    :returns: how many got theirs.
    """
    restored = 0
    for path, source in sources.items():
        where = locate(workspace.root, path)
        with suppress(OSError, ValueError, OverflowError):
            if not workspace.holds(path):
                continue
            info = os.lstat(where)
            if not stat.S_ISREG(info.st_mode) or info.st_size != source.size or info.st_mtime_ns == source.mtime_ns:
                continue
            if file_digest(where)[:_DIGITS] == source.digest:
                os.utime(where, ns=(info.st_atime_ns, source.mtime_ns))
                restored += 1
    return restored
