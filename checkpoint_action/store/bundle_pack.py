"""A layer's files into Zstandard frames of tar members.

A layer is a note with its name and then frames that each hold some MiB of its part of the tar stream, cut wherever one
was full, so that threads can compress them side by side, and decompress them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.errors import BundleError
from checkpoint_action.store.frames import note
from checkpoint_action.store.paths import check_layer, check_name
from checkpoint_action.store.pieces import PIECE, PieceWriter
from checkpoint_action.store.tarstream import member_header, padding
from checkpoint_action.store.tree import READ, Tree, content_word, status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from checkpoint_action.model import Entry, Layer

__all__ = ["FOLDER", "layer_note", "member_headers", "pack_layer"]

FOLDER = "layers"
"""The folder of an archive that holds its layers."""

SMALL = 1 << 16
"""Bytes up to which a file is hashed by the thread that reads it."""


def layer_note(name: str) -> bytes:
    """What the note says that a layer begins with."""
    return b"layer " + name.encode("utf-8", "surrogateescape")


def member_headers(name: str, layer: Layer) -> Iterator[tuple[Entry, bytes]]:
    """The layer's entries in the order of its tar stream, each with its header there."""
    for entry in sorted(layer.entries, key=lambda entry: entry.path):
        yield (
            entry,
            member_header(
                f"{FOLDER}/{name}/{entry.path}",
                entry.type,
                size=entry.size,
                target=entry.target,
                mode=entry.mode & 0o777,  # set-id and sticky bits do not travel
                mtime=entry.mtime_ns // 1_000_000_000,
            ),
        )


def pack_layer(
    root: Path, name: str, layer: Layer, target: Path, *, grown: Callable[[int], None] | None = None
) -> None:
    """Write the files of ``layer``, as they are in ``root``, to the file ``target`` as one layer of an archive.

    One pass, flat memory. What is packed is what the manifest says: a path that is no longer so is a ``BundleError``
    that names it, and so is a failure to read or write. ``target`` is written in place, in a folder of ours; it is
    complete when this returns, and gone when this fails.

    :param name: the layer's name in the archive; one part of a path.
    :param grown: told how many of the first bytes of ``target`` are final and have left this process, each time that
        there are more; from the thread that called. What it raises ends the packing.
    """
    check_name(name)
    check_layer(layer)
    try:
        with _in_place(target) as file, Tree(root) as tree, PieceWriter(file, note(layer_note(name)), grown) as sink:
            for entry, header in member_headers(name, layer):
                _pack_entry(tree, entry, header, sink)
            sink.finish()
    except OSError as error:
        raise BundleError(f"cannot pack layer {name}: {error}") from error


@contextlib.contextmanager
def _in_place(target: Path) -> Iterator[BinaryIO]:
    """A file written where it is to be, and removed where that fails."""
    with target.open("wb", buffering=0) as file:
        try:
            yield file
        except BaseException:
            file.close()  # Windows removes no open file
            with contextlib.suppress(OSError):
                target.unlink()
            raise


def _pack_entry(tree: Tree, entry: Entry, header: bytes, sink: PieceWriter) -> None:
    try:
        where = tree.at(entry.path)
        if entry.type == "file":
            number = os.open(where.name, READ, dir_fd=where.fd)
            try:
                found = os.fstat(number)
                if not stat.S_ISREG(found.st_mode) or found.st_size != entry.size:
                    raise _changed(entry)
                sink.write(header)
                _pack_content(number, entry, sink)
            finally:
                os.close(number)
            return
        if content_word(where, status(where)) != entry.content:
            raise _changed(entry)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _changed(entry) from error
    sink.write(header)


def _pack_content(number: int, entry: Entry, sink: PieceWriter) -> None:
    if entry.size <= SMALL:
        data = os.read(number, entry.size + 1)
        while len(data) < entry.size and (more := os.read(number, entry.size + 1 - len(data))):
            data += more
        if len(data) != entry.size or hashlib.sha256(data).hexdigest() != entry.sha256:
            raise _changed(entry)
        sink.write(data)
    else:
        digest = hashlib.sha256()
        left = entry.size
        while left:
            size = sink.read_from(number, min(PIECE, left), digest.update)
            if not size:
                raise _changed(entry)
            left -= size
        if os.read(number, 1):
            raise _changed(entry)

        def check() -> None:
            if digest.hexdigest() != entry.sha256:
                raise _changed(entry)

        sink.hash(check)
    sink.write(bytes(padding(entry.size)))


def _changed(entry: Entry) -> BundleError:
    return BundleError(f"{entry.path} changed before it was packed")
