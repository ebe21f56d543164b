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
    from collections.abc import Callable, Iterable, Mapping

    from checkpoint_action.store.tree import Tree

__all__ = ["Transaction"]

OPEN = 0o700
COPY = 1 << 20


class Transaction:
    """Changes to ``tree``. What is replaced is kept aside until :meth:`keep`; :meth:`undo` puts everything back.

    :param spare: an existing folder for what is set aside, on the tree's filesystem if it can be.
    :ivar torn: whether :meth:`undo` could not put back what is in the tree; modes and times are not meant.
    """

    def __init__(self, tree: Tree, spare: Path) -> None:
        self._tree = tree
        self._spare = Path(tempfile.mkdtemp(prefix=".cpr-aside-", dir=spare))
        self._count = 0
        self._undo: list[Callable[[], None]] = []
        self._entered: set[str] = set()
        self._made: set[str] = set()
        self._found: dict[str, tuple[int, int]] = {}  # folders as they were: mode and mtime_ns; none that was made here
        self._removed: set[str] = set()
        self._grown: set[str] = set()  # folders in which a name came or went
        self._finished: list[str] = []
        self.torn = False

    def new_link(self, target: str, *, to_folder: bool) -> Path:
        """A link made aside, to be put into place by :meth:`put`."""
        link = self._next()
        link.symlink_to(target, target_is_directory=to_folder)
        return link

    def set_aside(self, path: str) -> None:
        """Take the file or link ``path`` away."""
        self._enter(path, grows=True)
        where = self._tree.at(path)
        if self._save(path, where):
            os.unlink(where.name, dir_fd=where.fd)

    def remove_folder(self, path: str) -> None:
        """Remove the empty folder ``path``."""
        self._enter(path, grows=True)
        self._note(path)
        self._removed.add(path)
        self._tree.forget()
        where = self._tree.at(path)
        os.rmdir(where.name, dir_fd=where.fd)
        self._undo.append(lambda: self._mkdir(path, OPEN))

    def make_folder(self, path: str, mode: int = OPEN) -> None:
        """Make the folder ``path``."""
        self._enter(path, grows=True)
        self._mkdir(path, mode)
        self._made.add(path)
        self._undo.append(lambda: self._rmdir(path))

    def put(self, path: str, source: Path, *, replaces: bool) -> None:
        """Move the file or link ``source``, which has its mode and time already, to ``path``.

        :param replaces: a file or link is there. It stays until the very moment if it can, so that even a sudden
            death leaves either the old or the new one.
        """
        self._enter(path, grows=not replaces)
        where = self._tree.at(path)
        found = source.lstat()
        if replaces:
            self._save(path, where, link=True)
        _place(At(None, str(source)), where, found)
        if not replaces:
            self._undo.append(lambda: self._unlink(path))

    def put_folder(self, path: str, source: Path, folders: Iterable[str]) -> bool:
        """Move the folder ``source`` with all that it holds to ``path``, where nothing is.

        :param folders: ``path`` itself and every folder below it; :meth:`finish` gives them mode and time.
        :returns: whether it was moved: not between filesystems, where nothing is changed.
        """
        self._enter(path, grows=True)
        where = self._tree.at(path)
        try:
            os.replace(source, where.name, dst_dir_fd=where.fd)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return False
        self._made.update(folders)
        self._undo.append(lambda: self._take_back(path, source))
        return True

    def _take_back(self, path: str, source: Path) -> None:
        where = self._tree.at(path)
        os.replace(where.name, source, src_dir_fd=where.fd)

    def finish(self, folders: Mapping[str, tuple[int, int]]) -> None:
        """Give ``folders`` their mode and mtime_ns: the last change of all.

        The other folders that were worked in get back their own: the mode always, the time where no name came or went
        (as if the files had been written in place).
        """
        for path in folders:
            self._note(path)
        for path in sorted({*folders, *self._found} - self._removed, key=_deepest_first):
            self._finished.append(path)
            if path in folders:
                self._stamp(path, *folders[path])
                continue
            mode, mtime_ns = self._found[path]
            self._stamp(path, mode, None)
            if path not in self._grown:
                with contextlib.suppress(PermissionError):  # it is somebody else's, who lets us write there
                    self._stamp(path, mode, mtime_ns)

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
                self.torn = True
                faults.append(str(error))
        for path in sorted(self._found, key=_deepest_first):
            try:
                self._stamp(path, *self._found[path])
            except OSError as error:
                faults.append(str(error))
        if faults:
            faults.append(f"what could not be put back is in {self._rescue()}")
        else:
            _discard(self._spare)
        return faults

    def _rescue(self) -> Path:
        """Take what is aside to where nobody clears up."""
        safe = self._tree.root / self._spare.name
        with contextlib.suppress(OSError):
            shutil.move(self._spare, safe)
        return safe if safe.exists() else self._spare

    def _next(self) -> Path:
        self._count += 1
        return self._spare / str(self._count)

    def _save(self, path: str, where: At, *, link: bool = False) -> bool:
        """Have what is at ``path`` aside, to be put back by :meth:`undo`; whether it is still in its place too."""
        spare = At(None, str(self._next()))
        found = os.stat(where.name, dir_fd=where.fd, follow_symlinks=False)
        stays = False
        if link and sys.platform != "win32" and stat.S_ISREG(found.st_mode):
            with contextlib.suppress(OSError):  # another filesystem, or one without hard links
                os.link(where.name, spare.name, src_dir_fd=where.fd, follow_symlinks=False)
                stays = True
        if not stays:
            stays = _place(where, spare, found)
        self._undo.append(lambda: self._put_back(path, spare, found))
        return stays

    def _put_back(self, path: str, spare: At, found: os.stat_result) -> None:
        if sys.platform == "win32":
            self._unlink(path)  # which may be read-only, and so not be written over
        _place(spare, self._tree.at(path), found)

    def _enter(self, path: str, *, grows: bool) -> None:
        """Note the folders above ``path`` and, where they are ours and closed, open them for a while."""
        if grows:
            self._grown.add(path.rpartition("/")[0])
        for folder in ("", *ancestors(path)):
            if folder in self._entered:
                continue
            self._entered.add(folder)
            found = self._note(folder)
            mode = stat.S_IMODE(found.st_mode)
            if sys.platform != "win32" and mode & OPEN != OPEN and found.st_uid == os.geteuid():
                set_mode(self._tree.at(folder), mode | OPEN)

    def _note(self, path: str) -> os.stat_result:
        where = self._tree.at(path)
        found = os.stat(where.name, dir_fd=where.fd, follow_symlinks=not path)
        if not is_folder(found):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        if path not in self._made:
            self._found.setdefault(path, (stat.S_IMODE(found.st_mode), found.st_mtime_ns))
        return found

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
            if sys.platform == "win32":
                Path(where.name).chmod(stat.S_IREAD | stat.S_IWRITE)
            os.unlink(where.name, dir_fd=where.fd)


def _deepest_first(path: str) -> tuple[int, str]:
    return (-path.count("/") if path else 1, path)


def _place(source: At, target: At, found: os.stat_result) -> bool:
    """Rename ``source`` to ``target``, or between filesystems copy it there; whether ``source`` is still there too."""
    try:
        os.replace(source.name, target.name, src_dir_fd=source.fd, dst_dir_fd=target.fd)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    else:
        return False
    folder, name = os.path.split(target.name)
    beside = At(target.fd, os.path.join(folder, f".cpr-{secrets.token_hex(8)}-{name[:32]}"))  # noqa: PTH118
    try:
        _copy(source, beside, found)
        os.replace(beside.name, target.name, src_dir_fd=beside.fd, dst_dir_fd=target.fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside.name, dir_fd=beside.fd)
        raise
    return True


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
