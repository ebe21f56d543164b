"""What the benchmarks run on, in words that a reader can compare with a machine of his own."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from pathlib import Path

from checkpoint_action import __version__

__all__ = ["describe"]

_ROOT = Path(__file__).resolve().parents[1]
_DISKS = {"vd": "a virtio disk", "xvd": "a Xen disk", "nvme": "an NVMe disk", "zram": "compressed memory"}


def describe(folder: Path | None = None) -> dict[str, str]:
    """What is measured and on what, by name; what the system does not tell is left out.

    :param folder: where the large files go, whose disk is meant; the folder for temporary files where there is none.
    """
    told = {
        "checkpoint-run": _version(),
        "processor": _processor(),
        "cores": str(os.cpu_count() or ""),
        "memory": _memory(),
        "disk": _disk(folder or Path(tempfile.gettempdir())),
        "system": _system(),
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    return {name: value for name, value in told.items() if value}


def _version() -> str:
    try:
        words = ["git", "describe", "--always", "--dirty"]
        done = subprocess.run(words, cwd=_ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return __version__
    return f"{__version__}, commit {done.stdout.strip()}" if done.returncode == 0 else __version__


def _processor() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.1f} GiB"
    except (AttributeError, ValueError, OSError):
        return ""


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform(terse=True)


def _disk(folder: Path) -> str:
    """File system and kind of disk, as Linux tells them."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}" if hasattr(os, "major") else ""
    for line in _read("/proc/self/mountinfo").splitlines():
        words, _, rest = line.partition(" - ")
        if words.split()[2] == number:
            kind = rest.split()[0]
            return " on ".join(part for part in (kind, _disk_kind(number)) if part)
    return ""


def _disk_kind(number: str) -> str:
    block = Path("/sys/dev/block", number).resolve()
    if (block / "partition").exists():
        block = block.parent
    for begin, words in _DISKS.items():
        if block.name.startswith(begin):
            return words
    rotates = _read(str(block / "queue" / "rotational")).strip()
    return {"0": "a solid-state disk", "1": "a spinning disk"}.get(rotates, "")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
