"""For each step: skip, restore or run, and why. ``plan`` and ``run`` decide by this code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Decision, Entry, Layer, Plan, Reason, Record, Status
from checkpoint_action.runner.fingerprint import explain_change, fingerprint, fingerprint_parts
from checkpoint_action.runner.hashing import ContentDigests, never
from checkpoint_action.runner.outputs import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from checkpoint_action.model import Job, Step

__all__ = ["Ownership", "Planner", "plan_job"]

_BEFORE = {
    Status.FAILED: Reason.FAILED_BEFORE,
    Status.TIMEOUT: Reason.TIMED_OUT_BEFORE,
    Status.INTERRUPTED: Reason.INTERRUPTED_BEFORE,
    Status.RUNNING: Reason.INTERRUPTED_BEFORE,
    Status.PENDING: Reason.NEVER_RAN,
}


class Ownership:
    """Which done step last wrote each path.

    A path must be as the last done step that owns it left it: an earlier step is not blamed for a later one's edit.
    """

    def __init__(self) -> None:
        self._claims: dict[str, dict[int, Entry | None]] = {}

    def put(self, position: int, old: Layer, new: Layer) -> None:
        """A step's layer takes the place of its former one.

        :param position: the step's place in the job.
        """
        for path in _paths(old):
            claims = self._claims.get(path, {})
            claims.pop(position, None)
            if not claims:
                self._claims.pop(path, None)
        for entry in new.entries:
            self._claims.setdefault(entry.path, {})[position] = entry
        for path in new.deleted:
            self._claims.setdefault(path, {})[position] = None

    def wanted(self, paths: list[str]) -> dict[str, Entry | None]:
        """What each path should be; ``None`` where a step removed it."""
        wanted: dict[str, Entry | None] = {}
        for path in paths:
            claims = self._claims[path]
            wanted[path] = claims[max(claims)]
        return wanted

    def known_contents(self, path: str) -> set[str]:
        """Each content that a done step left at a path; an empty text where one removed it."""
        return {entry.content if entry else "" for entry in self._claims.get(path, {}).values()}


def _paths(layer: Layer) -> list[str]:
    return [*(entry.path for entry in layer.entries), *layer.deleted]


class Planner:
    """Decides on one step at a time, with what is known by then.

    :param records: the job's records; the caller keeps them up to date through :meth:`recorded`.
    :param env: the outside environment.
    :param forced: run every step.
    :param selected: ids of steps that run whatever is recorded of them.
    :param stopped: whether to give up; asked while files are read, which then raises :class:`StoppedError`.
    """

    def __init__(
        self,
        job: Job,
        records: Mapping[str, Record],
        env: Mapping[str, str],
        *,
        forced: bool = False,
        selected: Collection[str] = (),
        stopped: Callable[[], bool] = never,
    ) -> None:
        self._job = job
        self._env = env
        self._forced = forced
        self._selected = frozenset(selected)
        self._positions = {step.id: number for number, step in enumerate(job.steps)}
        self._records: dict[str, Record] = {}
        self.digests = ContentDigests(stopped)
        self.ownership = Ownership()
        for step in job.steps:
            if step.id in records:
                self.recorded(records[step.id])

    def recorded(self, record: Record) -> None:
        """Take note of a new record of a step."""
        old = self._records.get(record.step)
        self._records[record.step] = record
        self.ownership.put(self._positions[record.step], _owned(old), _owned(record))

    def parts(self, step: Step) -> dict[str, str]:
        """What the step's fingerprint consists of now."""
        needs = {need: self._result(need) for need in step.needs}
        return fingerprint_parts(step, self._job.root, self._env, needs, self.digests, movable=self._job.movable)

    def _result(self, step: str) -> str:
        record = self._records.get(step)
        return record.result if record is not None and record.status is Status.DONE else "not done"

    def decide(self, step: Step, parts: Mapping[str, str]) -> Decision:
        """What to do with a step whose needs are settled.

        :param parts: of :meth:`parts`.
        """
        record = self._records.get(step.id)
        if step.id in self._selected:
            return Decision(step.id, Action.RUN, Reason.SELECTED)
        if self._forced:
            return Decision(step.id, Action.RUN, Reason.FORCED)
        if step.always:
            return Decision(step.id, Action.RUN, Reason.ALWAYS)
        if record is None:
            return Decision(step.id, Action.RUN, Reason.NEVER_RAN)
        if record.status is not Status.DONE:
            return Decision(step.id, Action.RUN, _BEFORE[record.status], record.error)
        if fingerprint(parts) != record.fingerprint:
            reason, detail = explain_change(record.parts, parts, record.command, step.command)
            return Decision(step.id, Action.RUN, reason, detail)
        return self._look_at_outputs(step, record)

    def _look_at_outputs(self, step: Step, record: Record) -> Decision:
        paths = _paths(record.layer)
        difference = verify(paths, self.ownership.wanted(paths), self._job.root, self.digests)
        if difference is None:
            return Decision(step.id, Action.SKIP, Reason.DONE)
        if record.archive is not None:
            return Decision(step.id, Action.RESTORE, Reason.RESTORED, difference[1])
        return Decision(step.id, Action.RUN, *difference)


def _owned(record: Record | None) -> Layer:
    return record.layer if record is not None and record.status is Status.DONE else Layer()


def plan_job(
    job: Job,
    records: Mapping[str, Record],
    env: Mapping[str, str],
    *,
    forced: bool = False,
    selected: Collection[str] = (),
) -> Plan:
    """What a run would do now; looks and writes nothing.

    A step whose need is going to run is planned to run too: whether that leaves the same result is only known then.
    """
    planner = Planner(job, records, env, forced=forced, selected=selected)
    running: set[str] = set()
    decisions = []
    for step in job.steps:
        decision = planner.decide(step, planner.parts(step))
        first = next((need for need in step.needs if need in running), None)
        if decision.action is not Action.RUN and first is not None:
            decision = Decision(
                step.id,
                Action.RUN,
                Reason.NEEDS_CHANGED,
                f"{first} runs first; skipped after all if it leaves the same",
            )
        if decision.action is Action.RUN:
            running.add(step.id)
        decisions.append(decision)
    return Plan(job.name, tuple(decisions))
