"""Which paths a layer may hold: nothing that could lead out of the folder it is restored into."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checkpoint_action.model import Entry, Layer

__all__ = ["ancestors", "check_layer", "check_name", "check_path", "folds_case", "refuse_collisions"]

LONGEST_PART = 255
LONGEST_PATH = 4096
DIGEST = re.compile(r"[0-9a-f]{64}")
DEVICES = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])(?:[. ].*)?", re.IGNORECASE | re.DOTALL
)
NOT_ON_WINDOWS = re.compile(r'[\x00-\x1f<>:"|?*\\]')
WINDOWS = sys.platform == "win32"
PLAIN = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}/){0,30}[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
"""Most paths, which POSIX has nothing against; looking closely at each of very many takes a while."""


def ancestors(path: str) -> Iterator[str]:
    """The folders above ``path``, outermost first; the root itself is not among them."""
    position = path.find("/")
    while position >= 0:
        yield path[:position]
        position = path.find("/", position + 1)


def check_path(path: str, *, windows: bool = WINDOWS) -> None:
    """Refuse a path that is not plainly *inside* the folder it is relative to.

    :param windows: apply the rules of Windows too, where a name can mean a drive, a stream or a device.
    """
    if not windows and PLAIN.fullmatch(path):
        return
    fault = _length_fault(path)
    if not fault:
        for part in path.split("/"):
            fault = _part_fault(part, windows=windows)
            if fault:
                break
    if fault:
        raise BundleError(f"refused path {path[:200]!r}: {fault}")


def check_name(name: str) -> None:
    """Refuse a layer's name that is not one plain part of a path."""
    if "/" in name:
        raise BundleError(f"refused layer name {name!r}: it has a slash")
    check_path(name)


def _length_fault(text: str) -> str:
    try:
        size = len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return "it is no text and no bytes"
    if size > LONGEST_PATH:
        return "it is too long"
    return "it has a NUL" if "\0" in text else ""


def _part_fault(part: str, *, windows: bool) -> str:
    if part in ("", ".", ".."):
        return "it is absolute, or has an empty part, '.' or '..'"
    unit = (
        len(part.encode("utf-16-le", "surrogatepass")) // 2 if windows else len(part.encode("utf-8", "surrogateescape"))
    )
    if unit > LONGEST_PART:
        return "a part of it is too long"
    if not windows:
        return ""
    if NOT_ON_WINDOWS.search(part):
        return "it has a character that Windows does not allow in a name"
    if part[-1] in ". ":
        return "a part of it ends in a dot or a space"
    return "a part of it is the name of a device" if DEVICES.fullmatch(part) else ""


def check_layer(layer: Layer) -> None:
    """Refuse a manifest that contradicts itself or names a path that :func:`check_path` refuses."""
    entries: dict[str, Entry] = {}
    for entry in layer.entries:
        check_path(entry.path)
        if entry.path in entries:
            raise BundleError(f"the manifest names {entry.path!r} twice")
        fault = _entry_fault(entry)
        if fault:
            raise BundleError(f"the manifest's {entry.path!r} {fault}")
        entries[entry.path] = entry
    deleted = set(layer.deleted)
    for path in layer.deleted:
        check_path(path)
    if len(deleted) != len(layer.deleted) or not deleted.isdisjoint(entries):
        raise BundleError("the manifest names a deleted path twice")
    fine = {""}
    for path in entries:
        if path.rpartition("/")[0] in fine:
            continue
        for above in ancestors(path):
            if above in deleted or (above in entries and entries[above].type != "dir"):
                raise BundleError(f"the manifest puts {path!r} below {above!r}, which is no folder")
            fine.add(above)


def _entry_fault(entry: Entry) -> str:
    if not 0 <= entry.mode <= 0o7777:
        return "has an impossible mode"
    if not -(1 << 63) <= entry.mtime_ns < 1 << 63:
        return "has an impossible time"
    if entry.type == "file":
        fine = entry.size >= 0 and DIGEST.fullmatch(entry.sha256) and not entry.target
        return "" if fine else "has an impossible size, digest or target"
    if entry.size or entry.sha256:
        return "has a size or a digest and is no file"
    if entry.type == "dir":
        return "has a target and is no link" if entry.target else ""
    fault = _length_fault(entry.target)
    return f"has a refused target: {fault}" if fault else "" if entry.target else "has no target"


def refuse_collisions(layer: Layer, folder: Path) -> None:
    """Refuse a layer with two paths that are one and the same on the filesystem of ``folder``."""
    every = {entry.path for entry in layer.entries}
    folders = {path.rpartition("/")[0] for path in every} - every - {""}
    every |= folders.union(*map(ancestors, folders))
    spelled: dict[str, str] = {}
    for whole in sorted(every):
        first = spelled.setdefault(whole.lower() if whole.isascii() else _folded(whole), whole)
        if first != whole and folds_case(folder):  # looked at only when it matters: never, for most layers
            raise BundleError(f"{first!r} and {whole!r} are the same name on this filesystem")


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def folds_case(folder: Path) -> bool:
    """Whether the filesystem of ``folder`` takes names for equal that differ in case or Unicode form; tried out."""
    before = folder.stat()
    try:
        with tempfile.TemporaryDirectory(prefix=".cpr-probe-", dir=folder) as probe:
            Path(probe, "probe-\u00e4").touch()
            return Path(probe, "PROBE-\u00c4").exists() or Path(probe, "probe-a\u0308").exists()
    finally:
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
