"""How long what is left of a run may take, from how long it took before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.model import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from checkpoint_action.model import Record, Step
    from checkpoint_action.runner.selection import Selection

__all__ = ["Known", "seconds_left"]


class Known:
    """What earlier runs tell.

    :param records: as they are before the run.
    :param selection: which steps run whatever is recorded of them.
    :ivar took: by step id, seconds that its last good try took.
    :ivar done: ids of the steps that are skipped where nothing of what they need runs.
    """

    def __init__(self, records: Mapping[str, Record], steps: Sequence[Step], selection: Selection) -> None:
        done = {step for step, record in records.items() if record.status is Status.DONE}
        done -= {step.id for step in steps if step.always or selection.everything}
        self.done = frozenset(done - selection.forced - selection.selected)
        self.took = {
            step: record.duration
            for step, record in records.items()
            if record.status is Status.DONE and not record.accepted
        }


def seconds_left(
    steps: Sequence[Step],
    known: Known,
    *,
    settled: Collection[str],
    ran: Collection[str],
    running: Mapping[str, float],
    jobs: int = 1,
) -> float | None:
    """Seconds until the end; ``None`` where a step that is likely to run has never ended well, or takes longer now.

    :param steps: all that the run looks at, in order.
    :param settled: ids of those that nothing more happens to.
    :param ran: ids of those among them that ran.
    :param running: by id, the seconds that a step has run for.
    :param jobs: how many may run at once.
    """
    fresh = {*ran, *running}
    ends: dict[str, float] = {}
    work = 0.0
    for step in steps:
        if step.id in settled:
            continue
        seconds = 0.0
        if step.id in running or step.id not in known.done or any(need in fresh for need in step.needs):
            fresh.add(step.id)
            took = known.took.get(step.id)
            if took is None or took < running.get(step.id, 0.0):
                return None
            seconds = took - running.get(step.id, 0.0)
        ends[step.id] = seconds + max((ends.get(need, 0.0) for need in step.needs), default=0.0)
        work += seconds
    return max(max(ends.values(), default=0.0), work / jobs)
