"""The verbs that only look: ``plan``, ``graph``, ``status``, ``report`` and ``logs``."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.intent import asks_for_store, job_of, named_job, selection_of, state_paths
from checkpoint_action.jobfile.values import log_name, unknown_id
from checkpoint_action.model import Reason, Status
from checkpoint_action.report.lines import answer_in_pieces
from checkpoint_action.runner.journal import load
from checkpoint_action.runner.lock import JobLock
from checkpoint_action.runner.looking import foreseen, recorded

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from checkpoint_action.intent import Surroundings
    from checkpoint_action.model import Job, Plan, Record

__all__ = ["graph", "logs", "plan", "report", "status"]


def plan(options: argparse.Namespace, around: Surroundings) -> int:
    """Say what a run would do, and why."""
    from checkpoint_action.report.tables import plan_json, plan_lines  # noqa: PLC0415  # only what the verb needs

    if getattr(options, "matrix", False):
        return _matrix(options, around)
    _, planned = _planned(options, around)
    for line in [plan_json(planned)] if options.json else plan_lines(planned):
        around.answer(line)
    return 0


def _matrix(options: argparse.Namespace, around: Surroundings) -> int:
    """Print the steps that can run next, each on a machine of its own."""
    from checkpoint_action.runner.fanout import level_of, matrix_text, without_always  # noqa: PLC0415  # only for this

    job, planned = _planned(options, around, without_always)
    withheld = {one.step for one in planned.decisions if one.reason is Reason.HANDS_ON_SECRET}
    level = level_of(job, planned, withheld.union(step.id for step in job_of(options).steps if step.always))
    around.answer(matrix_text(level))
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


def _planned(
    options: argparse.Namespace, around: Surroundings, change: Callable[[Job], Job] = lambda job: job
) -> tuple[Job, Plan]:
    """The job and what a run would do with it, in the midst of one too.

    :param change: what the job is made into before.
    """
    from checkpoint_action.runner.masks import hide, secret_texts  # noqa: PLC0415  # only what the verb needs

    job = change(job_of(options))
    with _told(options, job, around) as (job, told):
        selection = selection_of(options, job)
        paths = state_paths(options, job.name)
        found = foreseen(job, paths, around.env, selection, trust_stat=options.verify == "stat", told=told)
    around.warn(found.warnings)
    planned = found.plan
    if not around.out.isatty():
        values = secret_texts(job.secrets, around.env)
        decisions = (replace(one, detail=hide(one.detail, values)) for one in planned.decisions)
        planned = replace(planned, decisions=tuple(decisions))
    return job, planned


@contextmanager
def _told(
    options: argparse.Namespace, job: Job, around: Surroundings
) -> Iterator[tuple[Job, Callable[[Mapping[str, Record]], Mapping[str, Record]]]]:
    """The job as a run sees it, and what asks the store, where there is one; nothing here is changed by it."""
    if not asks_for_store(options, around.env):
        yield job, lambda _records: {}
        return
    from checkpoint_action.runner.merging import choosing  # noqa: PLC0415  # only where a store is asked for
    from checkpoint_action.store.temporary import TemporaryFolder  # noqa: PLC0415
    from checkpoint_action.store_use import store_use_of  # noqa: PLC0415

    use = store_use_of(options, job, around.env)
    if use is None:
        yield job, lambda _records: {}
        return
    job = use.prepared(job, around.env)
    with TemporaryFolder("checkpoint-run-") as name:
        checkpoints = use.checkpoints(
            job, state_paths(options, job.name), folder=Path(name), warn=lambda text: around.warn([text])
        )
        ids, choose = [step.id for step in job.steps], choosing(job, around.env)
        yield job, lambda records: checkpoints.learn(ids, records, look_only=True, choose=choose)


def status(options: argparse.Namespace, around: Surroundings) -> int:
    """Show what is recorded of each step."""
    from checkpoint_action.report.tables import status_json, status_lines  # noqa: PLC0415  # only what the verb needs

    name, steps = named_job(options)
    found = recorded(state_paths(options, name))
    around.warn(found.warnings)
    records = found.records
    steps = [*dict.fromkeys((*steps, *records))]
    if options.json:
        answer_in_pieces(around.out, status_json(name, steps, records))
        return 0
    for line in status_lines(name, steps, records, options.rate):
        around.answer(line)
    return 0


def report(options: argparse.Namespace, around: Surroundings) -> int:
    """Write what is recorded as one HTML page."""
    from checkpoint_action.report.html_report import write_page  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.runner.masks import secret_texts  # noqa: PLC0415

    job = job_of(options)
    found = recorded(state_paths(options, job.name))
    around.warn(found.warnings)
    records = found.records
    steps = [step.id for step in job.steps]
    steps = [*dict.fromkeys((*steps, *records))]
    secrets = secret_texts(job.secrets, around.env)
    write_page(Path(options.page), job.name, steps, records, secrets, rate=options.rate)
    around.answer(f"wrote {options.page}")
    return 0


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
            raise UsageError(f"step '{options.id}' has not run yet, so it has no log", Kind.NO_LOG)
        hint = unknown_id(options.id, [*steps, *records], "give the id of one step")
        raise UsageError(
            f"logs '{options.id}': {'no step has this id' if steps else 'no such step has run'}{hint}",
            Kind.NO_SUCH_STEP,
        )
    if not record.log:
        why = "it was accepted and not run" if record.accepted else "it ran with --no-logs"
        raise UsageError(f"step '{options.id}' has no log; {why}", Kind.NO_LOG)

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
        raise UsageError(f"cannot read the log {record.log}: {error.strerror}", Kind.NO_LOG) from None
    output.check()
    return 0
