"""Archives in the artifacts of a workflow run."""

from __future__ import annotations

import tempfile
import zlib
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.errors import BundleError
from checkpoint_action.store.base import FilePart, Found
from checkpoint_action.store.bounded import bounded
from checkpoint_action.store.gathered import GatheredPieces
from checkpoint_action.toolkit.artifact import CALL_SECONDS, TRANSFER_SECONDS
from checkpoint_action.toolkit.artifact_stored import HEAD_LENGTH, StoredEntry, entry_at, stored_zip
from checkpoint_action.toolkit.artifact_unzip import UnpackLimits, unpack
from checkpoint_action.toolkit.errors import DigestError, HttpStatusError, MissingEntryError, ProtocolError
from checkpoint_action.toolkit.exchange import FileSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from checkpoint_action.toolkit.artifact import Artifact, ArtifactClient

__all__ = ["ENTRY", "GithubArtifactStore"]

_T = TypeVar("_T")

ENTRY = "checkpoint.tar.zst"
"""Name of the archive in the zip that every artifact is."""

_LIMITS = UnpackLimits(size=1 << 50, entries=1)  # and what the disk has room for
_NEVER = datetime.fromtimestamp(0, timezone.utc)


class GithubArtifactStore:
    """The artifacts of this workflow run, of all its attempts, as a :class:`~checkpoint_action.store.base.Store`.

    An archive is one artifact, called as its key, whose zip holds the archive uncompressed: so a part of it can be
    read where it lies.

    :param retention_days: how long artifacts are kept; 0: as the repository's settings say, which also cap it.
    :param order: what a key tells of its age, the greater the newer, or ``None``. It goes before the service's own
        times, which do not tell two artifacts of one moment apart, and under act nothing at all.
    :param only: whether an artifact of a name counts.
    :param call_seconds: time for a look-up. A refusal for too many calls is waited out within it.
    :param transfer_seconds: time for an archive to go or come.
    """

    def __init__(
        self,
        client: ArtifactClient,
        *,
        retention_days: int = 0,
        order: Callable[[str], tuple[object, ...] | None] = lambda _key: None,
        only: Callable[[str], bool] = lambda _key: True,
        call_seconds: float = CALL_SECONDS,
        transfer_seconds: float = TRANSFER_SECONDS,
    ) -> None:
        self._client = client
        self._retention_days = retention_days
        self._order = order
        self._only = only
        self._call_seconds = call_seconds
        self._transfer_seconds = transfer_seconds
        self._known: dict[str, Artifact] = {}
        self._entries: dict[str, StoredEntry] = {}

    @property
    def name(self) -> str:
        """What people call it, for messages."""
        return "Actions artifacts"

    @property
    def reach(self) -> str:
        """What this job can read, in words, for whoever wonders about a miss."""
        return "only artifacts of this workflow run, of all its attempts, are looked through"

    def find(self, prefix: str) -> Found | None:
        """The newest entry whose key starts with ``prefix`` (letter case apart), or ``None``."""
        listed = self._bounded("look-up", self._call_seconds, self._list)
        found = [one for one in listed if one.name.lower().startswith(prefix.lower()) and self._only(one.name)]
        if not found:
            return None
        newest = max(found, key=self._age)
        self._known[newest.name] = newest
        return Found(newest.name)

    def save(self, key: str, source: Path) -> None:
        """Keep the content of the file ``source`` under ``key``, all or nothing.

        :raises StoreTakenError: another key will do.
        """
        self._bounded("save", self._transfer_seconds, lambda: self._send_file(key, source))

    @contextmanager
    def begin(self, key: str) -> Iterator[GatheredPieces]:
        """Keep under ``key`` what is handed over piece by piece: all of it, or nothing.

        All is sent at the end: a zip tells first what its file is, and the service keeps the digest of all in order.

        :raises StoreTakenError: another key will do.
        """
        yield GatheredPieces(
            lambda pieces: self._bounded("save", self._transfer_seconds, lambda: self._send(key, pieces))
        )

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: the entry is gone, or only its content is.
        :raises BundleError: it is no archive of ours, or damaged.
        """
        artifact = self._artifact(found)
        self._bounded("download", self._transfer_seconds, lambda: self._download(artifact, target))

    def read(self, found: Found, start: int, length: int) -> bytes:
        """Read ``length`` bytes of the entry's content, from byte ``start`` on; fewer where it ends before.

        :raises StoreMissingError: the entry is gone, or only its content is.
        :raises BundleError: it is no archive of ours.
        """
        artifact = self._artifact(found)
        return self._bounded("look at an entry", self._call_seconds, lambda: self._read(artifact, start, length))

    def _list(self) -> list[Artifact]:
        return self._client.list_artifacts(seconds=self._call_seconds)

    def _age(self, artifact: Artifact) -> tuple[object, ...]:
        order = self._order(artifact.name)
        return order is not None, order or (), artifact.created_at or _NEVER, artifact.id

    def _artifact(self, found: Found) -> Artifact:
        artifact = self._known.get(found.key)
        if artifact is None:
            get = partial(self._client.get_artifact, found.key, seconds=self._call_seconds)
            artifact = self._bounded("look-up", self._call_seconds, get)
            self._known[found.key] = artifact
        return artifact

    def _send_file(self, key: str, source: Path) -> None:
        self._send(key, [FilePart(source, 0, source.stat().st_size)])

    def _send(self, key: str, pieces: Sequence[bytes | FilePart]) -> None:
        size = crc = 0
        for data in _all_of(pieces):
            size += len(data)
            crc = zlib.crc32(data, crc)
        head, tail = stored_zip(ENTRY, size, crc)
        body = partial(_all_of, [head, *pieces, tail])
        self._client.upload_zip(key, body, retention_days=self._retention_days, seconds=self._transfer_seconds)

    def _download(self, artifact: Artifact, target: Path) -> None:
        with tempfile.TemporaryDirectory(prefix=".artifact-", dir=target.parent) as name:
            body = Path(name, "body")
            with _content_of(artifact):
                try:
                    self._client.download_body(artifact, body, seconds=self._transfer_seconds)
                except DigestError as error:
                    raise BundleError(f"{self.name}: {artifact.name} is damaged: {error}") from error
            folder = Path(name, "files")
            folder.mkdir()
            try:
                files = unpack(body, folder, limits=_LIMITS)
            except ProtocolError as error:
                raise BundleError(f"{self.name}: {artifact.name} is not usable: {error}") from error
            if len(files) != 1:
                raise BundleError(f"{self.name}: {artifact.name} is not usable: it holds no file")
            files[0].replace(target)

    def _read(self, artifact: Artifact, start: int, length: int) -> bytes:
        entry = self._entries.get(artifact.name)
        if entry is None:
            # What is asked for first is mostly the beginning: it comes along with what stands before it.
            ahead = self._range(artifact, 0, HEAD_LENGTH + start + length if start <= HEAD_LENGTH else HEAD_LENGTH)
            try:
                entry = self._entries[artifact.name] = entry_at(ahead[:HEAD_LENGTH])
            except ProtocolError as error:
                raise BundleError(f"{self.name}: {artifact.name} is not usable: {error}") from error
            if entry.offset + min(entry.size, start + length) <= len(ahead):
                return ahead[entry.offset :][: entry.size][start : start + length]
        length = min(length, entry.size - start)
        return self._range(artifact, entry.offset + start, length) if length > 0 else b""

    def _range(self, artifact: Artifact, start: int, length: int) -> bytes:
        with _content_of(artifact):
            return self._client.read_range(artifact, start, length, seconds=self._call_seconds).data

    def _bounded(self, what: str, seconds: float, call: Callable[[], _T]) -> _T:
        return bounded(self.name, what, seconds, call)


def _all_of(pieces: Iterable[bytes | FilePart]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, FilePart):
            yield from FileSlice(piece.path, piece.offset, piece.length)
        else:
            yield piece


@contextmanager
def _content_of(artifact: Artifact) -> Iterator[None]:
    try:
        yield
    except HttpStatusError as error:
        if error.status not in {404, 410}:  # at an address that was renewed until then
            raise
        raise MissingEntryError(f"the content of {artifact.name} is gone") from error
