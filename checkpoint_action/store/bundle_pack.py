"""A layer's files into one Zstandard frame of tar members."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.errors import BundleError
from checkpoint_action.store import zstd
from checkpoint_action.store.atomic import replacing
from checkpoint_action.store.paths import check_layer, check_name
from checkpoint_action.store.tarstream import BLOCK, Member, member_header, padding
from checkpoint_action.store.tree import Tree, content_word, open_file, status

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.model import Entry, Layer

__all__ = ["FOLDER", "pack_layer"]

FOLDER = "layers"
"""The folder of an archive that holds its layers."""

CHUNK = 1 << 20


def pack_layer(root: Path, name: str, layer: Layer, target: Path) -> None:
    """Write the files of ``layer``, as they are in ``root``, to the file ``target`` as one frame of an archive.

    One pass, flat memory. What is packed is what the manifest says: a path that is no longer so is a ``BundleError``
    that names it, and so is a failure to read or write. ``target`` is complete or not there.

    :param name: the layer's name in the archive; one part of a path.
    """
    check_name(name)
    check_layer(layer)
    try:
        with Tree(root) as tree, replacing(target) as file:
            sink = _Sink(file, sum(entry.size + BLOCK for entry in layer.entries))
            for entry in sorted(layer.entries, key=lambda entry: entry.path):
                _pack_entry(tree, f"{FOLDER}/{name}/{entry.path}", entry, sink)
            sink.close()
    except OSError as error:
        raise BundleError(f"cannot pack layer {name}: {error}") from error


class _Sink:
    """What is written comes out compressed in a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._zstd = zstd.compressor(size)

    def write(self, data: bytes) -> None:
        self._file.write(self._zstd.compress(data))

    def close(self) -> None:
        self._file.write(self._zstd.flush())


def _pack_entry(tree: Tree, member: str, entry: Entry, sink: _Sink) -> None:
    try:
        where = tree.at(entry.path)
        if entry.type == "file":
            with open(open_file(where), "rb", buffering=0) as file:  # noqa: PTH123 - an open number, not a path
                sink.write(_header(member, entry))
                _pack_content(file, entry, sink)
            return
        if content_word(where, status(where)) != entry.content:
            raise _changed(entry)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _changed(entry) from error
    sink.write(_header(member, entry))


def _header(member: str, entry: Entry) -> bytes:
    mode = entry.mode & 0o777  # set-id and sticky bits do not travel
    plain = Member(member, entry.type, entry.size, entry.target)
    return member_header(plain, mode=mode, mtime=entry.mtime_ns // 1_000_000_000)


def _pack_content(file: BinaryIO, entry: Entry, sink: _Sink) -> None:
    if os.fstat(file.fileno()).st_size != entry.size:
        raise _changed(entry)
    digest = hashlib.sha256()
    left = entry.size
    while left:
        chunk = file.read(min(CHUNK, left))
        if not chunk:
            raise _changed(entry)
        digest.update(chunk)
        sink.write(chunk)
        left -= len(chunk)
    if digest.hexdigest() != entry.sha256 or file.read(1):
        raise _changed(entry)
    sink.write(bytes(padding(entry.size)))


def _changed(entry: Entry) -> BundleError:
    return BundleError(f"{entry.path} changed before it was packed")
