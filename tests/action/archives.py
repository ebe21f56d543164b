"""What the service holds of a job: looked into, taken away, damaged and forged."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

from checkpoint_action.store.bundle import read_header, write_archive
from checkpoint_action.store.frames import content as content_of
from checkpoint_action.store.frames import frames

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.actions_service.entries import Entry
    from tests.actions_service.server import ActionsService

__all__ = ["Held"]


class Held:
    """The archives of a service, oldest first.

    :param folder: a folder of its own.
    """

    def __init__(self, service: ActionsService, folder: Path) -> None:
        self._service = service
        self._folder = folder
        self._folder.mkdir()

    @property
    def entries(self) -> list[Entry]:
        return sorted((one for one in self._service.entries.all.values() if one.complete), key=lambda one: one.created)

    def content(self, entry: Entry) -> bytes:
        """Its archive, which came by the second version of the service."""
        return self._service.blobs.content[entry.blob]

    def header(self, entry: Entry) -> dict[str, Any]:
        """What an archive says first."""
        path = self._folder / "archive"
        path.write_bytes(self.content(entry))
        return read_header(path)

    def records(self) -> dict[str, Any]:
        """What the newest archive tells of each step."""
        found: dict[str, Any] = self.header(self.entries[-1])["records"]
        return found

    def statuses(self) -> dict[str, str]:
        """How each step stands for the next machine."""
        return {step: record["status"] for step, record in self.records().items()}

    def everything(self) -> bytes:
        """All bytes that the service was ever sent, decompressed where they are compressed."""
        pieces = []
        for request in self._service.requests:
            pieces += [request.target.encode(), request.body]
        for content in (*self._service.blobs.content.values(), *self._service.v1.archives.values()):
            file = io.BytesIO(content)
            if zipfile.is_zipfile(file):  # logs of steps
                with zipfile.ZipFile(file) as packed:
                    pieces += [packed.read(name) for name in packed.namelist()]
                continue
            pieces += [content_of(file, frame, 1 << 30) for frame in frames(file) if frame.note is None]
        return b"\n".join(pieces)

    def evict(self, entry: Entry) -> None:
        """Let the service lose an entry."""
        del self._service.entries.all[entry.number]
        del self._service.blobs.content[entry.blob]

    def damage(self, entry: Entry) -> None:
        """Change bytes near the end, which belong to the last layer."""
        content = self.content(entry)
        middle = len(content) - 60
        flipped = bytes(byte ^ 0xFF for byte in content[middle : middle + 20])
        self._service.blobs.content[entry.blob] = content[:middle] + flipped + content[middle + 20 :]

    def forge(self, change: Callable[[dict[str, Any]], object]) -> Entry:
        """Put an archive beside the newest one that says something else, with the same layers.

        :param change: gets the header, to change it.
        """
        newest = self.entries[-1]
        header = self.header(newest)
        file = io.BytesIO(self.content(newest))
        layers: list[Path] = []
        for frame in list(frames(file))[1:-1]:
            if frame.note is not None:  # with which each layer begins
                layers.append(self._folder / f"layer-{len(layers)}")
                layers[-1].write_bytes(b"")
            file.seek(frame.offset)
            with layers[-1].open("ab") as layer:
                layer.write(file.read(frame.size))
        key = f"{newest.key[:-8]}{len(self.entries):08x}"
        for record in header["records"].values():
            for part in (record, record.get("partial") or {}):
                if (part.get("archive") or {}).get("key") == newest.key:
                    part["archive"]["key"] = key
        change(header)
        target = self._folder / "forged"
        write_archive(header, layers, target)
        entry = self._service.entries.reserve(newest.scope, key, newest.version)
        self._service.blobs.content[entry.blob] = target.read_bytes()
        self._service.entries.complete(entry, target.stat().st_size)
        return entry
