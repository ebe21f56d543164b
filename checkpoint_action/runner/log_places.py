"""Where the output of steps is kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from checkpoint_action.jobfile.values import log_name

if TYPE_CHECKING:
    from checkpoint_action.model import Job, Step

__all__ = ["log_of"]


def log_of(job: Job, step: Step) -> str:
    """The file that gets the output of a step; empty where none does."""
    if step.log is not None:
        return str(step.log)
    return "" if job.logs is None else os.path.join(job.logs, log_name(step.id))
