"""Real folder trees for the tests of this folder: looked at, made and compared."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import Entry, Layer
from checkpoint_action.store import bundle

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def entry_at(root: Path, path: str) -> Entry:
    """What is at ``path``, by the plainest means."""
    whole = os.path.join(root, path)
    found = os.lstat(whole)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return Entry(path, "link", mode, found.st_mtime_ns, target=os.readlink(whole))
    if stat.S_ISDIR(found.st_mode):
        return Entry(path, "dir", mode, found.st_mtime_ns)
    assert stat.S_ISREG(found.st_mode)
    content = Path(whole).read_bytes()
    return Entry(path, "file", mode, found.st_mtime_ns, len(content), hashlib.sha256(content).hexdigest())


def scan(root: Path) -> dict[str, Entry]:
    """Every path below ``root``."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            found[path] = entry_at(root, path)
    return found


def layer_of(root: Path, *paths: str) -> Layer:
    """A layer that adds ``paths`` (all that is there when none are given)."""
    found = scan(root)
    return Layer(entries=tuple(found[path] for path in sorted(paths or found)))


def layer_between(before: dict[str, Entry], after: dict[str, Entry]) -> Layer:
    """What a step did that found one and left the other."""
    changed = [entry for path, entry in after.items() if before.get(path) != entry]
    deleted = sorted(set(before) - set(after))
    touched = [entry.path for entry in changed] + deleted
    return Layer(
        entries=tuple(sorted(changed, key=lambda entry: entry.path)),
        deleted=tuple(deleted),
        before={path: before[path].content for path in touched if path in before},
    )


def file_entry(path: str, content: bytes = b"x", *, mode: int = 0o644, mtime_ns: int = 1) -> Entry:
    """A file that need not exist."""
    return Entry(path, "file", mode, mtime_ns, len(content), hashlib.sha256(content).hexdigest())


def link_entry(path: str, target: str) -> Entry:
    """A link that need not exist."""
    return Entry(path, "link", 0o777, 1, target=target)


def dir_entry(path: str, *, mode: int = 0o755) -> Entry:
    """A folder that need not exist."""
    return Entry(path, "dir", mode, 1)


def archive(root: Path, layer: Layer, work: Path, name: str = "build") -> Path:
    """An archive of one layer."""
    work.mkdir(exist_ok=True)
    bundle.pack_layer(root, name, layer, work / "layer")
    bundle.write_archive({"job": "demo"}, [work / "layer"], work / "archive")
    return work / "archive"


def nothing_else(path: str) -> tuple[str, ...]:
    """No other state is acceptable."""
    return ()


@contextlib.contextmanager
def as_nobody(*owned: Path) -> Iterator[None]:
    """Run the block as a user whom permissions bind; he owns all that is in ``owned``."""
    if not ROOT:
        yield
        return
    for top in owned:
        for folder, folders, files in os.walk(top):
            for name in [".", *folders, *files]:
                os.lchown(os.path.join(folder, name), NOBODY, NOBODY)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
