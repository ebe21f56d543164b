"""The completion script of each shell."""

from __future__ import annotations

from checkpoint_action.completion.bash import bash_script
from checkpoint_action.completion.fish import fish_script
from checkpoint_action.completion.powershell import powershell_script
from checkpoint_action.completion.zsh import zsh_script

__all__ = ["script"]

_SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script, "powershell": powershell_script}


def script(shell: str) -> str:
    """The completion script.

    :param shell: one of :data:`~checkpoint_action.grammar.SHELLS`.
    """
    return _SCRIPTS[shell]()
