"""The official npm packages of ``package.json``, installed once and run with node.

>>> answer = node.run("artifact.mjs", [["listArtifacts"]], env=service.env())
>>> answer.value

A script imports ``peer.mjs`` for its request and its answer; both are JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.installation import install, installed, missing_peer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answer", "Node", "node", "npm_packages"]

HERE = Path(__file__).parent
_LOCKFILES = ("package.json", "package-lock.json")


@dataclass(frozen=True)
class Answer:
    """What a script made of a request.

    :ivar value: what it answered, or ``None`` when it failed.
    :ivar error: name, message and further fields of the error it failed with, or ``None``.
    :ivar stdout: what it printed: the official packages print workflow commands.
    """

    value: Any
    error: dict[str, Any] | None
    stdout: str


class Node:
    """Node with the packages of ``package.json`` at hand.

    :param folder: where they are installed, and the scripts of this folder beside them.
    """

    def __init__(self, folder: Path, executable: str) -> None:
        self.folder = folder
        self.executable = executable

    def run(
        self, script: str, request: object, *, env: Mapping[str, str], cwd: Path | None = None, timeout: float = 120
    ) -> Answer:
        """Run a script of this folder.

        :param request: given to the script as JSON.
        :param env: all variables that it sees, besides what node needs to run.
        :raises AssertionError: it ended without an answer.
        """
        with tempfile.TemporaryDirectory(prefix="peer-") as name:
            asked, answered = Path(name, "request.json"), Path(name, "answer.json")
            asked.write_text(json.dumps(request))
            needed = {key: os.environ[key] for key in ("PATH", "SYSTEMROOT", "TEMP", "TMP") if key in os.environ}
            done = subprocess.run(
                [self.executable, str(self.folder / script), str(asked), str(answered)],
                env={**needed, "HOME": name, "RUNNER_TEMP": name, **env},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
            stdout = done.stdout.decode("utf-8", "replace")
            assert answered.exists(), f"{script} gave no answer:\n{stdout}\n{done.stderr.decode('utf-8', 'replace')}"
            answer = json.loads(answered.read_bytes())
        return Answer(answer.get("value"), answer.get("error"), stdout)


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Node:
    """Return node with the pinned packages."""
    executable, folder = npm_packages(request, tmp_path_factory, HERE, "npm-peers")
    for script in HERE.glob("*.mjs"):  # beside the packages: that is where node looks for them
        fresh = folder / f".{script.name}.{os.getpid()}"
        fresh.write_bytes(script.read_bytes())
        fresh.replace(folder / script.name)
    return Node(folder, executable)


def npm_packages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, source: Path, name: str
) -> tuple[str, Path]:
    """Install what the lock file in ``source`` names, once, and return node's path and the folder.

    :param name: a folder's name, another one for each lock file.
    """
    executable, npm = shutil.which("node"), shutil.which("npm")
    if executable is None or npm is None:
        missing_peer("node and npm are not installed")

    def make(folder: Path) -> None:
        for file in _LOCKFILES:
            shutil.copy(source / file, folder / file)
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        install([npm, "ci", "--prefer-offline", *quiet], folder)

    identity = b"".join((source / file).read_bytes() for file in _LOCKFILES)
    return executable, installed(request, tmp_path_factory, name, identity, make)
