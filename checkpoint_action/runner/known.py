"""What a job's archives tell of its steps: every record there is, in the newest."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from checkpoint_action.runner.signing import signed
from checkpoint_action.runner.sources import Source, sources_to_json
from checkpoint_action.store.codec import record_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Record

__all__ = ["Known"]


class Known:
    """The records that are handed on to other machines. Threads may share one.

    :param job: the job's name in the store.
    :param signing_key: what archives are signed with, if they are.
    :ivar sources: the files that the run began with.
    """

    def __init__(self, job: str, signing_key: bytes | None = None) -> None:
        self._job = job
        self._signing_key = signing_key
        self._lock = threading.Lock()
        self._records: dict[str, Record] = {}
        self._told: dict[str, str] = {}
        self.sources: dict[str, Source] = {}

    def update(self, records: Mapping[str, Record], told: Mapping[str, str] = MappingProxyType({})) -> None:
        """Take over records, in the place of those of the same steps.

        :param told: by step, the key of the archive that was the first to tell the record.
        """
        with self._lock:
            self._records.update(records)
            self._told.update(told)

    def forget(self, step: str) -> None:
        """What was kept of a step is not handed on any more."""
        with self._lock:
            self._records.pop(step, None)

    def of(self, step: str) -> Record | None:
        """What is handed on of a step."""
        with self._lock:
            return self._records.get(step)

    def with_progress(self, record: Record) -> Record:
        """A record of an unfinished step, with the progress that is handed on of it as it is."""
        known = self.of(record.step)
        return record if known is None else replace(record, partial=known.partial)

    def header(self, key: str, added: Mapping[str, Record]) -> dict[str, Any]:
        """What an archive says.

        :param key: what it will be kept under.
        :param added: the records that are new in it.
        """
        with self._lock:
            records = {**self._records, **added}
            told = {**self._told, **dict.fromkeys(added, key)}
        header = {
            "job": self._job,
            "records": {step: record_to_json(record) for step, record in records.items()},
            # A finished step's record names its archive, which is the one.
            "told": {step: told[step] for step, one in records.items() if one.archive is None and step in told},
            "sources": sources_to_json(self.sources),
        }
        return header if self._signing_key is None else signed(header, key, self._signing_key)
