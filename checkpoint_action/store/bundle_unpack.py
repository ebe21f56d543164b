"""One layer of an archive into a folder of its own, held against its manifest member by member."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from checkpoint_action.errors import BundleError
from checkpoint_action.store.bundle_pack import FOLDER
from checkpoint_action.store.frames import Frame, FrameReader, frames
from checkpoint_action.store.paths import ancestors, check_layer, check_name, refuse_collisions
from checkpoint_action.store.tarstream import END, members, padding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from checkpoint_action.model import Entry, Layer

__all__ = ["unpack_layer"]

CHUNK = 1 << 20
NEW = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def unpack_layer(archive: Path, name: str, layer: Layer, side: Path) -> None:
    """Put the files and folders of the layer ``name`` into the folder ``side``: new, or empty and ours alone.

    Every member is in the manifest exactly once, with its type, size, digest or target, and nothing is missing;
    anything else is a ``BundleError``, with nothing left in ``side``. The manifest's sizes are the limit of what is
    decompressed and written. Links are verified but not made here (so nothing can be written through one), and modes
    and times are not set: :func:`~checkpoint_action.store.apply.apply_layer` does both from the manifest.
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
                _unpack(file, f"{FOLDER}/{name}/", layer, side)
        except BaseException:
            _empty(side)
            raise
    except OSError as error:
        raise BundleError(f"cannot unpack layer {name}: {error}") from error


def _unpack(file: BinaryIO, prefix: str, layer: Layer, side: Path) -> None:
    # The whole framing is walked first: an archive that is cut off is found before a byte is written.
    found = list(frames(file))
    if len(found) < 2 or FrameReader(file, found[-1]).read(len(END) + 1) != END:
        raise BundleError("the archive is cut off")
    missing = {entry.path: entry for entry in layer.entries}
    target = _Target(side)
    for frame in found[1:-1]:
        if _belongs(file, frame, prefix):
            _unpack_frame(FrameReader(file, frame), prefix, missing, target)
    if missing:
        raise BundleError(f"the archive lacks {min(missing)!r}")


def _belongs(file: BinaryIO, frame: Frame, prefix: str) -> bool:
    """Whether the first member of the frame, and so all of them, is in the layer."""
    first = next(members(FrameReader(file, frame)), None)  # an empty layer is an empty frame
    return first is not None and first.name.startswith(prefix)


def _unpack_frame(stream: FrameReader, prefix: str, missing: dict[str, Entry], target: _Target) -> None:
    for member in members(stream):
        entry = missing.pop(member.name.removeprefix(prefix), None) if member.name.startswith(prefix) else None
        if entry is None:
            raise BundleError(f"the archive's {member.name!r} is not in the manifest, or there twice")
        if (member.type, member.size, member.target) != (entry.type, entry.size, entry.target):
            raise BundleError(f"the archive's {entry.path!r} is not what the manifest says")
        if entry.type == "dir":
            target.make_folders((*ancestors(entry.path), entry.path))
        elif entry.type == "file":
            with target.new_file(entry.path) as file:
                _copy_content(stream, entry, file)
            stream.read_exactly(padding(entry.size))


def _copy_content(stream: FrameReader, entry: Entry, file: BinaryIO) -> None:
    digest = hashlib.sha256()
    left = entry.size
    while left:
        chunk = stream.read(min(CHUNK, left))
        if not chunk:
            raise BundleError(f"the archive ends in the middle of {entry.path!r}")
        digest.update(chunk)
        file.write(chunk)
        left -= len(chunk)
    if digest.hexdigest() != entry.sha256:
        raise BundleError(f"the archive's {entry.path!r} has not the content that the manifest says")


class _Target:
    """The folder that is unpacked into: ours alone, and without a link in it."""

    def __init__(self, side: Path) -> None:
        self._side = str(side)
        self._made: set[str] = set()

    def make_folders(self, paths: Iterable[str]) -> None:
        for path in paths:
            if path not in self._made:
                self._made.add(path)
                Path(self._side, path).mkdir(mode=0o700)

    def new_file(self, path: str) -> BinaryIO:
        self.make_folders(ancestors(path))
        return open(os.open(f"{self._side}/{path}", NEW, 0o600), "wb")  # noqa: PTH123 - an open number, not a path


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
