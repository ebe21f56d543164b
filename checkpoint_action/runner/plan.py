"""For each step: skip, restore or run, and why. ``plan`` and ``run`` decide by this code."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.model import AUTO, Action, Decision, Entry, Layer, Plan, Reason, Record, Status, Values
from checkpoint_action.runner.ancestry import Ancestry, NearestLeavers
from checkpoint_action.runner.entries import entry_of
from checkpoint_action.runner.fingerprint import (
    NOT_AS_LEFT,
    TRACKED_INPUTS,
    declared_outputs,
    explain_change,
    fingerprint,
    fingerprint_parts,
)
from checkpoint_action.runner.foresight import Foresight
from checkpoint_action.runner.handed_on import HandedOn
from checkpoint_action.runner.hashing import ContentDigests, never
from checkpoint_action.runner.ignored import IgnoredFiles
from checkpoint_action.runner.outputs import differences, locate, verify
from checkpoint_action.runner.ownership import Ownership, paths_of
from checkpoint_action.runner.progress import covered
from checkpoint_action.runner.selection import Held, Selection
from checkpoint_action.runner.tracked import tracked_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from checkpoint_action.model import Job, Step

__all__ = ["Planner", "plan_job"]

_NOTHING = Layer()

_BEFORE = {
    Status.FAILED: Reason.FAILED_BEFORE,
    Status.TIMEOUT: Reason.TIMED_OUT_BEFORE,
    Status.INTERRUPTED: Reason.INTERRUPTED_BEFORE,
    Status.RUNNING: Reason.INTERRUPTED_BEFORE,
    Status.PENDING: Reason.NEVER_RAN,
}


class Planner:
    """Decides on one step at a time, with what is known by then.

    :param records: the job's records; the caller keeps them up to date through :meth:`recorded`.
    :param env: the outside environment.
    :param selection: which steps run whatever is recorded of them, and whether any other may.
    :param stopped: whether to give up; asked while files are read, which then raises :class:`StoppedError`.
    :param digests: instead of new ones; they ask by themselves whether to give up.
    :param at_rest: whether nothing runs meanwhile, so that what several steps read is looked at once.
    :param ignored: instead of new ones: what git ignores.
    """

    def __init__(
        self,
        job: Job,
        records: Mapping[str, Record],
        env: Mapping[str, str],
        *,
        selection: Selection | None = None,
        stopped: Callable[[], bool] = never,
        digests: ContentDigests | None = None,
        at_rest: bool = False,
        ignored: IgnoredFiles | None = None,
    ) -> None:
        self._job = job
        self._env = env
        self._selection = selection or Selection()
        self._records: dict[str, Record] = {}
        self.digests = digests or ContentDigests(stopped)
        self._ignored = ignored or IgnoredFiles(job.root, env)
        self._read: dict[
            str, str
        ] = {}  # by step, the digest of the tracked files as they are, where another one counts
        self._looked: dict[tuple[tuple[str, ...], Path], dict[str, str]] | None = {} if at_rest else None
        # Whoever goes on without the store whose scope made them count must find the same steps done.
        self._tracked = any(TRACKED_INPUTS in record.parts for record in records.values())
        self.ownership = Ownership()
        self._ancestry = Ancestry(job)
        self.handed_on = HandedOn(job, self._ancestry)
        self.held = Held(self._selection)
        self._leavers = NearestLeavers(job, self._ancestry)
        self._foresight = Foresight(job, self.held, self._ancestry)
        for step in job.steps:
            if step.id in records:
                self.recorded(records[step.id])

    def recorded(self, record: Record) -> None:
        """Take note of a new record of a step."""
        old = self._records.get(record.step)
        self._records[record.step] = record
        self._foresight.forget(record.step)
        self.held.forget(record.step)
        self._ignored.forget()
        position = self._ancestry.positions[record.step]
        step = self._job.steps[position]
        root = self._job.root
        owned = _owned(record, step, root)
        self.ownership.put(position, _owned(old, step, root), owned)
        self._leavers.put(record.step, leaves=bool(owned.entries or owned.deleted))
        self.handed_on.put(position, record.values if record.status is Status.DONE else Values())

    def to_stay(self, record: Record) -> set[str]:
        """Paths of a step that is to be put back which are as a later done step left them, and no archive has them.

        They would be lost, and that step with them. Where a step in between is to run, it needs them as they were then.
        """
        position = self._ancestry.positions[record.step]
        ids = [step.id for step in self._job.steps]
        stay = set()
        for path in paths_of(record.layer):
            try:
                present = entry_of(locate(self._job.root, path), path, self.digests)
            except OSError:
                continue
            last = self.ownership.stays(position, path, present)
            if last is None:
                continue
            after = [self._records.get(step) for step in ids[position + 1 : last + 1]]
            done = [one for one in after if one is not None and one.status is Status.DONE]
            if len(done) == len(after) and done[-1].archive is None:
                stay.add(path)
        return stay

    def restored(self) -> None:
        """Take note that the files of a step are back, among them some that git may ignore."""
        self._ignored.forget()

    def needs_no_look(self, step: Step) -> bool:
        """Whether no file has to be looked at to decide on a step that was never run, and for its start."""
        if step.inputs or step.tracked_inputs or self._tracked or step.id in self._records:
            return False
        return not any(self._leavers.of(need) for need in step.needs)

    def parts(self, step: Step) -> dict[str, str]:
        """What the step's fingerprint consists of now."""
        needs = {need: self._result(need) for need in step.needs}
        if self._tracked and step.inputs is None:
            step = replace(step, tracked_inputs=True)
        parts = fingerprint_parts(
            step,
            self._job.root,
            self._env,
            needs,
            self.digests,
            ignored=self._ignored,
            looked=self._looked,
            movable=self._job.movable,
        )
        if step.tracked_inputs:
            self._look_behind_later_steps(step, parts)
        return parts | self.handed_on.seen_by(step).parts(step)

    def _look_behind_later_steps(self, step: Step, parts: dict[str, str]) -> None:
        """Have tracked files count as the step found them, where it and later steps alone have changed them since."""
        self._read.pop(step.id, None)
        record = self._records.get(step.id)
        then = record.parts.get(TRACKED_INPUTS) if record is not None else None
        if then is None or then == parts[TRACKED_INPUTS]:
            return
        position = self._ancestry.positions[step.id]

        def found(path: str, present: Entry | None) -> str | None:
            return self.ownership.found_by(position, path, present)

        if tracked_digest(self._job.root, self.digests, self._env, found) == then:
            self._read[step.id] = parts[TRACKED_INPUTS]
            parts[TRACKED_INPUTS] = then

    def _result(self, step: str) -> str:
        if foreseen := self._foresight.result(step):
            return foreseen
        record = self._records.get(step)
        return record.result if record is not None and record.status is Status.DONE else "not done"

    def decide(self, step: Step, parts: Mapping[str, str]) -> Decision:
        """What to do with a step whose needs are settled.

        :param parts: of :meth:`parts`.
        """
        record = self._records.get(step.id)
        opener = self._foresight.opener(step, parts, record)
        # What is not known yet is taken to be as it was: what differs even then is why it runs.
        known = parts if opener is None or record is None else self._foresight.as_before(step, parts, record)
        known = self._selection.settled.parts(step.id, known, record)
        wish = self._judge(step, known, record)
        assumed = opener is not None and wish.action in (Action.SKIP, Action.RESTORE)
        if assumed:
            text = f"{opener} runs first; skipped after all if it leaves the same"
            wish = Decision(step.id, Action.RUN, Reason.NEEDS_CHANGED, text)
        decision = self.held.judge(step, wish, assumed=assumed)
        if wish.action is Action.RUN and (decision.action is Action.STOP or self._foresight.active):
            self._foresight.expect(step, parts, record, opener)
        self._foresight.decided(step, runs=decision.action is Action.RUN)
        return decision

    def _judge(self, step: Step, parts: Mapping[str, str], record: Record | None) -> Decision:
        died = record is not None and record.status is Status.RUNNING
        if died and step.on_crash == "stop" and step.id not in self._selection.named:
            return Decision(step.id, Action.STOP, Reason.INTERRUPTED_BEFORE, _what_to_do(step.id, self._job.words))
        reason = self._selection.reason(step.id)
        if reason is not None:
            return Decision(step.id, Action.RUN, reason)
        if step.always:
            return Decision(step.id, Action.RUN, Reason.ALWAYS)
        if record is None:
            return Decision(step.id, Action.RUN, Reason.NEVER_RAN)
        if record.status is not Status.DONE:
            return Decision(step.id, Action.RUN, _BEFORE[record.status], record.error)
        if fingerprint(parts) != record.fingerprint:
            reason, detail = explain_change(record.parts, parts, record.command, step.command)
            return Decision(step.id, Action.RUN, reason, detail)
        if record.withheld:
            return Decision(step.id, Action.RUN, Reason.HANDS_ON_SECRET, ", ".join(record.withheld))
        return self._look_at_outputs(step, record)

    def as_started(
        self, step: Step, parts: Mapping[str, str], beside: Collection[Step] = ()
    ) -> tuple[dict[str, str], list[str]]:
        """What a step that starts now consists of, and in words what it finds otherwise than a step it needs left it.

        Where somebody has changed that meanwhile, or a step that then failed has, it is made from something else than
        is on record, and is not the same any more once that is put right.

        :param parts: of :meth:`parts`.
        :param beside: steps that run now; what they declare to leave is in their hands.
        """
        started, notes = dict(parts), []
        if step.id in self._read:
            started[TRACKED_INPUTS] = self._read[step.id]
        position = self._ancestry.positions[step.id]
        for need in step.needs:
            for owner in self._leavers.of(need):
                left = self._job.steps[self._ancestry.positions[owner]]
                paths = paths_of(_owned(self._records[owner], left, self._job.root))
                wanted = self.ownership.wanted_before(position, paths)
                for path, present, reason, text in differences(paths, wanted, self._job.root, self.digests):
                    place = os.path.normpath(locate(self._job.root, path))
                    if any(covered(one.outputs, one.cwd, place, folder=True) for one in beside):
                        continue
                    # It may be this step's own edit, or a later one's, from the last time.
                    if isinstance(present, OSError) or not self.ownership.overwritten(position - 1, path, present):
                        started[f"needs {need}"] = NOT_AS_LEFT
                        notes.append(f"'{owner}' left something else ({reason.value}: {text})")
                        break
        return started, notes

    def foresee(self, step: Step) -> Decision:
        """What a run would do with a step, after those before it were foreseen in the job's order.

        What a step leaves that declares nothing is known before it runs, so that those that need it can be decided on.
        """
        self._foresight.active = True
        return self.decide(step, self.parts(step))

    def _look_at_outputs(self, step: Step, record: Record) -> Decision:
        paths = [
            path for path in paths_of(record.layer) if not self._foresight.is_remade(step, locate(self._job.root, path))
        ]
        difference = verify(paths, self.ownership.wanted(paths), self._job.root, self.digests)
        if difference is None:
            return Decision(step.id, Action.SKIP, Reason.DONE, "accepted" if record.accepted else "")
        if record.archive is not None:
            return Decision(step.id, Action.RESTORE, Reason.RESTORED, difference[1])
        return Decision(step.id, Action.RUN, *difference)


def _owned(record: Record | None, step: Step, root: Path) -> Layer:
    """What a record says of paths: nothing once its step is not done, and only of those that it still declares."""
    if record is None or record.status is not Status.DONE:
        return _NOTHING
    if not record.layer.entries and not record.layer.deleted:
        return record.layer
    if step.outputs == AUTO or _is_declared_alike(record, step, root):
        return record.layer
    entries = (
        entry
        for entry in record.layer.entries
        if covered(step.outputs, step.cwd, os.path.normpath(locate(root, entry.path)), folder=entry.type == "dir")
    )
    return Layer(tuple(entries))


def _is_declared_alike(record: Record, step: Step, root: Path) -> bool:
    then = {name: value for name, value in record.parts.items() if name.partition(" ")[0] == "output"}
    folder = record.parts.get("working-directory", "")
    same_folder = os.path.normpath(os.path.join(root, folder)) == os.path.normpath(step.cwd)  # noqa: PTH118
    return same_folder and then == declared_outputs(step)


def _what_to_do(step: str, words: str) -> str:
    return (
        "the run died in it, so it may have done its work; "
        f"'checkpoint-run accept {step}{words}' takes it as done, '--force {step}' runs it again"
    )


def plan_job(
    job: Job,
    records: Mapping[str, Record],
    env: Mapping[str, str],
    *,
    selection: Selection | None = None,
    digests: ContentDigests | None = None,
    ignored: IgnoredFiles | None = None,
) -> Plan:
    """What a run would do now; looks and writes nothing.

    A step that needs one that is going to run, and may leave something else than before, is planned to run too.
    """
    chosen = selection or Selection()
    planner = Planner(job, records, env, selection=chosen, digests=digests, at_rest=True, ignored=ignored)
    return Plan(job.name, tuple(planner.foresee(step) for step in chosen.scope(job)))
