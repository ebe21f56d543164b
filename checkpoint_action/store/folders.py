"""What a folder does for the names in it: whether they last, and whose they are. Imports next to nothing."""

from __future__ import annotations

import errno
import os
import stat
import sys

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["check_owner", "make_folder", "sync_folder"]


def check_owner(folder: str | Path, paths: Iterable[str | Path]) -> None:
    """See that nobody else has put something in the place of files of ours.

    In a folder like ``/tmp`` anybody may do so, and nobody else can take it away again. In other folders whoever may
    write can replace everything, and looking tells nothing. What is asked of an owner is what Linux asks of one with
    ``fs.protected_regular``.

    :param folder: where the files lie.
    :param paths: the files, links and folders, those that are not there too.
    :raises PermissionError: one of them is somebody else's.
    """
    if sys.platform == "win32":
        return
    try:
        around = os.stat(folder)  # noqa: PTH116  # pathlib is slow to load
    except OSError:  # so there is nothing in it
        return
    if not around.st_mode & stat.S_ISVTX or not around.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return
    trusted = {os.geteuid(), around.st_uid, 0}
    for path in paths:
        try:
            owner = os.lstat(path).st_uid
        except OSError:
            continue
        if owner not in trusted:
            said = "it is another user's, in a folder that all may write to"
            raise PermissionError(errno.EPERM, said, str(path))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the platform lets us.

    Windows has no way to do it and orders its metadata itself; some network file systems refuse, though the rename
    itself has worked.
    """
    if sys.platform == "win32":
        return
    try:
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError:
        return


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are not there, so that their names last.

    Without that a loss of power may take away a folder with all that was synced in it.

    :raises OSError: it cannot be made.
    """
    made = []
    for place in (folder, *folder.parents):
        if place.is_dir():
            break
        made.append(place)
    folder.mkdir(parents=True, exist_ok=True)
    for place in reversed(made):
        sync_folder(place.parent)
