"""A step and the machine it is restored on, for the tests of restoring."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Entry, Layer
from checkpoint_action.store import bundle
from checkpoint_action.store.apply import apply_layer
from tests.store.trees import archive, layer_between, nothing_else, scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Lab:
    """A workspace that a step changes, and a fresh copy of what it was before to restore into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.root = folder / "root"
        self.side = folder / "side"
        self.work.mkdir()
        self.layer = Layer()
        self.wanted: dict[str, Entry] = {}

    def step(self, change: Callable[[Path], object]) -> None:
        """Copy the workspace as it is to ``root``, then let the step run and pack its layer."""
        shutil.copytree(self.work, self.root, symlinks=True)
        before = scan(self.work)
        assert scan(self.root) == before
        change(self.work)
        self.wanted = scan(self.work)
        self.layer = layer_between(before, self.wanted)
        archive(self.work, self.layer, self.folder / "pack")
        self.unpack()

    def unpack(self) -> None:
        """A fresh ``side``."""
        shutil.rmtree(self.side, ignore_errors=True)
        bundle.unpack_layer(self.folder / "pack" / "archive", "build", self.layer, self.side)

    def apply(self, acceptable: Callable[[str], tuple[str, ...]] = nothing_else) -> None:
        apply_layer(self.side, self.root, self.layer, acceptable)

    def refuse(self, match: str, acceptable: Callable[[str], tuple[str, ...]] = nothing_else) -> None:
        """Nothing is changed."""
        before, root_time = scan(self.root), self.root.stat().st_mtime_ns
        with pytest.raises(BundleError, match=match):
            self.apply(acceptable)
        assert scan(self.root) == before
        assert self.root.stat().st_mtime_ns == root_time


def furnish(root: Path) -> None:
    """A workspace with something of everything."""
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "main").write_text("main")
    (root / "src" / "deep" / "part").write_text("part")
    (root / "old" / "older").mkdir(parents=True)
    (root / "old" / "a").write_text("a")
    (root / "old" / "older" / "b").write_text("b")
    (root / "link").symlink_to("src")
    (root / "file-to-folder").write_text("file")
    (root / "folder-to-file").mkdir()
    (root / "folder-to-file" / "x").write_text("x")
    (root / "link-to-folder").symlink_to("src")
    (root / "folder-to-link").mkdir()
    (root / "folder-to-link" / "y").write_text("y")
    (root / "file-to-link").write_text("f")
    (root / "link-to-file").symlink_to("nowhere")
    (root / "kept").write_text("kept")
    (root / "locked").mkdir()
    (root / "locked" / "in").write_text("in")
    for number, path in enumerate(sorted(scan(root), reverse=True)):
        times = 1_500_000_000_000_000_123 + number * 1_000_000_007
        os.utime(root / path, ns=(times, times), follow_symlinks=False)
    (root / "locked").chmod(0o555)


def everything(root: Path) -> None:
    """A step that changes every kind into every other one, adds, edits and deletes."""
    (root / "src" / "main").write_text("main, edited")
    (root / "src" / "new").write_text("new")
    (root / "src" / "new").chmod(0o755)
    (root / "made" / "empty").mkdir(parents=True)
    (root / "made" / "out").write_text("out")
    shutil.rmtree(root / "old")
    (root / "link").unlink()
    (root / "link").symlink_to("made")
    (root / "file-to-folder").unlink()
    (root / "file-to-folder").mkdir()
    (root / "file-to-folder" / "z").write_text("z")
    shutil.rmtree(root / "folder-to-file")
    (root / "folder-to-file").write_text("now a file")
    (root / "link-to-folder").unlink()
    (root / "link-to-folder").mkdir()
    (root / "link-to-folder" / "w").write_text("w")
    shutil.rmtree(root / "folder-to-link")
    (root / "folder-to-link").symlink_to("/nowhere")
    (root / "file-to-link").unlink()
    (root / "file-to-link").symlink_to("kept")
    (root / "link-to-file").unlink()
    (root / "link-to-file").write_text("file")
    (root / "locked").chmod(0o755)
    (root / "locked" / "in").write_text("in, edited")
    (root / "locked" / "added").write_text("added")
    (root / "locked").chmod(0o555)
    (root / "made").chmod(0o500)


def become(folder: Path, shape: dict[str, Any]) -> None:
    """Make the folder hold exactly ``shape``, leaving alone what is right already."""
    for path in folder.iterdir():
        wanted = shape.get(path.name)
        if isinstance(wanted, dict) and path.is_dir() and not path.is_symlink():
            become(path, wanted)
        elif path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path)
    for name, value in shape.items():
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            continue
        if isinstance(value, dict):
            path.mkdir()
            become(path, value)
        elif isinstance(value, tuple):
            path.symlink_to(value[0])
        else:
            path.write_text(value)
