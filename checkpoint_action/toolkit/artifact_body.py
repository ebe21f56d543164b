"""The body of an artifact on its way: cut into blocks, counted, and held against its digest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.artifact_zip import read_file
from checkpoint_action.toolkit.errors import DigestError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["Blocks", "check_digest"]


class Blocks:
    """Pieces of any length as blocks of one length, counted and hashed on the way. To be gone through once.

    :param block: bytes of each but the last.
    :ivar size: bytes so far.
    """

    def __init__(self, pieces: Iterable[bytes], block: int) -> None:
        self.size = 0
        self._sha256 = hashlib.sha256()
        self._pieces = pieces
        self._block = block

    @property
    def digest(self) -> str:
        """The digest of the bytes so far, as the service writes it."""
        return f"sha256:{self._sha256.hexdigest()}"

    def __iter__(self) -> Iterator[bytes]:
        waiting = bytearray()
        for piece in self._pieces:
            self.size += len(piece)
            self._sha256.update(piece)
            waiting += piece
            while len(waiting) >= self._block:
                yield bytes(waiting[: self._block])
                del waiting[: self._block]
        if waiting:
            yield bytes(waiting)


def check_digest(body: Path, expected: str, *, check: Callable[[], None]) -> str:
    """The digest of a file as the service writes it, when it is the expected one.

    :param expected: ``sha256:<hex>``; empty if anything is right.
    :param check: called now and then; what it raises ends the work.
    :raises DigestError: it is another.
    :raises ProtocolError: another kind of digest is expected.
    """
    kind, _, wanted = expected.strip().lower().partition(":")
    if expected and kind != "sha256":
        raise ProtocolError(f"the artifact has a digest of a kind that cannot be checked: {kind!r}")
    sha256 = hashlib.sha256()
    for piece in read_file(body):
        sha256.update(piece)
        check()
    if expected and sha256.hexdigest() != wanted:
        raise DigestError(f"the artifact's body has the digest {sha256.hexdigest()}, but was stored with {wanted}")
    return f"sha256:{sha256.hexdigest()}"
