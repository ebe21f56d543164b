"""Layers that want out of the workspace, and folders that turn into links while one is put back."""

from __future__ import annotations

import os
import stat
import tarfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Entry, Layer
from checkpoint_action.store import bundle
from checkpoint_action.store.apply import apply_layer
from tests.store.tars import made, member, tar_of
from tests.store.trees import dir_entry, file_entry, link_entry, scan
from tests.torture.hostile_words import first

if TYPE_CHECKING:
    import random
    from pathlib import Path

__all__ = ["layer", "swapped"]

_PARTS = (
    "..",
    ".",
    "",
    "a",
    "b",
    "link",
    "deep",
    "file",
    ".git",
    "~",
    "C:",
    "a\\b",
    "é",
    "e\u0301",
    "con",
    "n\nl",
    "\x1b[2J",
    "x" * 256,
    "-rf",
    "$(x)",
)
_TARGETS = (
    "../outside",
    "../../outside/precious",
    "/etc/passwd",
    "a",
    "..",
    "link",
    ".",
    "/proc/self/cwd",
    "deep/../../outside",
    "x\ny",
)


def layer(folder: Path, chance: random.Random) -> list[str]:
    """A made-up layer, unpacked and put into a workspace with links that lead out."""
    root, outside, side = folder / "root", folder / "outside", folder / "side"
    (root / "deep").mkdir(parents=True)
    outside.mkdir()
    side.mkdir()
    (outside / "precious").write_text("precious")
    (root / "link").symlink_to(outside)
    (root / "deep" / "link").symlink_to(outside / "precious")
    (root / "file").write_text("x")
    before = scan(outside)
    entries: dict[str, Entry] = {}
    members = []
    for _ in range(chance.randint(1, 6)):
        path = "/".join(chance.choice(_PARTS) for _ in range(chance.randint(1, 4)))
        mode = chance.choice([0o644, 0o4755, 0o2777, 0o1777, 0o000, 0o7777])
        kind = chance.randrange(4)
        if kind == 0:
            entry = link_entry(path, chance.choice(_TARGETS))
            members.append(member(path, kind=tarfile.SYMTYPE, target=entry.target))
        elif kind == 1:
            entry = dir_entry(path, mode=mode)
        else:
            entry = file_entry(path, b"evil", mode=mode)
            members.append(
                member(
                    path,
                    b"evil",
                    kind=chance.choice([tarfile.REGTYPE] * 6 + [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]),
                )
            )
        entries[path] = entry
    deleted = tuple(
        {"/".join(chance.choice(_PARTS) for _ in range(2)) for _ in range(chance.randint(0, 2))} - entries.keys()
    )
    said = Layer(tuple(sorted(entries.values(), key=lambda one: one.path)), deleted)
    with suppress(BundleError, UnicodeError):
        bundle.unpack_layer(made(folder, tar_of(*sorted(members, key=lambda one: one[0].name))), "build", said, side)
    with suppress(BundleError, UnicodeError):
        apply_layer(side, root, said, lambda _path: {*(file_entry("x", b"x").content,), "", "dir", f"link:{outside}"})
    faults = [] if scan(outside) == before else [f"what is outside was changed by {said}"]
    if {path.name for path in folder.iterdir()} - {"root", "outside", "side", "archive"}:
        faults.append(f"something was made outside by {said}")
    for made_path in root.rglob("*"):
        mode = made_path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & 0o6000:
            faults.append(f"{made_path.name} has a set-id bit")
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            faults.append(f"{made_path.name} is a device or a pipe")
    return first(faults)


def swapped(folder: Path, chance: random.Random) -> list[str]:
    """A folder of the workspace becomes a link to outside and a folder again, all the while a layer is put back."""
    root, outside = folder / "root", folder / "outside"
    for place in (root / "d" / "e", outside / "e"):
        place.mkdir(parents=True)
        (place / "file").write_text("old")
    before = scan(outside)
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            away = folder / f"away-{number % 2}"
            with suppress(OSError):
                os.rename(root / "d", away)
                os.symlink(outside, root / "d")
            with suppress(OSError):
                os.unlink(root / "d")
            with suppress(OSError):
                os.rename(away, root / "d")

    swapper = threading.Thread(target=swap, daemon=True)
    swapper.start()
    try:
        for number in range(10):
            side = folder / f"side-{number}"
            (side / "d" / "e").mkdir(parents=True)
            (side / "d" / "e" / "file").write_bytes(b"evil")
            (side / "d" / "e" / f"new-{number}").write_bytes(b"evil")
            names = ["d/e/file", f"d/e/new-{number}"][: chance.randint(1, 2)]
            said = Layer(
                tuple(file_entry(name, b"evil") for name in names), ("d/e/gone",) if chance.random() < 0.3 else ()
            )
            with suppress(BundleError, OSError):
                apply_layer(
                    side,
                    root,
                    said,
                    lambda _path: {file_entry("x", b"old").content, file_entry("x", b"evil").content, "", "dir"},
                )
    finally:
        stop.set()
        swapper.join()
    return [] if scan(outside) == before else ["a file was put back through a link that came in between"]
