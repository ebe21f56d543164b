"""A folder reached into without ever following a link on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = [
    "OTHER",
    "READ",
    "At",
    "Tree",
    "content_word",
    "is_folder",
    "is_link",
    "open_file",
    "set_mode",
    "set_times",
    "status",
]

OTHER = "other"
"""The content word of what is neither file, folder nor link."""

CHUNK = 1 << 20
READ = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # never wait for a pipe's other end
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
NAME_SURROGATE = 0x20000000  # Windows: the bit of a reparse tag that stands for another name (links, junctions)


class At(NamedTuple):
    """Where something is, as the ``os`` functions take it: a name, and the open folder that it is relative to."""

    fd: int | None
    name: str


class Tree:
    """The folder ``root``, used as a context manager; paths are relative to it, ``/`` between parts.

    On POSIX every step is an ``openat`` that refuses links; elsewhere each folder on the way is looked at just before
    its use. A folder on the way that is a link (or a file) is a ``NotADirectoryError`` whose ``filename`` is its path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._root_fd: int | None = None
        self._parent: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        if sys.platform != "win32":
            self._root_fd = os.open(self.root, _TRAVERSE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget()
        if self._root_fd is not None:
            os.close(self._root_fd)
            self._root_fd = None

    def at(self, path: str) -> At:
        """Where ``path`` is, whether or not something is there; good until the next call. ``""`` is the root itself.

        Its folder is missing: ``FileNotFoundError``. Something on the way is no folder: ``NotADirectoryError``.
        """
        folder, _, name = path.rpartition("/")
        if sys.platform == "win32":
            self._look_along(folder)
            return At(None, str(self.root.joinpath(*path.split("/"))))
        else:  # noqa: RET505 - the type checker follows this form
            return At(self._open_folder(folder), name or ".")

    def forget(self) -> None:
        """Let go of the folder last used; needed after a folder was moved or removed."""
        if self._parent is not None:
            os.close(self._parent[1])
            self._parent = None

    def names(self, path: str) -> list[str]:
        """The names in the folder ``path``, in no order."""
        where = self.at(path)
        if sys.platform == "win32":
            return [path.name for path in Path(where.name).iterdir()]
        else:  # noqa: RET505
            number = os.open(where.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=where.fd)
            try:
                return os.listdir(number)  # noqa: PTH208 - an open number, not a path
            finally:
                os.close(number)

    if sys.platform == "win32":

        def _look_along(self, folder: str) -> None:
            whole = self.root
            passed = []
            for part in folder.split("/") if folder else ():
                whole /= part
                passed.append(part)
                if not is_folder(os.lstat(whole)):
                    raise NotADirectoryError(errno.ENOTDIR, "not a folder", "/".join(passed))

    else:

        def _open_folder(self, folder: str) -> int:
            if self._root_fd is None:
                raise ValueError("a tree is used inside its with block")
            if not folder:
                return self._root_fd
            if self._parent is not None and self._parent[0] == folder:
                return self._parent[1]
            self.forget()
            number = self._root_fd
            parts = folder.split("/")
            for index, part in enumerate(parts):
                try:
                    inner = os.open(part, _TRAVERSE | os.O_NOFOLLOW, dir_fd=number)
                except OSError as error:
                    passed = "/".join(parts[: index + 1])
                    if error.errno in (errno.ENOTDIR, errno.ELOOP):
                        raise NotADirectoryError(errno.ENOTDIR, "not a folder", passed) from error
                    raise OSError(error.errno, error.strerror, passed) from error
                finally:
                    if number != self._root_fd:
                        os.close(number)
                number = inner
            self._parent = (folder, number)
            return number


if sys.platform != "win32":
    # O_PATH, where there is one, goes through folders that may be searched but not listed.
    _TRAVERSE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def status(where: At) -> os.stat_result | None:
    """What is there, links not followed, or ``None``."""
    try:
        return os.stat(where.name, dir_fd=where.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_link(found: os.stat_result) -> bool:
    """Whether it is a symbolic link, or a Windows junction."""
    tag: int = getattr(found, "st_reparse_tag", 0)
    return stat.S_ISLNK(found.st_mode) or bool(tag & NAME_SURROGATE)


def is_folder(found: os.stat_result) -> bool:
    """Whether it is a real folder."""
    return stat.S_ISDIR(found.st_mode) and not is_link(found)


def open_file(where: At) -> int:
    """Open the plain file there for reading; ``OSError`` on anything else."""
    number = os.open(where.name, READ, dir_fd=where.fd)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a plain file", where.name)
    return number


def content_word(where: At, found: os.stat_result | None) -> str:
    """The :attr:`~checkpoint_action.model.Entry.content` of what is there now; empty when nothing is."""
    if found is None:
        return ""
    if is_link(found):
        return f"link:{os.readlink(where.name, dir_fd=where.fd)}"
    if stat.S_ISDIR(found.st_mode):
        return "dir"
    if not stat.S_ISREG(found.st_mode):
        return OTHER
    digest = hashlib.sha256()
    with open(open_file(where), "rb", buffering=0) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def set_mode(where: At, mode: int) -> None:
    """Set the permission bits of the file or real folder there."""
    if sys.platform != "win32":
        try:
            number = os.open(where.name, READ, dir_fd=where.fd)
        except PermissionError:
            pass  # its owner may change the mode of what he may not read
        else:
            try:
                os.fchmod(number, mode)
            finally:
                os.close(number)
            return
    os.chmod(where.name, mode, dir_fd=where.fd)


def set_times(where: At, mtime_ns: int) -> None:
    """Set access and modification time to the nanosecond, of a link itself where there is one."""
    times = (mtime_ns, mtime_ns)
    if sys.platform == "win32":
        if not Path(where.name).is_symlink():  # a link's own time cannot be set there
            os.utime(where.name, ns=times)
    else:
        os.utime(where.name, ns=times, dir_fd=where.fd, follow_symlinks=False)
