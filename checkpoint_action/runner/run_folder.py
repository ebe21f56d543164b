"""The folder of a run: what it lends to its steps for as long as it lasts."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

from checkpoint_action.runner.value_files import ValueFilesPool
from checkpoint_action.store.folders import check_owner

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.runner.handed_on import Seen
    from checkpoint_action.runner.value_files import ValueFiles

__all__ = ["RunFolder"]

_NOTHING = "{}"

# Isolated (-I -S), as a step's own Python settings and its folder are no business of ours.
_PROGRAM = """\
import sys
sys.path[:] = {path!r}
from checkpoint_action.__main__ import entry
sys.exit(entry())
"""


class RunFolder:
    """Files through which steps hand on values, requests to save, and ``checkpoint-run`` as a command for them.

    :param path: absolute; made anew, with what an earlier run left in it removed. The caller holds the job's lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.programs = path / "bin"
        self.requests = path / "requests"
        self._values = path / "values"
        self._pool = ValueFilesPool(self._values)
        self._nothing = path / "no-outputs.json"

    def make(self) -> None:
        """Make it.

        :raises OSError: it cannot be made.
        """
        self.remove()
        self._build()

    def _build(self) -> None:
        for folder in (self.path, self.programs, self.requests, self._values):
            # What could not be removed, as somebody has it open on Windows, does no harm.
            folder.mkdir(mode=0o700, parents=folder == self.path, exist_ok=True)
            if folder == self.path:
                check_owner(folder.parent, [folder])
        self._nothing.write_text(_NOTHING, "ascii")
        self._write_program()

    def remove(self) -> None:
        """Remove it with all it holds."""
        shutil.rmtree(self.path, ignore_errors=True)

    def take_value_files(self) -> ValueFiles:
        """Empty files for one try of a step; from whatever thread.

        :raises OSError: they cannot be made.
        """
        try:
            return self._pool.take()
        except FileNotFoundError:  # a step has removed the folder, with the state perhaps
            self._build()
            return self._pool.take()

    def give_back(self, files: ValueFiles, *, alone: bool) -> None:
        """A try is over.

        :param alone: whether nothing of the try is left that could still write.
        """
        self._pool.give_back(files, alone=alone)

    def outputs_file(self, seen: Seen, token: str) -> Path:
        """A file with the outputs of the steps before, as JSON.

        :raises OSError: it cannot be written.
        """
        if not seen.outputs:
            return self._nothing
        path = self._values / f"{token}-steps.json"
        path.write_text(seen.document(), "ascii")
        return path

    def search_path(self, path: str | None, seen: Seen) -> str | None:
        """``PATH`` for a step: what earlier steps put in front, and our own command behind all else.

        :param path: what it would be otherwise; none is left alone unless something is to be added.
        """
        if path is None and not seen.path:
            return None
        return os.pathsep.join([*reversed(seen.path), os.defpath if path is None else path, str(self.programs)])

    def _write_program(self) -> None:
        program = self.programs / "checkpoint-run.py"
        program.write_text(_PROGRAM.format(path=[os.path.abspath(folder) for folder in sys.path]), "utf-8")  # noqa: PTH100
        python = sys.executable or "python3"
        plain = self.programs / "checkpoint-run"
        line = f'exec {shlex.quote(python)} -I -S {shlex.quote(str(program))} "$@"'
        plain.write_bytes(b"#!/bin/sh\n" + os.fsencode(line) + b"\n")
        plain.chmod(0o700)
        if sys.platform == "win32":  # for cmd and PowerShell; the other one is for Git Bash
            text = f'@"{python.replace("%", "%%")}" -I -S "%~dp0{program.name}" %*\r\n'
            (self.programs / "checkpoint-run.cmd").write_bytes(text.encode("utf-8"))
