"""One layer of an archive into a folder of its own, held against its manifest byte by byte."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from collections import deque
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.errors import BundleError
from checkpoint_action.store.bundle_pack import SMALL, layer_note, member_headers
from checkpoint_action.store.frames import Frame, content, frames
from checkpoint_action.store.paths import ancestors, check_layer, check_name, refuse_collisions
from checkpoint_action.store.pieces import PieceReader
from checkpoint_action.store.tarstream import BLOCK, END, padding
from checkpoint_action.store.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

    from typing_extensions import ParamSpec

    from checkpoint_action.model import Entry, Layer

    _P = ParamSpec("_P")

__all__ = ["unpack_layer"]

NEW = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
MOST_IN_BATCH = 256
LARGEST_BATCH = 1 << 20
"""Files, and about how many bytes of them, that one call to a worker makes."""

ZEROS = bytes(BLOCK)


def unpack_layer(archive: Path, name: str, layer: Layer, side: Path) -> None:
    """Put the files and folders of the layer ``name`` into the folder ``side``: new, or empty and ours alone.

    The layer is to the byte the tar stream that its manifest stands for, with every file's digest; anything else is a
    ``BundleError``, with nothing left in ``side``. No more is decompressed and written than the manifest names. Links
    are verified but not made here (so nothing can be written through one), and folders are ours alone for now:
    :func:`~checkpoint_action.store.apply.apply_layer` sees to both. Files have their mode and time where an open file
    can be given them.
    """
    check_name(name)
    check_layer(layer)
    try:
        side.mkdir(mode=0o700, exist_ok=True)
        if any(side.iterdir()):
            raise BundleError(f"the folder to unpack into is not empty: {side}")
        try:
            refuse_collisions(layer, side)
            _refuse_without_room(layer, side)
            with archive.open("rb") as file:
                rows = _rows_of(file, name)
                with Workers() as workers, Workers(1) as hasher:
                    _unpack(PieceReader(file, rows, workers), name, layer, _Target(side, workers, hasher))
        except BaseException:
            _empty(side)
            raise
    except OSError as error:
        raise BundleError(f"cannot unpack layer {name}: {error}") from error


def _rows_of(file: BinaryIO, name: str) -> list[Frame]:
    """The frames of a layer. All framing is walked: an archive that is cut off is found before a byte is written."""
    found = list(frames(file))
    if len(found) < 2 or found[-1].content != len(END) or content(file, found[-1], len(END)) != END:
        raise BundleError("the archive is cut off")
    layers: dict[bytes, list[Frame]] = {}
    rows: list[Frame] | None = None
    for frame in found[1:-1]:
        if frame.note is not None:
            if frame.note in layers:
                raise BundleError("the archive has a layer twice")
            rows = layers[frame.note] = []
        elif rows is None:
            raise BundleError("the archive has something that is in no layer")
        else:
            rows.append(frame)
    if layer_note(name) not in layers:
        raise BundleError(f"the archive lacks the layer {name}")
    return layers[layer_note(name)]


def _unpack(stream: PieceReader, name: str, layer: Layer, target: _Target) -> None:
    for entry, header in member_headers(name, layer):
        if stream.take(len(header)) != header:
            raise BundleError(f"the archive has not the {entry.path!r} that the manifest says")
        if entry.type == "dir":
            target.make_folders((*ancestors(entry.path), entry.path))
        elif entry.type == "file":
            target.make_file(entry, stream)
            if stream.take(padding(entry.size)) != ZEROS[: padding(entry.size)]:
                raise BundleError(f"the archive has something after {entry.path!r}")
    target.finish()
    if not stream.ended():
        raise BundleError("the archive has more than the manifest says")


class _Target:
    """The folder that is unpacked into: ours alone, and without a link in it.

    Small files are made by the workers, some of one folder at a time: for the system to make a file can take far longer
    than all else that is done for it.

    :param hasher: one thread.
    """

    def __init__(self, side: Path, workers: Workers, hasher: Workers) -> None:
        self._side = str(side)
        self._made: set[str] = {""}
        self._workers = workers
        self._hasher = hasher
        self._under_way: deque[Future[None]] = deque()
        self._batch: list[tuple[Entry, memoryview]] = []
        self._batch_size = 0
        self._folder = ""

    def make_folders(self, paths: tuple[str, ...]) -> None:
        """Make folders, outermost first, that are not there yet."""
        for path in paths:
            if path not in self._made:
                self._made.add(path)
                os.mkdir(f"{self._side}/{path}", 0o700)  # noqa: PTH102 - a string is all that very many need

    def make_file(self, entry: Entry, stream: PieceReader) -> None:
        """Make a file of the bytes that come next, and see that they are its own."""
        folder = entry.path.rpartition("/")[0]
        if folder not in self._made:
            self.make_folders(tuple(ancestors(entry.path)))
        if entry.size <= SMALL:
            if folder != self._folder or len(self._batch) == MOST_IN_BATCH or self._batch_size > LARGEST_BATCH:
                self._make_batch()
                self._folder = folder
            self._batch.append((entry, stream.take(entry.size)))
            self._batch_size += entry.size
            return
        number = self._new(entry)
        try:
            digest = hashlib.sha256()
            for part in stream.parts(entry.size):
                self._start(self._hasher, digest.update, part)
                _write(number, part)
            self._start(self._hasher, _check, digest.hexdigest, entry)
            _stamp(number, entry)
        finally:
            os.close(number)

    def finish(self) -> None:
        """Wait until every file is made and looked at, and raise what has come of that."""
        self._make_batch()
        while self._under_way:
            self._under_way.popleft().result()

    def _make_batch(self) -> None:
        if self._batch:
            self._start(self._workers, self._make_small, self._batch)
            self._batch, self._batch_size = [], 0

    def _make_small(self, files: list[tuple[Entry, memoryview]]) -> None:
        for entry, data in files:
            _check(hashlib.sha256(data).hexdigest, entry)
            number = self._new(entry)
            try:
                _write(number, data)
                _stamp(number, entry)
            finally:
                os.close(number)

    def _new(self, entry: Entry) -> int:
        return os.open(f"{self._side}/{entry.path}", NEW, 0o600)

    def _start(self, workers: Workers, call: Callable[_P, None], *given: _P.args, **named: _P.kwargs) -> None:
        """Have something done; not too much at once, so that memory stays flat."""
        self._under_way.append(workers.start(call, *given, **named))
        while len(self._under_way) > self._workers.width + 2:
            self._under_way.popleft().result()


def _stamp(number: int, entry: Entry) -> None:
    if sys.platform != "win32":  # there a read-only file could not be removed again
        os.fchmod(number, entry.mode & 0o777)
        os.utime(number, ns=(entry.mtime_ns, entry.mtime_ns))


def _check(hexdigest: Callable[[], str], entry: Entry) -> None:
    if hexdigest() != entry.sha256:
        raise BundleError(f"the archive's {entry.path!r} has not the content that the manifest says")


def _write(number: int, data: memoryview) -> None:
    while data:
        data = data[os.write(number, data) :]


def _refuse_without_room(layer: Layer, side: Path) -> None:
    needed = sum(entry.size for entry in layer.entries)
    if needed > shutil.disk_usage(side).free:
        raise BundleError(f"no room for {needed} bytes in {side}")


def _empty(side: Path) -> None:
    with contextlib.suppress(OSError):
        for child in side.iterdir():
            if child.is_dir():
                shutil.rmtree(child, ignore_errors=True)
            else:
                child.unlink()
