"""Changes to a folder tree that can all be taken back until the last one has worked."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.store.paths import ancestors
from checkpoint_action.store.tree import At, is_folder, is_link, open_file, set_mode, set_times, status

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.store.tree import Tree

__all__ = ["Transaction"]

OPEN = 0o700
COPY = 1 << 20


class Transaction:
    """Changes to ``tree``. What is replaced is kept aside until :meth:`keep`; :meth:`undo` puts everything back.

    :param spare: an existing folder for what is set aside, on the tree's filesystem if it can be.
    """

    def __init__(self, tree: Tree, spare: Path) -> None:
        self._tree = tree
        self._spare = Path(tempfile.mkdtemp(prefix=".cpr-aside-", dir=spare))
        self._count = 0
        self._undo: list[Callable[[], None]] = []
        self._entered: set[str] = set()
        self._made: set[str] = set()
        self._found: dict[str, tuple[int, int]] = {}  # folders as they were: mode and mtime_ns; none that was made here
        self._opened: dict[str, int] = {}  # folders whose mode was widened for a while, and what it was
        self._finished: list[str] = []

    def new_link(self, target: str, *, to_folder: bool) -> Path:
        """A link made aside, to be put into place by :meth:`put`."""
        link = self._next()
        link.symlink_to(target, target_is_directory=to_folder)
        return link

    def set_aside(self, path: str, *, replaced: bool) -> None:
        """Take the file or link ``path`` away. One that is about to be ``replaced`` stays where it is if it can, so
        that even a sudden death leaves either the old or the new file there.
        """
        self._enter(path)
        where, spare = self._tree.at(path), At(None, str(self._next()))
        found = os.stat(where.name, dir_fd=where.fd, follow_symlinks=False)
        if replaced and sys.platform != "win32" and stat.S_ISREG(found.st_mode):
            try:
                os.link(where.name, spare.name, src_dir_fd=where.fd, follow_symlinks=False)
            except OSError:
                _move(where, spare, found)  # another filesystem, or one without hard links
        else:
            _move(where, spare, found)
        self._undo.append(lambda: _move(spare, self._tree.at(path), found))

    def remove_folder(self, path: str) -> None:
        """Remove the empty folder ``path``."""
        self._enter(path)
        self._note(path)
        self._tree.forget()
        where = self._tree.at(path)
        os.rmdir(where.name, dir_fd=where.fd)
        self._undo.append(lambda: self._mkdir(path, OPEN))

    def make_folder(self, path: str, mode: int = OPEN) -> None:
        """Make the folder ``path``."""
        self._enter(path)
        self._mkdir(path, mode)
        self._made.add(path)
        self._undo.append(lambda: self._rmdir(path))

    def put(self, path: str, source: Path, mode: int, mtime_ns: int) -> None:
        """Move the file or link ``source`` to ``path``, over whatever file or link is there.

        :param mode: permission bits of a file; a link has none.
        """
        self._enter(path)
        where = self._tree.at(path)
        found = source.lstat()
        if not is_link(found):
            set_mode(At(None, str(source)), mode)
        set_times(At(None, str(source)), mtime_ns)
        self._undo.append(lambda: self._unlink(path))
        _move(At(None, str(source)), where, source.lstat())

    def finish_folder(self, path: str, mode: int, mtime_ns: int) -> None:
        """Give the folder ``path`` its final mode and time; nothing below it may be changed any more."""
        self._note(path)
        self._finish(path, mode, mtime_ns)

    def close_folders(self) -> None:
        """Give the folders that were only opened for a while their own mode back."""
        for path in sorted(self._opened, key=_deepest_first):
            if path not in self._finished:
                self._finish(path, self._opened[path], None)

    def keep(self) -> None:
        """Let go of what was set aside: from here on there is no way back."""
        _discard(self._spare)

    def undo(self) -> list[str]:
        """Put everything back as it was; what could not be put back, in words."""
        faults: list[str] = []
        for path in reversed(self._finished):  # outermost first: what is closed by now must be entered again
            with contextlib.suppress(OSError):
                set_mode(self._tree.at(path), OPEN)
        for step in reversed(self._undo):
            self._tree.forget()
            try:
                step()
            except OSError as error:
                faults.append(str(error))
        for path in sorted(self._found, key=_deepest_first):
            try:
                self._stamp(path, *self._found[path])
            except OSError as error:
                faults.append(str(error))
        if faults:
            faults.append(f"what could not be put back is in {self._spare}")
        else:
            _discard(self._spare)
        return faults

    def _next(self) -> Path:
        self._count += 1
        return self._spare / str(self._count)

    def _enter(self, path: str) -> None:
        """Note the folders above ``path`` and, where they are ours and closed, open them for a while."""
        for folder in ("", *ancestors(path)):
            if folder in self._entered:
                continue
            self._entered.add(folder)
            found = self._note(folder)
            mode = stat.S_IMODE(found.st_mode)
            if sys.platform != "win32" and mode & OPEN != OPEN and found.st_uid == os.geteuid():
                set_mode(self._tree.at(folder), mode | OPEN)
                self._opened[folder] = mode

    def _note(self, path: str) -> os.stat_result:
        where = self._tree.at(path)
        found = os.stat(where.name, dir_fd=where.fd, follow_symlinks=not path)
        if not is_folder(found):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        if path not in self._made:
            self._found.setdefault(path, (stat.S_IMODE(found.st_mode), found.st_mtime_ns))
        return found

    def _finish(self, path: str, mode: int, mtime_ns: int | None) -> None:
        self._finished.append(path)
        self._stamp(path, mode, mtime_ns)

    def _stamp(self, path: str, mode: int, mtime_ns: int | None) -> None:
        where = self._tree.at(path)
        found = os.stat(where.name, dir_fd=where.fd, follow_symlinks=not path)
        if stat.S_IMODE(found.st_mode) != mode:
            set_mode(where, mode)
        if mtime_ns is not None and found.st_mtime_ns != mtime_ns:
            set_times(where, mtime_ns)

    def _mkdir(self, path: str, mode: int) -> None:
        where = self._tree.at(path)
        os.mkdir(where.name, mode, dir_fd=where.fd)

    def _rmdir(self, path: str) -> None:
        where = self._tree.at(path)
        os.rmdir(where.name, dir_fd=where.fd)

    def _unlink(self, path: str) -> None:
        where = self._tree.at(path)
        if status(where) is not None:
            os.unlink(where.name, dir_fd=where.fd)


def _deepest_first(path: str) -> tuple[int, str]:
    return (-path.count("/") if path else 1, path)


def _move(source: At, target: At, found: os.stat_result) -> None:
    """Rename ``source`` to ``target``; between filesystems copy it beside the target first."""
    try:
        os.replace(source.name, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    else:
        return
    folder, name = os.path.split(target.name)
    beside = At(target.fd, os.path.join(folder, f".cpr-{secrets.token_hex(8)}-{name[:32]}"))  # noqa: PTH118
    try:
        _copy(source, beside, found)
        os.replace(beside.name, target.name, src_dir_fd=beside.fd, dst_dir_fd=target.fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside.name, dir_fd=beside.fd)
        raise
    os.unlink(source.name, dir_fd=source.fd)


def _copy(source: At, target: At, found: os.stat_result) -> None:
    mode, mtime_ns = stat.S_IMODE(found.st_mode), found.st_mtime_ns
    if is_link(found):
        to_folder = bool(getattr(found, "st_file_attributes", 0) & stat.FILE_ATTRIBUTE_DIRECTORY)  # Windows only
        os.symlink(os.readlink(source.name, dir_fd=source.fd), target.name, to_folder, dir_fd=target.fd)
    else:
        if not mode & stat.S_IRUSR:
            set_mode(source, mode | stat.S_IRUSR)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with (
            open(open_file(source), "rb") as reader,  # noqa: PTH123 - an open number, not a path
            open(os.open(target.name, flags, 0o600, dir_fd=target.fd), "wb") as writer,  # noqa: PTH123
        ):
            shutil.copyfileobj(reader, writer, COPY)
            writer.flush()
            os.fsync(writer.fileno())
        set_mode(target, mode)
    set_times(target, mtime_ns)


def _discard(folder: Path) -> None:
    if sys.platform == "win32":
        for path in folder.iterdir():  # a read-only file cannot be removed there
            with contextlib.suppress(OSError):
                path.chmod(stat.S_IREAD | stat.S_IWRITE)
    shutil.rmtree(folder, ignore_errors=True)
