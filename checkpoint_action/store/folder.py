"""Archives in a folder, of this machine or of a network, that several processes and machines may use at once."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.store.atomic import replacing
from checkpoint_action.store.base import FilePart, Found
from checkpoint_action.store.bounded import bounded
from checkpoint_action.store.folders import sync_folder
from checkpoint_action.store.gathered import GatheredPieces, copy_part
from checkpoint_action.store.layout import Listed, common, folder_of, key_at, newest, newest_each, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["FolderStore"]

_T = TypeVar("_T")

_CALL_SECONDS = 60.0
_TRANSFER_SECONDS = 3600.0
_STALE = 24 * 3600.0
"""Seconds after which an unfinished file is of a writer that died: one at work changes its file all the time."""

_UNFINISHED = (".cpr-", ".tmp")
_TRIES = 5
_AT_ONCE = 1 << 20


def _numbers(*names: str) -> frozenset[int]:
    """The system's numbers of these errors, as far as it has them."""
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


_GONE = _numbers("ENOENT", "ESTALE")
_DENIED = _numbers("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT")
_NO_LINKS = _numbers("EPERM", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EMLINK", "EINVAL")


class FolderStore:
    """A folder as a :class:`~checkpoint_action.store.base.Store`.

    An entry is one file, readable by its owner alone. It gets its name when all of it is on the disk, and a name that
    is there is never given again; that needs a file system with hard links, or else with files that only one can make.

    :param root: made when the first entry is saved, where its parent is there.
    :param order: what a key tells of its age, the greater the newer, or ``None``; then the file's time counts.
    :param call_seconds: time for a look-up: a network folder may hang.
    :param transfer_seconds: time for an archive to go or come.
    """

    def __init__(
        self,
        root: Path,
        *,
        order: Callable[[str], tuple[object, ...] | None] = lambda _key: None,
        call_seconds: float = _CALL_SECONDS,
        transfer_seconds: float = _TRANSFER_SECONDS,
    ) -> None:
        self._root = root
        self._order = order
        self._call_seconds = call_seconds
        self._transfer_seconds = transfer_seconds

    @property
    def root(self) -> Path:
        """The folder."""
        return self._root

    @property
    def name(self) -> str:
        """What people call it, for messages."""
        return f"the folder {self._root}"

    @property
    def reach(self) -> str:
        """Whose entries are read: those of all who use the folder."""
        return f"only entries in {self._root} are looked through"

    def find(self, prefix: str) -> Found | None:
        """The newest entry whose key starts with ``prefix``, ``None`` where there is none, or no such folder."""
        prefix = prefix.lower()

        def look() -> tuple[str, Path] | None:
            return newest(self._files(prefix), lambda row: row[0], self._order, lambda row: _modified(row[1]))

        found = self._bounded("look-up", self._call_seconds, look)
        return found and Found(found[0])

    def find_each(self, prefixes: Sequence[str]) -> list[Found | None]:
        """For each prefix what :meth:`find` gives, in one look."""
        return newest_each(self.entries(common(prefixes)), prefixes, self._order)

    def save(self, key: str, source: Path) -> None:
        """Keep the content of the file ``source`` under ``key``, all or nothing.

        :raises StoreTakenError: another key will do.
        """

        def send() -> None:
            self._send(key, [FilePart(source, 0, source.stat().st_size)])

        self._bounded("save", self._transfer_seconds, send)

    @contextmanager
    def begin(self, key: str) -> Iterator[GatheredPieces]:
        """Keep under ``key`` what is handed over piece by piece; all of it is written at the end, in its final order.

        :raises StoreTakenError: another key will do.
        """
        yield GatheredPieces(
            lambda pieces: self._bounded("save", self._transfer_seconds, lambda: self._send(key, pieces))
        )

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: the entry is gone.
        """

        def copy() -> None:
            with self._opened(found.key) as number, replacing(target) as file:
                while data := os.read(number, _AT_ONCE):
                    file.write(data)

        self._bounded("copy", self._transfer_seconds, copy)

    def read(self, found: Found, start: int, length: int) -> bytes:
        """Read ``length`` bytes of the entry's content, from byte ``start`` on; fewer where it ends before.

        :raises StoreMissingError: the entry is gone.
        """

        def look() -> bytes:
            with self._opened(found.key) as number, os.fdopen(number, "rb", closefd=False) as file:
                file.seek(start)
                return file.read(length)

        return self._bounded("look at an entry", self._call_seconds, look)

    def entries(self, prefix: str = "") -> list[Listed]:
        """The entries whose keys start with ``prefix``, in no order.

        :raises StoreError: the folder cannot be read.
        """

        def look() -> list[Listed]:
            rows = []
            for key, path in self._files(prefix.lower()):
                with suppress(FileNotFoundError):
                    stat = path.stat()
                    rows.append(Listed(key, stat.st_size, stat.st_mtime))
            return rows

        return self._bounded("list", self._call_seconds, look)

    def delete(self, key: str) -> None:
        """Delete an entry; one that is gone is no fault.

        :raises StoreError: it cannot be deleted: on Windows, while somebody reads it.
        """

        def remove() -> None:
            path = self._path(key)
            path.unlink(missing_ok=True)
            if path.parent != self._root:
                with suppress(OSError):  # mostly others lie in it
                    path.parent.rmdir()

        self._bounded("delete", self._call_seconds, remove)

    def _path(self, key: str) -> Path:
        return self._root.joinpath(*place(key))

    def _files(self, prefix: str) -> list[tuple[str, Path]]:
        """Keys and paths of the entries whose keys start with ``prefix``."""
        folder = folder_of(prefix)
        folders = [folder] if folder is not None else ["", *_names(self._root, folders=True)]
        return [
            (key, self._root / inside / name)
            for inside in folders
            for name in _names(self._root / inside, folders=False)
            if (key := key_at(inside, name)) is not None and key.startswith(prefix)
        ]

    @contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        try:
            number = os.open(self._path(key), os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            if error.errno not in _GONE:
                raise
            raise StoreMissingError(f"{self.name}: {key} is not there any more") from error
        try:
            yield number
        except OSError as error:
            if error.errno not in _GONE:  # how a network folder tells that it was deleted meanwhile
                raise
            raise StoreMissingError(f"{self.name}: {key} is not there any more") from error
        finally:
            os.close(number)

    def _send(self, key: str, pieces: Sequence[bytes | FilePart]) -> None:
        path = self._path(key)
        number, name = self._unfinished(path.parent)
        unfinished = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                for piece in pieces:
                    if isinstance(piece, FilePart):
                        copy_part(piece, file)
                    else:
                        file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            now = _modified(unfinished)  # by the clock of the machine that has the folder
            try:
                _give_name(unfinished, path)
            except FileExistsError as error:
                raise StoreTakenError(f"{self.name}: {key} is there already") from error
        finally:
            with suppress(OSError):
                unfinished.unlink()
        sync_folder(path.parent)
        _remove_stale(path.parent, now)

    def _unfinished(self, folder: Path) -> tuple[int, str]:
        """A new file in ``folder``, which is made where it is not there, and may be removed at any time while empty."""
        for is_last in [False] * _TRIES + [True]:
            with suppress(FileExistsError):
                self._root.mkdir(mode=0o700)
                sync_folder(self._root.parent)
            if folder != self._root:
                with suppress(FileExistsError):
                    folder.mkdir(mode=0o700)
                    sync_folder(self._root)
            try:
                return tempfile.mkstemp(prefix=_UNFINISHED[0], suffix=_UNFINISHED[1], dir=folder)
            except FileNotFoundError:
                if is_last:
                    raise
        raise AssertionError("the last try returns or raises")

    def _bounded(self, what: str, seconds: float, call: Callable[[], _T]) -> _T:
        def work() -> _T:
            try:
                return call()
            except OSError as error:
                where = f"{error.filename}: " if error.filename else ""
                kind = StoreDeniedError if error.errno in _DENIED else StoreError
                raise kind(f"{self.name}: {what}: {where}{error.strerror or error}") from error

        return bounded(self.name, what, seconds, work)


def _names(folder: Path, *, folders: bool) -> list[str]:
    """What lies in a folder: folders, or files; nothing where it is not there. A pipe would keep its reader waiting."""
    try:
        with os.scandir(folder) as rows:
            return [row.name for row in rows if (row.is_dir(follow_symlinks=False) if folders else row.is_file())]
    except FileNotFoundError:
        return []


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _give_name(unfinished: Path, path: Path) -> None:
    """Give a complete file its name.

    :raises FileExistsError: the name is given to another one, whose content stays as it is.
    """
    if sys.platform == "win32":
        unfinished.rename(path)  # never over another file there
        return
    else:  # noqa: RET505 - the type checker follows this form
        try:
            os.link(unfinished, path, follow_symlinks=False)
        except FileExistsError:
            if not _is_same(unfinished, path):  # else the answer to a first try was lost on the way, as with NFS
                raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _rename_alone(unfinished, path)


def _rename_alone(unfinished: Path, path: Path) -> None:
    """Rename a file where there are no hard links, as the only one who gives this name."""
    claim = path.with_name(f"{_UNFINISHED[0]}{path.name}{_UNFINISHED[1]}")
    os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        unfinished.rename(path)
    finally:
        claim.unlink()


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _remove_stale(folder: Path, now: float) -> None:
    """Remove what writers that died have left.

    :param now: seconds since 1970, by the folder's clock.
    """
    for name in _names(folder, folders=False):
        if name.startswith(_UNFINISHED[0]) and name.endswith(_UNFINISHED[1]):
            path = folder / name
            with suppress(OSError):
                if path.stat().st_mtime < now - _STALE:
                    path.unlink()
