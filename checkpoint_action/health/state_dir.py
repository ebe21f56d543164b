"""The state dir: whether it can be written, locks hold in it, and its clock is ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import checkpoint_action
from checkpoint_action.errors import CheckpointError
from checkpoint_action.health.finding import Finding, good, problem, warning
from checkpoint_action.report.words import size
from checkpoint_action.runner.lock import JobLock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["state_dir"]

_LITTLE, _FEW = 1 << 30, 100 << 20  # bytes free: worth a warning, a problem
_LATE = 2.0  # seconds between two clocks that may be the steps of a file system's
_BEGAN = 1_735_689_600.0  # 2025: a clock before this program is wrong
_SECONDS = 30  # for another Python to start
_LOOKS = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from checkpoint_action.runner.lock import JobLock
print("held" if JobLock(Path(sys.argv[2])).held() else "free")
"""


def state_dir(folder: Path, now: Callable[[], float] = time.time) -> list[Finding]:
    """Try all that a run does there; what was made for it is removed again.

    :param now: seconds since the epoch.
    """
    there = _nearest(folder)
    shown = str(folder.absolute()) + ("" if there == folder else f" (not there yet; looked at {there})")
    probe = there / f".checkpoint-run-doctor-{os.getpid()}.tmp"
    try:
        with probe.open("xb") as file:
            file.write(b"checkpoint")
            file.flush()
            os.fsync(file.fileno())
        changed = probe.stat().st_mtime
    except OSError as error:
        said = f"{shown}: cannot be written ({error.strerror})"
        return [problem("state dir", said, "choose another --state-dir, or make it writable")]
    finally:
        with suppress(OSError):
            probe.unlink()
    return [good("state dir", f"{shown}: can be written"), _space(there), _lock(there), _clock(changed, now())]


def _nearest(folder: Path) -> Path:
    """The folder, or the one above in which it would be made."""
    while not folder.exists() and folder.absolute().parent != folder.absolute():
        folder = folder.absolute().parent
    return folder


def _space(folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return warning("free space", f"not known ({error.strerror})", "look yourself whether there is enough")
    if free < _FEW:
        return problem("free space", size(free), "make room: a run whose state cannot be written stops")
    if free < _LITTLE:
        return warning("free space", size(free), "make room before a long run")
    return good("free space", size(free))


def _lock(folder: Path) -> Finding:
    """Take a lock, and have another process see that it is taken."""
    path = folder / f".checkpoint-run-doctor-{os.getpid()}.lock"
    lock = JobLock(path)
    try:
        lock.acquire()
    except CheckpointError as error:
        return problem("locks", str(error).partition(";")[0], "choose a --state-dir on a local disk")
    try:
        package = str(Path(checkpoint_action.__file__).resolve().parent.parent)
        seen = subprocess.run(
            [sys.executable, "-I", "-c", _LOOKS, package, str(path)],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return warning("locks", "taken, but no other process could be started to see it", "see that Python can start")
    finally:
        lock.release(remove=True)
    if seen != "held":
        return problem("locks", "another process does not see them", "choose a --state-dir on a local disk")
    return good("locks", "work, between processes too")


def _clock(changed: float, now: float) -> Finding:
    if now < _BEGAN:
        return problem("clock", f"says {time.strftime('%Y-%m-%d', time.gmtime(now))}", "set the machine's clock")
    off = changed - now
    if abs(off) > _LATE:
        found = f"files of the state dir are dated {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} our clock"
        return warning("clock", found, "set both clocks by NTP; make and --verify stat go by file times")
    return good("clock", "that of the state dir's files is ours")
