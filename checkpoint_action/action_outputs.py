"""What the action hands to the rest of the workflow job: its outputs, and what its steps hand on."""

from __future__ import annotations

from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from checkpoint_action.action_fanout import Level, set_level
from checkpoint_action.runner.events import Warned
from checkpoint_action.toolkit import core
from checkpoint_action.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.model import Values
    from checkpoint_action.runner.events import Listener, RunEnded

__all__ = ["hand_on", "set_outputs"]

_BLOCKED = "NODE_OPTIONS"  # the one variable that the runner refuses to take from a step


def hand_on(env: Mapping[str, str], handed: Mapping[str, Values], listen: Listener) -> None:
    """Have the rest of the workflow job see what the steps handed on, as if they had been steps of it."""
    ours = dict(env)
    try:
        for step, values in handed.items():
            for name, value in values.env.items():
                if name == _BLOCKED:
                    listen(Warned(f"step '{step}' sets {name}, which the runner lets no step do"))
                    continue
                core.export_variable(name, value, env=ours)
            for folder in values.path:
                core.add_path(folder, env=ours)
            if values.summary:
                core.append_summary(values.summary if values.summary.endswith("\n") else f"{values.summary}\n", env=env)
    except ToolkitError as error:
        listen(Warned(f"not all that the steps hand on reaches the steps after this one: {error}"))


def set_outputs(
    env: Mapping[str, str],
    ended: RunEnded | None,
    kept: Mapping[str, Values] = MappingProxyType({}),
    *,
    state: str = "",
) -> None:
    """Set the outputs of the action.

    :param ended: how the run ended; ``None`` where there was none.
    :param kept: what each step that was settled well hands on.
    :param state: path of the state file.
    """
    incomplete = ended is not None and ended.incomplete
    complete = ended is not None and ended.exit_code == 0
    with suppress(ToolkitError):  # the runner's file is gone: nobody can read outputs then
        core.set_output("result", "incomplete" if incomplete else "success" if complete else "failure", env=env)
        core.set_output("incomplete", incomplete, env=env)
        for name in ("ran", "skipped", "restored", "failed"):
            core.set_output(name, list(getattr(ended, name)) if ended else [], env=env)
        core.set_output("seconds-saved", round(ended.saved) if ended else 0, env=env)
        outputs = {step: dict(values.outputs) for step, values in kept.items() if values.outputs}
        core.set_output("outputs", outputs, env=env)
        core.set_output("state", state, env=env)
        core.set_output("artifact", "", env=env)
    set_level(env, Level())
