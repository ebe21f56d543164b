"""From a step's text to a program and its arguments, as GitHub's runner starts them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.model import SYSTEM_SHELL
from checkpoint_action.runner.programs import program_in
from checkpoint_action.store.folders import check_owner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checkpoint_action.model import Step

__all__ = ["Scripts", "ShellCommand", "check_shells", "forget_scripts", "programs_of", "shell_command"]

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
    outside = env.get("PATH")
    for step in steps:
        path = step.env.get("PATH", step.inherited_env.get("PATH", outside))
        program = _words(step.shell)[0]
        if program in found or program in missing:
            continue
        if _which(program, path) is None:
            missing[program] = step.id
        found.add(program)
    for program, step_id in missing.items():
        hint = "install it or set another shell" if program != "bash" else "install it or set 'shell: sh'"
        raise UsageError(f"step '{step_id}': the shell '{program}' is not on PATH; {hint}", Kind.NO_SHELL)


def programs_of(steps: Sequence[Step]) -> list[tuple[str, str]]:
    """The programs that :func:`check_shells` looks for, each with its first step's own ``PATH``, which may be empty."""
    found: dict[str, str] = {}
    for step in steps:
        found.setdefault(_words(step.shell)[0], {**step.inherited_env, **step.env}.get("PATH", ""))
    return list(found.items())


class Scripts:
    """Files with the texts of running steps, in a temporary folder made with the first; from whatever thread.

    A file is written again and again: file systems are slow at making what is soon removed again.

    :ivar token: goes into the folder's name, see :func:`forget_scripts`.
    """

    def __init__(self) -> None:
        self.token = os.urandom(8).hex()
        self._folder = ""
        self._made = 0
        self._free: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def take(self, data: bytes, suffix: str) -> str:
        """A file with a text, until it is given back.

        :raises OSError: it cannot be written.
        """
        with self._lock:
            if not os.path.isdir(self._folder):  # a step may clear up all that is temporary
                self._folder = tempfile.mkdtemp(prefix=f"{_FOLDER}{self.token}-")
                self._free.clear()
            # Of that name, somebody else may have made one since.
            check_owner(os.path.dirname(self._folder), [self._folder])
            free = self._free.setdefault(suffix, [])
            if free:
                script = free.pop()
            else:
                self._made += 1
                script = os.path.join(self._folder, f"step-{self._made}{suffix}")
        _write_over(script, data)
        return script

    def give_back(self, script: str, *, alone: bool) -> None:
        """A shell has ended.

        :param alone: whether nothing is left that could still read the file.
        """
        if alone:
            with self._lock:
                self._free.setdefault(os.path.splitext(script)[1], []).append(script)
        else:
            with suppress(OSError):  # it is gone, or somebody has it open on Windows
                os.unlink(script)

    def close(self) -> None:
        """Remove the folder."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _write_over(path: str, data: bytes) -> None:
    """Without emptying the file first, which has some file systems put the new content on the disk at once."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(number, view) :]
        os.ftruncate(number, len(data))
    finally:
        os.close(number)


class ShellCommand(NamedTuple):
    """What runs a step's text.

    :param argv: program and arguments.
    :param script: the file that the shell reads it from, where it does; to be given back.
    """

    argv: tuple[str, ...]
    script: str | None = None


def shell_command(step: Step, env: Mapping[str, str], scripts: Scripts) -> ShellCommand:
    """The program and arguments that run a step's text.

    :param env: the environment whose ``PATH`` finds the shell.
    :param scripts: where the text goes if the shell reads it from a file.
    :raises OSError: the script file cannot be written.
    """
    if step.shell == SYSTEM_SHELL:  # noqa: SIM102  # type checkers follow a platform test only when it stands alone
        if sys.platform != "win32":
            return ShellCommand(("sh", "-c", step.command))
    words = list(_words(step.shell))
    words[0] = _which(words[0], env.get("PATH")) or words[0]
    suffix = ".cmd" if step.shell == SYSTEM_SHELL else _SUFFIXES.get(step.shell, ".sh")
    text = step.command if step.command.endswith("\n") else step.command + "\n"
    if step.shell == "pwsh":
        # As the runner does: stop at the first error, and hand on the code of the last program.
        text = f"$ErrorActionPreference = 'stop'\n{text}if ((Test-Path -LiteralPath variable:\\LASTEXITCODE))"
        text += " { exit $LASTEXITCODE }\n"
    elif step.shell == SYSTEM_SHELL:
        text = f"@echo off\n{text}".replace("\n", "\r\n")
    script = scripts.take(text.encode("utf-8", "surrogateescape"), suffix)
    return ShellCommand(tuple(word.replace("{0}", script) for word in words), script)


def forget_scripts(folder: str, token: str) -> None:
    """Remove what a killed run left of :func:`shell_command`.

    :param folder: where temporary folders lie.
    """
    for left in Path(folder).glob(f"{_FOLDER}{token}-*"):
        shutil.rmtree(left, ignore_errors=True)


@lru_cache(maxsize=64)
def _words(shell: str) -> Sequence[str]:
    if shell == SYSTEM_SHELL:
        # A script file, since cmd has no way to quote a whole command on its own command line.
        return ["cmd", "/D", "/E:ON", "/V:OFF", "/C", "{0}"] if sys.platform == "win32" else ["sh"]
    if shell == "pwsh":
        return ["pwsh", "-command", ". '{0}'"]
    return shlex.split(_TEMPLATES.get(shell, shell)) or [shell]


def _which(program: str, path: str | None) -> str | None:
    found = None
    if sys.platform != "win32" and path and os.sep not in program:
        found = program_in(path.split(os.pathsep), program)
    if found is None:
        found = shutil.which(program, path=path)
    if found is None and program == "python":
        # Debian and others only have python3.
        return shutil.which("python3", path=path)
    return found
