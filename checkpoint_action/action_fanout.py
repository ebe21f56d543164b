"""A job on several machines, as the action has it: what is to run next, and what need not be put back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, StoreError, UsageError
from checkpoint_action.jobfile.values import unknown_id
from checkpoint_action.model import Action, Status
from checkpoint_action.runner.events import Warned
from checkpoint_action.runner.fanout import Level, files_of, foresee_level, matrix_text, part_of, to_judge
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.runner.selection import Selection
from checkpoint_action.runner.settled import Settled, everywhere
from checkpoint_action.toolkit import core
from checkpoint_action.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.model import Job, Plan, Record
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.events import Listener
    from checkpoint_action.runner.keys import KeyScheme

__all__ = ["FanOut", "Level", "only_part", "set_level"]


def only_part(job: Job, only: str) -> Job:
    """The part of a job that one machine runs.

    :param only: id of the step it is there for; empty for the whole job.
    :raises UsageError: the job has no such step.
    """
    if not only:
        return job
    ids = [step.id for step in job.steps]
    if only not in ids:
        raise UsageError(
            f"input only: '{only}': no step has this id{unknown_id(only, ids, 'give the id of one step')}",
            Kind.NO_SUCH_STEP,
        )
    return part_of(job, only)


class FanOut:
    """What the machines of a job have done so far.

    :param records: what is known of the steps.
    :param keys: those of the job's checkpoints; where they are not shared, there is but one machine.
    :param env: the environment that steps start with.
    """

    def __init__(
        self,
        job: Job,
        records: Mapping[str, Record],
        checkpoints: Checkpoints,
        keys: KeyScheme,
        env: Mapping[str, str],
    ) -> None:
        self._job = job
        self._records = dict(records)
        self._is_shared = keys.shared
        self._settled = Settled.of(job, records, checkpoints.told, keys) if keys.shared else Settled()
        self._checkpoints = checkpoints
        self._env = env
        self._back: set[str] = set()

    def plan(self, listen: Listener, hide: Callable[[str], str]) -> tuple[Level, list[str]]:
        """The next level, and the ids of what is done; said in the log.

        :param hide: takes secrets out of a text.
        """
        from checkpoint_action.report.tables import plan_lines  # noqa: PLC0415  # most uses run steps

        planned, level = self._judged()
        for line in plan_lines(planned):
            core.info(hide(line))
        done = _done(planned)
        if self._checkpoints.off:
            listen(
                Warned(
                    "without a store the machines of a job do not find what the others have done: "
                    f"no step gets a machine of its own ({self._checkpoints.off})"
                )
            )
            return Level(), done
        for step in sorted(self._settled.failed):
            core.info(hide(f"step '{step}' has failed in this attempt; it is not tried again before the next"))
        names = ", ".join(level.steps) or "nothing"
        core.info(f"{len(done)} of {len(self._job.steps)} steps are done; to run now: {names}")
        return level, done

    def selection(self, *, everything: bool, needed_only: bool) -> Selection:
        """Which steps run here.

        :param everything: whether all do.
        :param needed_only: whether of those that are done only what a step that runs needs is put back.
        """
        if everything:
            return Selection(everything=True)
        if not needed_only and not self._is_shared:
            return Selection()
        fine = replace(self._settled, done=self._settled.done.union(_done(self._judged()[0])))
        left = self._not_needed(fine) if needed_only else frozenset()
        # What is shared was judged by what a machine of its own has; here will be what others have left, too.
        return Selection(settled=fine if self._is_shared else self._settled, left=left, back=frozenset(self._back))

    def _not_needed(self, fine: Settled) -> frozenset[str]:
        """Ids of the done steps whose files nothing that is going to run needs.

        :param fine: what is done for sure.
        """
        # What needs a step that always runs may have to run, too.
        planned = plan_job(self._job, self._records, self._env, selection=Selection(settled=fine))
        runs = {one.step for one in planned.decisions} - set(_done(planned)) | everywhere(self._job, self._records)
        needed = set(files_of(self._job, self._records, runs))
        done = {step for step, record in self._records.items() if record.status is Status.DONE}
        return frozenset(done - needed - runs)

    def _judged(self) -> tuple[Plan, Level]:
        """The plan, for which is put back what steps read by their inputs.

        That is only what steps have left that are done for sure. A step that is done before their files are there stays
        so: it does not need them, whatever they make of what it reads.
        """
        for step in self._checkpoints.lost(self._records):
            self._records[step] = replace(self._records[step], archive=None)
        contents: dict[str, set[str]] = {}
        for record in self._records.values():
            for path in record.layer.deleted:
                contents.setdefault(path, set()).add("")
            for entry in record.layer.entries:
                contents.setdefault(entry.path, set()).add(entry.content)
        settled, seen = self._settled, set[str]()
        self._back.clear()
        while True:
            planned, level = foresee_level(self._job, self._records, self._env, settled)
            settled = replace(settled, done=settled.done.union(_done(planned)))
            read = [step for step in to_judge(self._job, self._records, settled) if step in settled.done - seen]
            if not read:
                return planned, level
            seen.update(read)
            for step in read:
                try:
                    self._checkpoints.restore(self._records[step], lambda path: contents.get(path, ()))
                    self._back.add(step)
                except StoreError:  # as in a run: it is done again
                    self._records[step] = replace(self._records[step], archive=None)


def _done(planned: Plan) -> list[str]:
    """Ids of the steps that a plan does not run."""
    return [one.step for one in planned.decisions if one.action in (Action.SKIP, Action.RESTORE)]


def set_level(env: Mapping[str, str], level: Level, done: list[str] | None = None) -> None:
    """Set the outputs of a plan.

    :param env: of the process.
    :param done: ids of what is done; ``None`` where no plan was made.
    """
    with suppress(ToolkitError):  # the runner's file is gone: nobody can read outputs then
        core.set_output("matrix", matrix_text(level), env=env)
        core.set_output("pending", bool(level.steps), env=env)
        core.set_output("levels", level.levels, env=env)
        if done is not None:
            core.set_output("result", "success", env=env)
            core.set_output("incomplete", value=False, env=env)
            for name in ("ran", "restored", "failed"):
                core.set_output(name, [], env=env)
            core.set_output("skipped", done, env=env)
            core.set_output("seconds-saved", 0, env=env)
            core.set_output("outputs", {}, env=env)
            for name in ("state", "artifact"):
                core.set_output(name, "", env=env)
