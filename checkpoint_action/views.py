"""The verbs that only look: ``plan``, ``graph``, ``status``, ``report`` and ``logs``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import UsageError
from checkpoint_action.intent import job_of, named_job, selection_of, state_paths
from checkpoint_action.jobfile.values import log_name, unknown_id
from checkpoint_action.model import Action, Reason, Status
from checkpoint_action.runner.journal import load
from checkpoint_action.runner.lock import JobLock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from checkpoint_action.intent import Surroundings
    from checkpoint_action.model import Job, Plan, Record

__all__ = ["graph", "logs", "plan", "report", "status"]


def plan(options: argparse.Namespace, around: Surroundings) -> int:
    """Say what a run would do, and why."""
    from checkpoint_action.report.tables import plan_json, plan_lines  # noqa: PLC0415  # only what the verb needs

    _, planned = _planned(options, around)
    for line in [plan_json(planned)] if options.json else plan_lines(planned):
        around.answer(line)
    return 0


def graph(options: argparse.Namespace, around: Surroundings) -> int:
    """Show the steps and what each needs, with what a run would do with each."""
    from checkpoint_action.report.graph import graph_lines, mermaid_lines, nodes_of  # noqa: PLC0415  # only for this

    job, planned = _planned(options, around)
    nodes = nodes_of(job, planned)
    if options.format == "svg":
        from checkpoint_action.report.svg import svg_lines  # noqa: PLC0415  # only for this

        lines = svg_lines(job.name, nodes)
    elif options.format == "mermaid":
        lines = mermaid_lines(nodes)
    else:
        from shutil import get_terminal_size  # noqa: PLC0415  # only for this

        lines = graph_lines(job.name, nodes, get_terminal_size().columns)
    for line in lines:
        around.answer(line)
    return 0


def _planned(options: argparse.Namespace, around: Surroundings) -> tuple[Job, Plan]:
    """The job and what a run would do with it, in the midst of one too."""
    from checkpoint_action.runner.masks import hide, secret_texts  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.runner.plan import plan_job  # noqa: PLC0415

    job = job_of(options)
    selection = selection_of(options, job)
    paths = state_paths(options, job.name)
    loaded = load(paths)
    around.warn(loaded.warnings)
    going_on = JobLock(paths.lock).held()
    if going_on:
        around.warn(["a run of this job is going on; this is how things stand in the middle of it"])
    digests = None
    if options.verify == "stat":
        from checkpoint_action.runner.digest_index import read_index  # noqa: PLC0415  # only where it is asked for
        from checkpoint_action.runner.hashing import ContentDigests  # noqa: PLC0415

        digests = ContentDigests(known=read_index(paths.index))
    records = loaded.records
    if going_on:  # what runs has not died in the middle, and nothing waits for a person
        records = {step: _as_stopped(record) for step, record in records.items()}
    planned = plan_job(job, records, around.env, selection=selection, digests=digests)
    if going_on:
        planned = _beside_a_run(planned, loaded.records)
    if not around.out.isatty():
        values = secret_texts(job.secrets, around.env)
        decisions = (replace(one, detail=hide(one.detail, values)) for one in planned.decisions)
        planned = replace(planned, decisions=tuple(decisions))
    return job, planned


def _as_stopped(record: Record) -> Record:
    return replace(record, status=Status.INTERRUPTED) if record.status is Status.RUNNING else record


def _beside_a_run(planned: Plan, records: Mapping[str, Record]) -> Plan:
    """A plan whose running steps are called so: they have not died."""
    running = {step for step, record in records.items() if record.status is Status.RUNNING}
    decisions = (
        replace(one, action=Action.RUN, reason=Reason.INTERRUPTED_BEFORE, detail="it is running right now")
        if one.step in running
        else one
        for one in planned.decisions
    )
    return replace(planned, decisions=tuple(decisions))


def status(options: argparse.Namespace, around: Surroundings) -> int:
    """Show what is recorded of each step."""
    from checkpoint_action.report.tables import status_json, status_lines  # noqa: PLC0415  # only what the verb needs

    name, steps = named_job(options)
    paths = state_paths(options, name)
    loaded = load(paths)
    around.warn(loaded.warnings)
    steps += [step for step in loaded.records if step not in steps]
    records = loaded.records
    if not JobLock(paths.lock).held():
        records = {step: _after_death(record) for step, record in records.items()}
    lines = [status_json(name, steps, records)] if options.json else status_lines(name, steps, records)
    for line in lines:
        around.answer(line)
    return 0


def report(options: argparse.Namespace, around: Surroundings) -> int:
    """Write what is recorded as one HTML page."""
    from checkpoint_action.report.html_report import write_page  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.runner.masks import secret_texts  # noqa: PLC0415

    job = job_of(options)
    paths = state_paths(options, job.name)
    loaded = load(paths)
    around.warn(loaded.warnings)
    steps = [step.id for step in job.steps]
    steps += [step for step in loaded.records if step not in steps]
    records = loaded.records
    if not JobLock(paths.lock).held():
        records = {step: _after_death(record) for step, record in records.items()}
    write_page(Path(options.page), job.name, steps, records, secret_texts(job.secrets, around.env))
    around.answer(f"wrote {options.page}")
    return 0


def _after_death(record: Record) -> Record:
    """A record as it reads when no run is on: what still says that it runs was cut off."""
    if record.status is not Status.RUNNING:
        return record
    return replace(record, status=Status.INTERRUPTED, error=record.error or "the run ended without a word")


def logs(options: argparse.Namespace, _around: Surroundings) -> int:
    """Print the output of a step's last try."""
    from checkpoint_action.report.follow import follow_log  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.report.terminal import StepOutput  # noqa: PLC0415

    name, steps = named_job(options)
    paths = state_paths(options, name)
    records = load(paths).records
    record = records.get(options.id)
    if record is None:
        if options.id in steps:
            raise UsageError(f"step '{options.id}' has not run yet, so it has no log")
        hint = unknown_id(options.id, [*steps, *records], "give the id of one step")
        raise UsageError(f"logs '{options.id}': {'no step has this id' if steps else 'no such step has run'}{hint}")
    if not record.log:
        why = "it was accepted and not run" if record.accepted else "it ran with --no-logs"
        raise UsageError(f"step '{options.id}' has no log; {why}")

    def running() -> bool:
        now = load(paths).records.get(options.id)
        return options.follow and now is not None and now.status is Status.RUNNING and JobLock(paths.lock).held()

    path = Path(record.log)
    if not path.exists():  # it was named from another folder
        path = paths.logs / log_name(options.id)
    output = StepOutput(1, shared=False)
    try:
        follow_log(path, output.write, running)
    except OSError as error:
        raise UsageError(f"cannot read the log {record.log}: {error.strerror}") from None
    output.check()
    return 0
