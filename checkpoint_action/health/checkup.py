"""All looks at this machine, in the order of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.health import machine
from checkpoint_action.health.actions import actions
from checkpoint_action.health.state_dir import state_dir
from checkpoint_action.health.stores import stores

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import TextIO

    from checkpoint_action.health.finding import Finding

__all__ = ["checkup"]


def checkup(env: Mapping[str, str], folder: Path, out: TextIO, *, store: str = "") -> list[Finding]:
    """Look at everything that a run depends on.

    :param env: the environment of a run.
    :param folder: the state dir.
    :param out: where a run's output would go.
    :param store: URL of the store that a run would use; empty for none.
    """
    return [
        machine.python(),
        machine.shells(env.get("PATH")),
        machine.git(env.get("PATH")),
        machine.zstandard(),
        machine.yaml(),
        *state_dir(folder),
        machine.temporary_folder(),
        machine.terminal(out, env.get("TERM")),
        machine.proxies(env),
        *actions(env),
        *stores(store),
    ]
