"""What a CI machine has: a fresh checkout of the sources, our command on its PATH, and its system's variables."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ROOT", "SAYS_WHAT_IT_GETS", "Ended", "checkout", "command_on_path", "git", "plain", "run", "valid"]

ROOT = Path(__file__).resolve().parents[2]

SAYS_WHAT_IT_GETS = """\
#!/bin/sh
if [ "$*" = --version ]; then echo "checkpoint-run 9.9.9"; exit; fi
for word in "$@"; do printf '%s\\0' "$word"; done >"$SAID_ARGUMENTS"
env >"$SAID_ENVIRONMENT"
while [ $# -gt 0 ]; do [ "$1" != --file ] || [ ! -e "$2" ] || cat "$2" >"$SAID_FILE"; shift; done
echo $$ >"$SAID_PID"
exit "${ITS_EXIT_CODE:-0}"
"""
"""Stands for checkpoint-run where it is looked at what reaches it."""


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    :ivar said: all it wrote.
    """

    code: int
    said: str


def run(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], *, timeout: float = 240) -> Ended:
    """Run a program to its end, with no more variables than these."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode("utf-8", "replace"))


def command_on_path(folder: Path, text: str = "") -> Path:
    """A folder with a command ``checkpoint-run``: this project's, or the one that ``text`` is."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "checkpoint-run"
    ours = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m checkpoint_action "$@"\n'
    if sys.version_info < (3, 11):  # without -P
        ours = ours.replace(" -P ", " ")
    program.write_text(text or ours)
    program.chmod(0o755)
    return folder


def plain(folder: Path, tools: Path | None) -> dict[str, str]:
    """The environment of a machine on which only the system's own tools are, and ``tools``.

    :param folder: of the machine; gets its home and its folder for temporary files.
    """
    for name in ("home", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    path = [str(tools)] if tools else []
    return {
        "PATH": os.pathsep.join([*path, "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(ROOT) if tools else "",
        "CI": "true",
    }


def git(folder: Path, *arguments: str) -> str:
    """What git says in a folder."""
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def checkout(folder: Path, files: Mapping[str, str]) -> Path:
    """A fresh folder with sources in a commit."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Sources")
    return folder


def valid(schema: str, document: object, folder: Path) -> None:
    """Hold a document against a schema that a CI system publishes, as check-jsonschema brings it along."""
    file = folder / "document.yml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    done = run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)], folder, os.environ)
    assert done.code == 0, done.said
