"""Archives in the buckets of an object store: S3 and what speaks as it does, Google Cloud Storage, Azure."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.store.atomic import replacing
from checkpoint_action.store.base import FilePart, Found
from checkpoint_action.store.bounded import bounded
from checkpoint_action.store.buckets import reason
from checkpoint_action.store.gathered import GatheredPieces
from checkpoint_action.store.layout import Listed, common, folder_of, key_at, newest, newest_each, place
from checkpoint_action.store.object_reading import PART, SIDE_BY_SIDE, ObjectReader, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from obstore import ObjectMeta
    from obstore.store import ObjectStore as Bucket

__all__ = ["ONE_BODY", "ObjectStore"]

_T = TypeVar("_T")

_CALL_SECONDS = 60.0
_TRANSFER_SECONDS = 3600.0
_STALE = 24 * 3600.0
"""Seconds after which a reservation is of a writer that died: none has as long for an upload."""

ONE_BODY = 2 * PART
"""Bytes up to which an archive goes in one request."""

_MOST_PARTS = 9_000  # S3 takes 10 000
_PAUSES = (0.2, 1.0, 3.0)
_BROKE_WITHIN = 10.0  # seconds; a server that is silent for longer is not waited for again
_LINE = "HTTP error"  # what the library says where there was no answer, and nowhere else
_DOWNLOAD, _LOOK = _OF_AN_ENTRY = ("download", "look at an entry")


class ObjectStore:
    """A bucket, or what lies under a prefix in one, as a :class:`~checkpoint_action.store.base.Store`.

    An entry is one object. A small one is put where nothing is yet, which the service decides. A large one goes in
    parts, and no service can do both; so an empty object is put first where nothing is yet, to reserve the key, and
    only who put it replaces it, at once, by the complete entry. An empty object is no entry.

    :param bucket: from :func:`~checkpoint_action.store.buckets.open_bucket`.
    :param url: how the user calls it, for messages.
    :param order: what a key tells of its age, the greater the newer, or ``None``; then the service's time counts.
    :param call_seconds: time for a look-up, retries included.
    :param transfer_seconds: time for an archive to go or come.
    """

    def __init__(
        self,
        bucket: Bucket,
        url: str,
        *,
        order: Callable[[str], tuple[object, ...] | None] = lambda _key: None,
        call_seconds: float = _CALL_SECONDS,
        transfer_seconds: float = _TRANSFER_SECONDS,
    ) -> None:
        self._bucket = bucket
        self._url = url
        self._order = order
        self._call_seconds = call_seconds
        self._transfer_seconds = transfer_seconds
        self._reader = ObjectReader(bucket)

    @property
    def name(self) -> str:
        """What people call it, for messages."""
        return self._url

    @property
    def reach(self) -> str:
        """Whose entries are read: those of all who use the bucket."""
        return f"only entries under {self._url} are looked through"

    def find(self, prefix: str) -> Found | None:
        """The newest entry whose key starts with ``prefix``, or ``None``."""
        rows = self.entries(prefix)
        found = newest(rows, lambda row: row.key, self._order, lambda row: row.modified)
        return Found(found.key) if found is not None else None

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
        """Keep under ``key`` what is handed over piece by piece; all of it is sent at the end, in its final order.

        :raises StoreTakenError: another key will do.
        """
        yield GatheredPieces(
            lambda pieces: self._bounded("save", self._transfer_seconds, lambda: self._send(key, pieces))
        )

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: the entry is gone.
        """

        def download() -> None:
            with replacing(target) as file:
                self._reader.copy(found.key, file)

        self._bounded(_DOWNLOAD, self._transfer_seconds, download)

    def read(self, found: Found, start: int, length: int) -> bytes:
        """Read ``length`` bytes of the entry's content, from byte ``start`` on; fewer where it ends before.

        :raises StoreMissingError: the entry is gone.
        """
        return self._bounded(_LOOK, self._call_seconds, lambda: self._reader.part(found.key, start, length))

    def stream(self, found: Found, start: int, take: Callable[[bytes], object]) -> bool:
        """Have the entry's content from byte ``start`` on, as it comes, from a server known to send all each time.

        :raises StoreMissingError: the entry is gone.
        """
        if not self._reader.sends_all:
            return False
        self._bounded(_DOWNLOAD, self._transfer_seconds, lambda: self._reader.rest(found.key, start, take))
        return True

    def entries(self, prefix: str = "") -> list[Listed]:
        """The entries whose keys start with ``prefix``, in no order.

        :raises StoreError: the service does not list them.
        """
        prefix = prefix.lower()
        rows = self._bounded("list", self._call_seconds, lambda: list(self._listed(folder_of(prefix))))
        return [row for row in rows if row.size and row.key.startswith(prefix)]

    def delete(self, key: str) -> None:
        """Delete an entry; one that is gone is no fault."""
        import obstore  # noqa: PLC0415  # an extra

        def remove() -> None:
            with suppress(FileNotFoundError):
                obstore.delete(self._bucket, path_of(key))

        self._bounded("delete", self._call_seconds, remove)

    def _listed(self, folder: str | None) -> Iterator[Listed]:
        """Also what is only reserved, which has no bytes."""
        import obstore  # noqa: PLC0415

        rows: Iterable[Sequence[ObjectMeta]] = obstore.list(self._bucket, prefix=folder or None, chunk_size=1000)
        for chunk in rows:
            for row in chunk:
                inside, _, name = row["path"].rpartition("/")
                key = key_at(inside, name)
                if key is not None:
                    yield Listed(key, row["size"], row["last_modified"].timestamp())

    def _send(self, key: str, pieces: Sequence[bytes | FilePart]) -> None:
        import obstore  # noqa: PLC0415

        path = path_of(key)
        size = sum(piece.length if isinstance(piece, FilePart) else len(piece) for piece in pieces)
        if not size:
            raise StoreError(f"{self.name}: {key}: an entry cannot be empty")
        if size <= ONE_BODY:
            self._create(path, b"".join(_all_of(pieces)))
            return
        _check_whole(pieces)  # before anything is reserved, and parts are on their way that cannot be called back
        self._create(path, b"")
        try:
            part = max(PART, size // _MOST_PARTS)
            obstore.put(self._bucket, path, _all_of(pieces), chunk_size=part, max_concurrency=SIDE_BY_SIDE)
        except BaseException:
            with suppress(Exception):  # it is told of what came first
                obstore.delete(self._bucket, path)
            raise
        with suppress(Exception):  # the entry is there
            self._remove_stale(key)

    def _create(self, path: str, body: bytes) -> None:
        """Put an object where nothing is yet; again where the line breaks, as the library does not do for these.

        Where the first try arrived after all, the second finds the key taken, and another one will do.
        """
        import obstore  # noqa: PLC0415
        from obstore.exceptions import GenericError  # noqa: PLC0415

        for pause in (*_PAUSES, None):
            begin = time.monotonic()
            try:
                obstore.put(self._bucket, path, body, mode="create", use_multipart=False)
                return
            except GenericError as error:
                if pause is None or _LINE not in str(error) or time.monotonic() - begin > _BROKE_WITHIN:
                    raise
                time.sleep(pause)

    def _remove_stale(self, key: str) -> None:
        """Remove what writers that died have reserved, beside an entry that has just come."""
        import obstore  # noqa: PLC0415

        rows = list(self._listed(place(key)[0]))
        now = max(row.modified for row in rows)  # by the service's clock
        stale = [path_of(row.key) for row in rows if not row.size and row.modified < now - _STALE]
        if stale:
            obstore.delete(self._bucket, stale)

    def _bounded(self, what: str, seconds: float, call: Callable[[], _T]) -> _T:
        from obstore import exceptions as told  # noqa: PLC0415

        def work() -> _T:
            try:
                return call()
            except StoreError:
                raise
            except BaseException as error:  # a panic of the library is no Exception; nobody interrupts this thread
                said = f"{self.name}: {what}: {reason(error)}"
                if what in _OF_AN_ENTRY and isinstance(error, FileNotFoundError) and error.errno is None:
                    raise StoreMissingError(said) from error  # with a number it is of this machine's files
                if isinstance(error, (told.AlreadyExistsError, told.PreconditionError)):
                    raise StoreTakenError(said) from error
                denied = (told.PermissionDeniedError, told.UnauthenticatedError)
                if isinstance(error, denied) or _is_refused(error):
                    raise StoreDeniedError(said) from error
                raise StoreError(said) from error

        return bounded(self.name, what, seconds, work)


def _is_refused(error: BaseException) -> bool:
    """Whether a server refuses what the library has no error of its own for: a listing."""
    return re.search(r"status code: 40[13]\b", str(error)) is not None


def _check_whole(pieces: Iterable[bytes | FilePart]) -> None:
    """See that there is as much of each file as is to be sent.

    :raises StoreError: there is less of one.
    """
    for piece in pieces:
        if isinstance(piece, FilePart) and piece.path.stat().st_size < piece.offset + piece.length:
            raise StoreError(f"{piece.path} became shorter")


def _all_of(pieces: Iterable[bytes | FilePart]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
            continue
        left = piece.length
        with piece.path.open("rb") as file:
            file.seek(piece.offset)
            while left:
                data = file.read(min(left, 1 << 20))
                if not data:
                    raise StoreError(f"{piece.path} became shorter")
                left -= len(data)
                yield data
