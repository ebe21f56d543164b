"""The artifacts that the service and REST both know."""

from __future__ import annotations

import hashlib
import itertools
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.actions_service.blobs import Blobs

__all__ = ["ArtifactItem", "ArtifactStore"]

_START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass
class ArtifactItem:
    """A reservation, and once complete an artifact.

    :ivar run: the attempt, ``<run>`` or ``<run>.<attempt>``: all of one run see each other's.
    """

    number: int
    run: str
    job: str
    name: str
    blob: str
    created: datetime
    version: int = 4
    expires_at: str = ""
    complete: bool = False
    size: int = 0
    digest: str = ""
    expired: bool = False

    @property
    def workflow_run(self) -> str:
        return self.run.split(".")[0]

    @property
    def created_text(self) -> str:
        return self.created.isoformat().replace("+00:00", "Z")


class ArtifactStore:
    """Artifacts of all runs. Times of creation grow; numbers do within an attempt, but fall from one to the next."""

    def __init__(self, blobs: Blobs) -> None:
        self.items: list[ArtifactItem] = []
        self.lock = threading.RLock()
        self._blobs = blobs
        self._serial = itertools.count(1)
        self._attempts: list[str] = []

    def reserve(self, run: str, job: str, name: str) -> ArtifactItem | None:
        """A reservation, or ``None`` when the name is taken in this attempt."""
        with self.lock:
            if any((item.run, item.name) == (run, name) for item in self.items):
                return None
            if run not in self._attempts:
                self._attempts.append(run)
            serial = next(self._serial)
            number = 10_000_000_000 - 1_000_000 * self._attempts.index(run) + serial
            created = _START + timedelta(seconds=serial)
            item = ArtifactItem(number, run, job, name, f"artifact-{number}", created)
            self.items.append(item)
            return item

    def add(self, name: str, content: bytes, *, run: str = "run-1", kind: str = "application/zip") -> ArtifactItem:
        """An artifact that is there as if some job had uploaded it."""
        item = self.reserve(run, "job-0", name)
        assert item is not None
        item.complete, item.size = True, len(content)
        item.digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self._blobs.content[item.blob] = content
        self._blobs.headers[item.blob] = {"content-type": kind}
        return item

    def of_run(self, workflow_run: str) -> list[ArtifactItem]:
        """The finished artifacts of all attempts of a run."""
        with self.lock:
            return [item for item in self.items if item.complete and item.workflow_run == workflow_run]

    def remove(self, item: ArtifactItem) -> None:
        """Delete an artifact; its name stays taken only while its attempt's upload had not ended."""
        with self.lock:
            self.items.remove(item)
            self._blobs.content.pop(item.blob, None)
