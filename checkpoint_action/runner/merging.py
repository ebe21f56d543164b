"""What is recorded on this machine, and what a store tells of the same job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.model import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Record

__all__ = ["to_take_over"]


def to_take_over(local: Mapping[str, Record], told: Mapping[str, Record]) -> dict[str, Record]:
    """The records of ``told`` that go before this machine's own.

    A finished step goes before an unfinished one, else the later one before the earlier. Where this is wrong, as clocks
    differ, a step runs once more: its fingerprint decides in the end.

    :param local: by step, as this machine has it.
    :param told: by step, as a store tells it.
    """
    return {step: record for step, record in told.items() if step not in local or _goes_before(record, local[step])}


def _goes_before(told: Record, local: Record) -> bool:
    done, is_later = told.status is Status.DONE, told.started > local.started
    same = told.fingerprint == local.fingerprint
    if local.status is not Status.DONE:
        # A run that died here in a step may have done what must not be done twice: only that very step settles it.
        return done and (same or local.status is not Status.RUNNING)
    if not done:
        return False
    if same:
        return told.result == local.result and told.archive is not None and (local.archive is None or is_later)
    return is_later
