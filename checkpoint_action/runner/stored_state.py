"""What an archive of a store tells of its job, read with no trust in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Status
from checkpoint_action.runner.handed_on import check_values
from checkpoint_action.runner.sources import Source, sources_from_json
from checkpoint_action.store.codec import record_from_json
from checkpoint_action.store.paths import check_layer, check_path

if TYPE_CHECKING:
    from checkpoint_action.model import Record

__all__ = ["StoredState", "state_of"]


@dataclass(frozen=True, slots=True)
class StoredState:
    """What an archive's header tells.

    :param told: by step, the key of the archive that was the first to tell its record.
    """

    records: dict[str, Record]
    sources: dict[str, Source]
    told: dict[str, str]


def state_of(header: dict[str, Any], job: str, key: str) -> StoredState:
    """Read a header, trusting nothing in it.

    :param key: what the archive is kept under.
    :raises BundleError: it is another job's, or a path leads out of the workspace.
    :raises ValueError: it is something else.
    """
    if header.get("job") != job:
        raise BundleError("it is another job's")
    rows = header.get("records")
    if not isinstance(rows, dict):
        raise ValueError("records: must be an object")  # noqa: TRY004  # bad data, not a bug
    records = {step: record_from_json(value) for step, value in rows.items()}
    told = header.get("told", {})
    if not isinstance(told, dict) or not all(isinstance(one, str) for one in told.values()):
        raise ValueError("told: must be an object with keys of archives")
    for record in records.values():
        check_values(record.values)
        check_layer(record.layer)
        if record.partial is not None:
            check_layer(record.partial.workspace)
            check_layer(record.partial.folder)
    sources = sources_from_json(header.get("sources", []))
    records = {
        step: replace(record, log=_log_here(record.log))
        for step, record in records.items()
        if record.status is not Status.PENDING and record.step == step
    }
    return StoredState(
        records,
        {path: source for path, source in sources.items() if _is_inside(path)},
        {step: one.archive.key if one.archive else told.get(step, key) for step, one in records.items()},
    )


def _is_inside(path: str) -> bool:
    try:
        check_path(path)
    except BundleError:
        return False
    return True


def _log_here(log: str) -> str:
    """Where a log of another machine may lie here: any other path of that machine is some file of somebody's here."""
    path = log.replace("\\", "/")
    name = path.rpartition("/")[2]
    return path if ":" not in path and _is_inside(path) else name if _is_inside(name) else ""
