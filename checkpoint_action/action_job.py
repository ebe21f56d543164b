"""The job that the action runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.resolve import load_job, load_steps, read_job_file
from checkpoint_action.runner.tracked import tracked_files
from checkpoint_action.toolkit import core

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.action_inputs import ActionInputs
    from checkpoint_action.model import Job

__all__ = ["job_of_inputs", "with_tracked_inputs"]

_FILES = ("checkpoint.yml", "checkpoint.yaml")


def job_of_inputs(inputs: ActionInputs) -> Job:
    """The job that the inputs give, in themselves or in a file.

    :raises UsageError: they give none, or two.
    :raises JobFileError: anything in it is not as documented.
    """
    if inputs.steps and inputs.file:
        raise UsageError("inputs steps and file exclude each other; put the steps into the file", Kind.INPUT_STEPS)
    if inputs.steps:
        return _within_budget(load_steps(inputs.steps, "steps", inputs.defaults), inputs)
    name = inputs.file or next((name for name in _FILES if (inputs.base / name).is_file()), "")
    if not name:
        raise UsageError(
            f"no steps; give the input steps, or file, or a {' or '.join(_FILES)} in the working directory",
            Kind.INPUT_STEPS,
        )
    path = inputs.base / name
    text = read_job_file(path, name)
    if "${{" in text:  # to bash it is a bad substitution, which says nothing to anybody
        core.warning(
            f"{name}: GitHub fills ${{{{ … }}}} in in workflows alone, not in a file: "
            "set a variable by 'env:' in the workflow, list it in 'pass-env', and use it in the step ($NAME)"
        )
    return _within_budget(load_job(text, name, inputs.defaults), inputs)


def _within_budget(job: Job, inputs: ActionInputs) -> Job:
    return job if inputs.budget is None else replace(job, budget=inputs.budget)


def with_tracked_inputs(job: Job, env: Mapping[str, str]) -> Job:
    """Where a checkpoint may serve another commit, all tracked files count for a step that does not say what it reads.

    :raises UsageError: git cannot tell them.
    """
    steps = tuple(replace(step, tracked_inputs=True) if step.inputs is None else step for step in job.steps)
    if any(step.tracked_inputs for step in steps):
        tracked_files(job.root, env)
    return replace(job, steps=steps)
