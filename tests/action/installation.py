"""What a machine needs to run the action, made of what is installed here."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from runtime import bootstrap
from tests.action.manifest import ROOT

__all__ = ["hurried_action", "tool_cache"]


def tool_cache(folder: Path) -> Path:
    """Make a folder a tool cache, with the packages of this environment instead of those that would be installed."""
    name = bootstrap.folder_name((ROOT / "runtime" / "requirements.txt").read_bytes())
    packages = folder / "checkpoint-run" / name
    for package in ("pyyaml", "urllib3", "psutil", "backports.zstd"):
        try:
            found = distribution(package)
        except PackageNotFoundError:  # not needed with this Python
            continue
        for file in found.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(str(found.locate_file(file))), packages / file)
    bootstrap.write_inventory(packages)
    return folder


def hurried_action(folder: Path) -> Path:
    """A copy of the action that does not wait between two uploads: the service here tells which is the newer."""
    copied = folder / "checkpoint-run"
    for name in ("checkpoint_action", "runtime"):
        shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
    uploads = copied / "checkpoint_action" / "runner" / "uploads.py"
    text, count = re.subn(r"^_APART = .*$", "_APART = 0.0", uploads.read_text("utf-8"), flags=re.MULTILINE)
    assert count == 1
    uploads.write_text(text, "utf-8")
    return copied
