"""Objects of a bucket, read: in parts side by side, and whole from a server that knows no parts."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from checkpoint_action.store.layout import place
from checkpoint_action.store.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from typing import BinaryIO

    from obstore.store import ObjectStore as Bucket

__all__ = ["PART", "SIDE_BY_SIDE", "ObjectReader", "path_of"]

PART = 8 << 20
"""Bytes of a request where an archive goes or comes in several."""

SIDE_BY_SIDE = 4
"""Such requests at a time."""


def path_of(key: str) -> str:
    """Where in a bucket the entry with this key lies.

    :raises StoreError: it cannot be a key here.
    """
    return "/".join(part for part in place(key) if part)


class ObjectReader:
    """What reads the entries of one bucket; it raises what the library does, and knows no limit of time.

    :ivar sends_all: known of a server that sends all of an object, whatever part is asked for.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self.sends_all = False

    def size(self, key: str) -> int:
        """Bytes of an entry.

        :raises FileNotFoundError: there is none, or its key is only reserved.
        """
        import obstore  # noqa: PLC0415  # an extra

        size = obstore.head(self._bucket, path_of(key))["size"]
        if not size:
            raise FileNotFoundError(f"{key} is only reserved")
        return size

    def copy(self, key: str, file: BinaryIO) -> None:
        """Write an entry's content to an open file."""
        size = self.size(key)
        if size > PART and not self.sends_all:
            try:
                self._copy_in_parts(key, size, file)
                return
            except Exception as error:
                if not self._finds_ranges_ignored(error):
                    raise
                file.seek(0)
                file.truncate()
        file.writelines(self._from_its_first_byte(key))

    def part(self, key: str, start: int, length: int) -> bytes:
        """Some bytes of an entry's content, fewer where it ends before."""
        if length <= 0:
            return b""
        if self.sends_all:
            return self._passed_over(key, start, length)
        try:
            return self._range(key, start, length)
        except FileNotFoundError:
            raise
        except Exception as error:
            if self._finds_ranges_ignored(error):
                return self._passed_over(key, start, length)
            if start < self.size(key):
                raise
            return b""

    def rest(self, key: str, start: int, take: Callable[[bytes], object]) -> None:
        """Have an entry's content from byte ``start`` on, as it comes with what is before it."""
        self.size(key)  # what is only reserved is no entry
        passed = 0
        for data in self._from_its_first_byte(key):
            if passed + len(data) > start:
                take(data[max(start - passed, 0) :])
            passed += len(data)

    def _copy_in_parts(self, key: str, size: int, file: BinaryIO) -> None:
        starts = deque(range(0, size, PART))
        ahead: deque[Future[bytes]] = deque()
        with Workers(SIDE_BY_SIDE) as workers:
            while starts or ahead:
                while starts and len(ahead) < SIDE_BY_SIDE:
                    start = starts.popleft()
                    ahead.append(workers.start(self._range, key, start, min(PART, size - start)))
                file.write(ahead.popleft().result())

    def _passed_over(self, key: str, start: int, length: int) -> bytes:
        """A part of an object, by reading what is before it too."""
        wanted = bytearray()
        for part in self._from_its_first_byte(key, 64 << 10):
            wanted += part[start : start + length - len(wanted)]
            start = max(0, start - len(part))
            if len(wanted) >= length:
                break
        return bytes(wanted)

    def _from_its_first_byte(self, key: str, least: int = 1 << 20) -> Iterator[bytes]:
        """All of an object, as it comes.

        :param least: bytes that come at once.
        """
        import obstore  # noqa: PLC0415

        return map(bytes, obstore.get(self._bucket, path_of(key)).stream(min_chunk_size=least))

    def _finds_ranges_ignored(self, error: Exception) -> bool:
        """Whether a server has sent all of an object, as rclone's does; the library has no error of its own for it."""
        ignored = "non-partial" in str(error)
        self.sends_all = self.sends_all or ignored
        return ignored

    def _range(self, key: str, start: int, length: int) -> bytes:
        import obstore  # noqa: PLC0415

        return bytes(obstore.get_range(self._bucket, path_of(key), start=start, length=length))
