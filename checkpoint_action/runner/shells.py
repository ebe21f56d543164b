"""From a step's text to a program and its arguments, as GitHub's runner starts them."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.model import SYSTEM_SHELL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checkpoint_action.model import Step

__all__ = ["check_shells", "forget_scripts", "shell_command"]

_FOLDER = "checkpoint-run-"

# The templates of the runner (ScriptHandlerHelpers.cs): what `shell: bash` means in a workflow it means here.
_TEMPLATES = {
    "bash": "bash --noprofile --norc -e -o pipefail {0}",
    "sh": "sh -e {0}",
    "python": "python {0}",
}
_SUFFIXES = {"python": ".py", "pwsh": ".ps1"}


def check_shells(steps: tuple[Step, ...], env: Mapping[str, str]) -> None:
    """See that each step's shell is there before anything runs.

    :param env: the environment whose ``PATH`` counts.
    :raises UsageError: one is missing.
    """
    missing: dict[str, str] = {}
    found: set[str] = set()
    for step in steps:
        path = {**env, **step.inherited_env, **step.env}.get("PATH")
        program = _words(step.shell)[0]
        if program in found or program in missing:
            continue
        if _which(program, path) is None:
            missing[program] = step.id
        found.add(program)
    for program, step_id in missing.items():
        hint = "install it or set another shell" if program != "bash" else "install it or set 'shell: sh'"
        raise UsageError(f"step '{step_id}': the shell '{program}' is not on PATH; {hint}", Kind.NO_SHELL)


@contextmanager
def shell_command(step: Step, env: Mapping[str, str], token: str = "") -> Iterator[tuple[str, ...]]:
    """The program and arguments that run a step's text, for as long as the context is open.

    :param env: the environment whose ``PATH`` finds the shell.
    :param token: goes into the name of the script's folder, see :func:`forget_scripts`.
    :raises OSError: the script file cannot be written.
    """
    if step.shell == SYSTEM_SHELL:  # noqa: SIM102  # type checkers follow a platform test only when it stands alone
        if sys.platform != "win32":
            yield ("sh", "-c", step.command)
            return
    words = _words(step.shell)
    words[0] = _which(words[0], env.get("PATH")) or words[0]
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{token}-", ignore_cleanup_errors=True) as folder:
        script = Path(folder, "step" + _SUFFIXES.get(step.shell, ".sh"))
        if step.shell == SYSTEM_SHELL:
            script = script.with_suffix(".cmd")
        text = step.command if step.command.endswith("\n") else step.command + "\n"
        if step.shell == "pwsh":
            # As the runner does: stop at the first error, and hand on the code of the last program.
            text = f"$ErrorActionPreference = 'stop'\n{text}if ((Test-Path -LiteralPath variable:\\LASTEXITCODE))"
            text += " { exit $LASTEXITCODE }\n"
        elif step.shell == SYSTEM_SHELL:
            text = f"@echo off\n{text}".replace("\n", "\r\n")
        script.write_bytes(text.encode("utf-8", "surrogateescape"))
        yield tuple(word.replace("{0}", str(script)) for word in words)


def forget_scripts(folder: str, token: str) -> None:
    """Remove what a killed run left of :func:`shell_command`.

    :param folder: where temporary folders lie.
    """
    for left in Path(folder).glob(f"{_FOLDER}{token}-*"):
        shutil.rmtree(left, ignore_errors=True)


def _words(shell: str) -> list[str]:
    if shell == SYSTEM_SHELL:
        # A script file, since cmd has no way to quote a whole command on its own command line.
        return ["cmd", "/D", "/E:ON", "/V:OFF", "/C", "{0}"] if sys.platform == "win32" else ["sh"]
    if shell == "pwsh":
        return ["pwsh", "-command", ". '{0}'"]
    return shlex.split(_TEMPLATES.get(shell, shell)) or [shell]


def _which(program: str, path: str | None) -> str | None:
    found = shutil.which(program, path=path)
    if found is None and program == "python":
        # Debian and others only have python3.
        return shutil.which("python3", path=path)
    return found
