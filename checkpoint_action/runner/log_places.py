"""Where the output of steps is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.jobfile.values import log_name

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.model import Job, Step

__all__ = ["log_of"]


def log_of(job: Job, step: Step) -> Path | None:
    """The file that gets the output of a step; ``None`` where none does."""
    if step.log is not None or job.logs is None:
        return step.log
    return job.logs / log_name(step.id)
