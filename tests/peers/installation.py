"""Peers are installed once and kept below pytest's cache, whatever number of sessions and workers want them."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["install", "installed", "missing_peer"]

_LONGEST = 560
"""Seconds for an installation: less than a test may take."""


def installed(
    request: pytest.FixtureRequest,
    temporary: pytest.TempPathFactory,
    name: str,
    identity: bytes,
    make: Callable[[Path], None],
) -> Path:
    """The folder that ``make`` has filled, now or earlier.

    :param identity: what it depends on; for another identity there is another folder.
    """
    cache = getattr(request.config, "cache", None)
    parent = cache.mkdir(name) if cache else temporary.mktemp(name)
    folder: Path = parent / hashlib.sha256(identity).hexdigest()[:16]
    with _alone(parent / "lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            make(folder)
            (folder / "complete").touch()
    return folder


def install(command: Sequence[str], folder: Path) -> None:
    """Run an installer in ``folder``; without its success the peer is missing."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_LONGEST,
        check=False,
    )
    if done.returncode:
        missing_peer(f"{command[0]} failed:\n{done.stdout.decode('utf-8', 'replace')}")


def missing_peer(reason: str) -> NoReturn:
    """Skip the test for want of a peer; fail it in CI, where none may be missing."""
    if os.environ.get("CI"):
        pytest.fail(f"a peer is missing: {reason}")
    pytest.skip(reason)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Keep other sessions and workers out; the lock goes with the process that holds it."""
    connection = sqlite3.connect(lock, timeout=_LONGEST, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()
