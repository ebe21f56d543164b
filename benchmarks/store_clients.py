"""Who saves and restores in :mod:`benchmarks.store`, each in a process of its own.

What each is given: the workspace, whose folder `out` is saved or comes back, a folder of its own for this save or
restore, and one that a save leaves to the restore after it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from benchmarks.measure import titled

__all__ = ["Client", "Floor", "Limit", "Official", "Ours"]

_ROOT = Path(__file__).resolve().parents[1]
_PEERS = _ROOT / "tests" / "peers"


class Client(Protocol):
    """One of them.

    :ivar name: what it is called in the tables.
    """

    name: str

    def argv(self, verb: str, workspace: Path, folder: Path, kept: Path) -> list[str]:
        """The command line of a save or a restore.

        :param folder: not there yet.
        :param kept: the same for a save and the restore after it.
        """


class Ours:
    """The runner's own classes."""

    name = "checkpoint-run"

    def argv(self, verb: str, workspace: Path, folder: Path, kept: Path) -> list[str]:
        """See :class:`Client`."""
        del kept
        folder.mkdir()
        return [sys.executable, "-m", "benchmarks.store_ours", verb, str(workspace), str(folder), "job"]


class Official:
    """`@actions/cache`, as it is pinned for the tests.

    :param folder: where it is installed, with its script beside it.
    """

    name = "@actions/cache"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / "node_modules" / "@actions" / "cache").exists():
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_PEERS / name, folder)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--loglevel=error"], cwd=folder, check=True)
        shutil.copy(_ROOT / "benchmarks" / "store_official.mjs", folder)

    def title(self) -> str:
        """Its name with its version."""
        code = "console.log(require('./node_modules/@actions/cache/package.json').version)"
        done = subprocess.run(["node", "-e", code], cwd=self._folder, stdout=subprocess.PIPE, text=True, check=True)
        return f"{self.name} {done.stdout.strip()}"

    def argv(self, verb: str, workspace: Path, folder: Path, kept: Path) -> list[str]:
        """See :class:`Client`."""
        del workspace, folder, kept
        return ["node", str(self._folder / "store_official.mjs"), verb, "job", "out"]


class Limit:
    """`tar`, `zstd` and `curl`, with nothing around them."""

    name = "tar + curl"

    def title(self) -> str:
        """Its parts with their versions."""
        return f"{titled('tar')} -I 'zstd -T0' ({titled('zstd')}), {titled('curl')}"

    def argv(self, verb: str, workspace: Path, folder: Path, kept: Path) -> list[str]:
        """See :class:`Client`."""
        del workspace, kept
        folder.mkdir()
        return [sys.executable, "-m", "benchmarks.store_limit", verb, str(folder / "archive.tar.zst"), "job"]


class Floor:
    """What Python itself takes to read, hash, create and check the files, in two processes."""

    name = "Python, two processes"

    def argv(self, verb: str, workspace: Path, folder: Path, kept: Path) -> list[str]:
        """See :class:`Client`."""
        del workspace, folder
        return [sys.executable, "-m", "benchmarks.store_floor", verb, str(kept)]
