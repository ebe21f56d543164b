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
from checkpoint_action.errors import CheckpointError, Kind, kind_of_write
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
_NO_LOCKS = "two runs of a job at once would not notice each other: give --state-dir DIR with a folder on a local disk"
_WRONG = "set the clock (best by NTP): times on record would be wrong, and secure connections fail"
_APART = "its disk is another machine's: set both clocks by NTP, or make and --verify stat may take old files for new"
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
    shown = str(folder.absolute()) + ("" if there == folder else f" (not there yet, it will be made; tried in {there})")
    probe = there / f".checkpoint-run-doctor-{os.getpid()}.tmp"
    try:
        with probe.open("xb") as file:
            file.write(b"checkpoint")
            file.flush()
            os.fsync(file.fileno())
        changed = probe.stat().st_mtime
    except OSError as error:
        said = f"{shown}: cannot be written ({error.strerror})"
        return [
            problem(
                "state dir",
                said,
                "no run can save what is done: make the folder writable for you, or give another with --state-dir DIR",
                kind_of_write(error),
            )
        ]
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
        return warning("free space", f"not known ({error.strerror})", "see for yourself (df) whether the disk has room")
    if free < _FEW:
        remedy = "make room on this disk: a run that cannot save what is done stops"
        return problem("free space", size(free), remedy, Kind.DISK_FULL)
    if free < _LITTLE:
        return warning("free space", size(free), "enough for a short run; make room on this disk before a long one")
    return good("free space", size(free))


def _lock(folder: Path) -> Finding:
    """Take a lock, and have another process see that it is taken."""
    path = folder / f".checkpoint-run-doctor-{os.getpid()}.lock"
    lock = JobLock(path)
    try:
        lock.acquire()
    except CheckpointError as error:
        return problem("locks", str(error).partition(";")[0], _NO_LOCKS, error.kind)
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
        found = "one can be taken; whether others see it is not known, as no second Python could be started"
        return warning("locks", found, f"run '{sys.executable} -I -c pass' to see why")
    finally:
        lock.release(remove=True)
    if seen != "held":
        return problem("locks", "one that is taken is not seen by another process", _NO_LOCKS, Kind.NO_LOCKS)
    return good("locks", "work, also between processes")


def _clock(changed: float, now: float) -> Finding:
    if now < _BEGAN:
        return problem("clock", f"this machine's clock says {time.strftime('%Y-%m-%d', time.gmtime(now))}", _WRONG)
    off = changed - now
    if abs(off) > _LATE:
        off_by = f"{abs(off):.0f} s {'ahead of' if off > 0 else 'behind'}"
        return warning("clock", f"a file written now in the state dir is dated {off_by} this machine's clock", _APART)
    return good("clock", "file times in the state dir agree with this machine's clock")
