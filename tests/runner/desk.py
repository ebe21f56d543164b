"""A queue of uploads to a store in memory, and all that it tells."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from checkpoint_action.model import ArchiveRef, Entry, Layer, Partial, Record, Status
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.runner.parcels import Parcel
from checkpoint_action.runner.uploads import Uploads
from checkpoint_action.store.bundle import pack_layer, read_header, unpack_layer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runner.memory_store import MemoryStore

__all__ = ["KEYS", "NO_PROGRESS", "PATIENCE", "Desk"]

KEYS = KeyScheme("run1", job_slug("demo", "demo"), "1", "1")
PATIENCE = 60.0  # seconds that nothing here takes
NO_PROGRESS = Partial(Layer(), Layer(), ArchiveRef("not yet", "x"))


class Desk:
    """A queue, and all that it tells."""

    def __init__(self, folder: Path, store: MemoryStore, **options: Any) -> None:
        self.folder = folder
        self.store = store
        self.warnings: list[str] = []
        self.kept: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.stopping = threading.Event()
        settings: dict[str, Any] = {"required": False, "is_stopping": self.stopping.is_set, **options}
        self.uploads = Uploads(
            store,
            KEYS,
            folder,
            warn=self.warnings.append,
            kept=lambda done, unfinished, _size: self.kept.append((done, unfinished)),
            **settings,
        )

    def parcel(self, step: str, status: Status = Status.DONE, *, text: str = "x") -> Parcel:
        """A step that has left a file, packed."""
        name = self.uploads.next_name(step)
        file = self.folder / f"{name}.layer"
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        (root / "f").write_text(text)
        info = (root / "f").stat()
        digest = hashlib.sha256(text.encode()).hexdigest()
        layer = Layer((Entry("f", "file", 0o644, info.st_mtime_ns, len(text), digest),))
        pack_layer(root, name, layer, file)
        record = Record(step, status, "f", "true", layer=layer if status is Status.DONE else Layer())
        if status is not Status.DONE:
            record = replace(record, partial=Partial(layer, Layer(), ArchiveRef("not yet", name)))
        return Parcel(record, name, (file,))

    def unpacked(self, step: str, pack: Callable[[Parcel], Parcel], *, awaited: bool = False) -> Parcel:
        """An unfinished step whose progress is to be packed when it is its turn."""
        packed = self.parcel(step, Status.INTERRUPTED)
        bare = replace(packed.record, partial=None)
        return Parcel(bare, packed.name, pack=lambda: pack(packed), awaited=awaited)

    def headers(self) -> list[dict[str, Any]]:
        """What each archive in the store says."""
        found = []
        for content in self.store.entries.values():
            path = self.folder / "read"
            path.write_bytes(content)
            found.append(read_header(path))
        return found

    def records(self) -> dict[str, Any]:
        """What the newest tells of each step."""
        found: dict[str, Any] = self.headers()[-1]["records"]
        return found

    def left(self) -> list[str]:
        """Packed layers and archives that lie about."""
        return sorted(path.name for path in self.folder.iterdir() if path.name.endswith((".layer", ".zst")))

    def bare(self, step: str, size: int) -> Parcel:
        """A step that has left a file of so many bytes that cannot be compressed, to be packed."""
        name = self.uploads.next_name(step)
        root = self.folder / f"root-{step}"
        root.mkdir(exist_ok=True)
        data = os.urandom(size)
        (root / "f").write_bytes(data)
        entry = Entry("f", "file", 0o644, (root / "f").stat().st_mtime_ns, size, hashlib.sha256(data).hexdigest())
        record = Record(step, Status.DONE, "f", "true", layer=Layer((entry,)))
        return Parcel(record, name, (self.folder / f"{name}.layer",))

    def pack(self, parcel: Parcel, told: Callable[[int], object] = lambda _size: None) -> None:
        """Pack it as it grows.

        :param told: gets what is told of its growth, after the queue.
        """
        with self.uploads.growing(parcel) as grown:

            def both(size: int) -> None:
                grown(size)
                told(size)

            root = self.folder / f"root-{parcel.record.step}"
            pack_layer(root, parcel.name, parcel.record.layer, parcel.files[0], grown=both)

    def restored(self, step: str, layer: Layer) -> bytes:
        """The file that a step has left, out of the archive that the newest one names for it."""
        where = self.records()[step]["archive"]
        archive, side = self.folder / "archive", self.folder / f"side-{step}"
        archive.write_bytes(self.store.entries[where["key"]])
        unpack_layer(archive, where["layer"], layer, side)
        return (side / "f").read_bytes()
