"""Steps that a person takes as done, as they are now, without running them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.model import AUTO, Action, Layer, Record, Status
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.outputs import MissingOutputError, collect, locate, result_for, result_of
from checkpoint_action.runner.plan import Planner
from checkpoint_action.runner.scan import UNREADABLE, entry_of
from checkpoint_action.runner.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from checkpoint_action.model import Decision, Entry, Job, Step

__all__ = ["accept_steps"]


def accept_steps(
    job: Job, records: Mapping[str, Record], env: Mapping[str, str], ids: Collection[str]
) -> dict[str, Record | None]:
    """The new record of each step that is accepted, in the job's order; ``None`` for one that is done as it is.

    Nothing is written. That a step says ``always`` is no reason here: it makes no step undone.

    :param env: the outside environment.
    :param ids: the job's steps to accept.
    :raises UsageError: a declared output is not there, or a step that is needed is not done.
    """
    plain = replace(job, steps=tuple(replace(step, always=False) for step in job.steps))
    planner = Planner(plain, records, env)
    accepted: dict[str, Record | None] = {}
    foreseen: dict[str, Decision] = {}
    for step in Selection(selected=frozenset(ids), only=True).scope(plain):
        if step.id not in ids:
            foreseen[step.id] = planner.foresee(step)
            continue
        for need in step.needs:
            if need in foreseen and foreseen[need].action in (Action.RUN, Action.STOP):
                raise UsageError(f"accept '{step.id}': {_not_done(foreseen[need])}", Kind.NOT_ACCEPTED)
        parts = planner.parts(step)
        if planner.decide(step, parts).action is Action.SKIP:
            accepted[step.id] = None
            continue
        accepted[step.id] = record = _accepted(step, plain, planner, records.get(step.id), parts)
        planner.recorded(record)
    return accepted


def _not_done(need: Decision) -> str:
    why = f"{need.reason.value}: {need.detail}" if need.detail else need.reason.value
    return f"it needs '{need.step}', which is not done ({why}); run that first, or accept it too"


def _accepted(step: Step, job: Job, planner: Planner, record: Record | None, parts: Mapping[str, str]) -> Record:
    known = record if record is not None and record.status is Status.DONE else None
    if known is not None and known.withheld:
        names = ", ".join(known.withheld)
        raise UsageError(
            f"accept '{step.id}': it hands on {names}, which is secret and so kept nowhere; it has to run",
            Kind.NOT_ACCEPTED,
        )
    before = Layer() if known is None else known.layer
    layer = _layer(step, job, planner, before)
    for entry in layer.entries:
        if entry.content == UNREADABLE:
            raise UsageError(
                f"accept '{step.id}': its output {entry.path} cannot be read; change its mode", Kind.NOT_ACCEPTED
            )
    same = result_of(layer) == result_of(before)
    mark = fingerprint(parts)
    layer = before if same else layer
    # Where it is not known what the step left, it is said to be what it was.
    unseen = known is not None and not layer.entries and not before.entries
    base = known or Record(step.id, Status.DONE, mark, step.command)
    return replace(
        base,
        fingerprint=mark,
        command=step.command,
        parts=parts,
        exit_code=None,
        error="",
        layer=layer,
        result=base.result if unseen else result_for(layer, mark),
        archive=base.archive if same else None,
    )


def _layer(step: Step, job: Job, planner: Planner, before: Layer) -> Layer:
    """What a step has left, as it is now; where a later step went on from it, as it was.

    :param before: what it left when it was last done.
    """
    position = job.steps.index(step)
    old = {entry.path: entry for entry in before.entries}

    def own(path: str, present: Entry | None) -> Entry | None:
        return old[path] if path in old and planner.ownership.overwritten(position, path, present) else present

    if step.outputs == AUTO:
        now = {path: entry_of(locate(job.root, path), path, planner.digests) for path in (*old, *before.deleted)}
        kept = {path: own(path, now[path]) for path in old}
        gone = tuple(path for path in before.deleted if now[path] is None)
        entries = tuple(entry for entry in kept.values() if entry is not None)
        known = {path: content for path, content in before.before.items() if path in gone or kept.get(path) is not None}
        return Layer(entries, gone, known)
    if not step.outputs:
        return Layer()
    try:
        left = collect(step.outputs, step.cwd, job.root, planner.digests)
    except MissingOutputError as error:
        text = f"its declared output {error.missing} is not there; make it, or let the step run"
        raise UsageError(f"accept '{step.id}': {text if error.missing else error}", Kind.NOT_ACCEPTED) from None
    except OSError as error:
        raise UsageError(f"accept '{step.id}': cannot look at its outputs: {error}", Kind.NOT_ACCEPTED) from None
    return Layer(tuple(own(entry.path, entry) or entry for entry in left.entries))
