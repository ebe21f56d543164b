"""Hostile texts, files, checkouts, neighbours and checkpoints, by the hundred. docs/threat-model.md says whose.

Each trial stands by itself and begins from the seed and its number, so that one can be had again alone.
"""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.torture import hostile_ci, hostile_jobs, hostile_layers, hostile_places
from tests.torture.hostile_actions import Actions
from tests.torture.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.torture.outcome import Scale

    Trial = Callable[[Path, random.Random], list[str]]

__all__ = ["torture"]

_LAYERS_AT_ONCE = 20
"""They are a thousand times quicker than a use of the action."""


def torture(folder: Path, scale: Scale) -> Outcome:
    """Each kind of trial in turn: one of each at least, whatever the time.

    :param folder: empty, and removed by the caller.
    :param scale: ``count`` rounds with one trial of each kind in them.
    """
    outcome = Outcome()
    end = time.monotonic() + scale.seconds
    with ExitStack() as stack:
        actions = Actions(folder / "actions")
        stack.callback(actions.close)
        kinds = _kinds(actions)
        for number in range(scale.count):
            for what, (trial, times) in kinds.items():
                if number and time.monotonic() > end:
                    return outcome
                for again in range(times):
                    seed = f"{scale.seed}-{what}-{number}-{again}"
                    with tempfile.TemporaryDirectory(prefix="t-", dir=folder, ignore_cleanup_errors=True) as place:
                        Path(place).chmod(0o755)
                        faults = trial(Path(place), random.Random(seed))
                    outcome.tried[what] += 1
                    outcome.faults += [f"{what}, {seed!r}: {fault}" for fault in faults]
    return outcome


def _kinds(actions: Actions) -> dict[str, tuple[Trial, int]]:
    """The trials by the words of the documentation's table, and how many of each are in a round."""
    kinds: dict[str, tuple[Trial, int]] = {
        "layers that lead out of the workspace": (hostile_layers.layer, _LAYERS_AT_ONCE),
        "folders that turn into links while a layer is put back": (hostile_layers.swapped, 1),
        "command lines with hostile words": (hostile_jobs.flags, 2),
        "job files and file names with hostile texts, every verb and page": (hostile_jobs.job_file, 1),
        "secrets in pieces, in values and in names of files": (hostile_jobs.secrets_kept, 1),
        "checkouts whose git settings name programs": (hostile_places.checkout, 1),
        "workspaces with modules of the names that are imported": (hostile_places.modules, 1),
        "integrations' script with hostile inputs": (hostile_ci.script, 2),
        "Buildkite's hook with hostile inputs": (hostile_ci.buildkite, 1),
        "uses of the action with hostile inputs, matrix and branches": (actions.inputs, 1),
        "forged checkpoints against a signing key": (actions.forged, 1),
        "forged checkpoints without a signing key": (actions.poisoned, 1),
        "secrets in the forms that uploaded logs are searched for": (actions.secrets, 1),
    }
    if hostile_places.strangers():
        kinds["state in a folder in which another user makes our files first"] = (hostile_places.shared_folder, 1)
    return kinds
