"""How a run behaves, apart from its job."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoint_action.runner.selection import Selection

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run behaves, apart from its job.

    :param selection: which steps run whatever is recorded of them, and whether any other may.
    :param jobs: how many steps may run at once.
    :param terminal: whether a step's output is a terminal, where it runs alone.
    :param mask_output: whether secrets are kept out of the steps' output, not only out of their logs.
    :param grace: seconds between asking a step to end and killing it.
    :param drain: seconds that uploads may take at the end of a run that was not stopped.
    :param drain_on_stop: the same after a signal.
    """

    selection: Selection = Selection()
    jobs: int = 1
    terminal: bool = False
    mask_output: bool = False
    grace: float = 10.0
    drain: float = 1800.0
    drain_on_stop: float = 4.0
