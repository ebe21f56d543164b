"""What an unfinished step leaves for its next try to continue from."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import sys
import threading
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import Entry, Layer
from checkpoint_action.runner.globs import literal, matcher, static_prefix
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.outputs import locate, names_in
from checkpoint_action.runner.patterns import expand
from checkpoint_action.runner.places import place_of
from checkpoint_action.runner.scan import UNREADABLE, entries_of, walk
from checkpoint_action.store.folders import check_owner, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from checkpoint_action.model import Job, Step
    from checkpoint_action.runner.reading import ReadingThreads

__all__ = ["NoDigests", "Progress", "ProgressFolders", "covered", "covers", "discard", "progress_of", "sync_progress"]

_PRIVATE = 0o700
_GONE = ".gone-"
_SYNCABLE = "r+b" if sys.platform == "win32" else "rb"  # there only a file that may be written can be synced


@dataclass(frozen=True, slots=True)
class Progress:
    """What there is of an unfinished step.

    :param workspace: the paths it names in ``partial``, as far as they differ from what was there before it ran.
    :param folder: what it has put into its own folder.
    """

    workspace: Layer = Layer()
    folder: Layer = Layer()

    @property
    def size(self) -> int:
        """Bytes in its files."""
        return sum(entry.size for layer in (self.workspace, self.folder) for entry in layer.entries)

    @property
    def count(self) -> int:
        """How many paths it has."""
        return len(self.workspace.entries) + len(self.workspace.deleted) + len(self.folder.entries)


class NoDigests(ContentDigests):
    """For where it only matters which files there are."""

    def digest(self, path: str, stat: os.stat_result) -> str:  # noqa: ARG002  # the base class's
        """Not looked at."""
        return UNREADABLE

    def begin(self, path: str, stat: os.stat_result, threads: ReadingThreads) -> str:  # noqa: ARG002
        """Not looked at."""
        return UNREADABLE


class ProgressFolders:
    """The steps' own folders (``$CHECKPOINT_DIR``): there from a step's first try until it is done.

    One that was left empty becomes the next step's: file systems are slow at making what is soon removed again.

    :param path: absolute; the folder that holds them.
    :param steps: ids of the job's steps.
    """

    def __init__(self, path: Path, steps: Sequence[str] = ()) -> None:
        self._path = path
        self._base = os.path.join(path, "_")
        self._steps = frozenset(steps)
        self._spare: list[str] = []
        self._in_use: set[str] = set()
        self._lock = threading.Lock()

    def of(self, step: str) -> Path:
        """A step's folder, whether it is there or not; its name is none that Windows keeps for devices."""
        return Path(self._place(step))

    def _place(self, step: str) -> str:
        return f"{self._base}{step}.progress"

    def make(self, step: str) -> str:
        """A step's folder; from whatever thread.

        :raises OSError: it cannot be made.
        """
        folder = self._place(step)
        mode = _mode(folder)
        if stat.S_ISLNK(mode):
            os.unlink(folder)
        if not stat.S_ISDIR(mode):
            with self._lock:
                self._make(folder)
        return folder

    def _make(self, folder: str) -> None:
        while self._spare:
            spare = self._spare.pop()
            if stat.S_IMODE(_mode(spare)) == _PRIVATE and _is_empty(spare):
                os.rename(spare, folder)
                return
            discard(Path(spare))
        self._path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        check_owner(self._path.parent, [self._path])
        Path(folder).mkdir(mode=_PRIVATE, exist_ok=True)

    def keep_apart(self, step: str) -> None:
        """Something of a step may still use its folder, which then is nobody else's."""
        with self._lock:
            self._in_use.add(step)

    def forget(self, step: str) -> None:
        """Take back a step's folder: it is done, or to begin anew."""
        folder = self._place(step)
        if stat.S_ISLNK(_mode(folder)):
            os.unlink(folder)
        with self._lock:
            if step not in self._in_use and _is_empty(folder):
                self._spare.append(folder)
                return
        discard(Path(folder))

    def left(self) -> list[str]:
        """Ids of the steps whose folders are there."""
        try:
            names = os.listdir(self._path)
        except OSError:
            return []
        return [step for name in names if (step := name.removeprefix("_").removesuffix(".progress")) in self._steps]

    def clear(self) -> None:
        """Remove the folders that nothing was put into."""
        with suppress(OSError):
            for folder in self._path.iterdir():
                if _GONE in folder.name:
                    shutil.rmtree(folder, ignore_errors=True)
                    continue
                with suppress(OSError):  # it has something in it
                    folder.rmdir()
            self._path.rmdir()


def discard(folder: Path) -> None:
    """Remove a folder so that it is gone at once: what is only half removed is nothing to go on from."""
    for old in folder.parent.glob(f"{glob.escape(folder.name)}{_GONE}*"):  # of somebody who was killed at it
        shutil.rmtree(old, ignore_errors=True)
    aside = folder.with_name(f"{folder.name}{_GONE}{os.urandom(4).hex()}")
    try:
        folder.rename(aside)
    except OSError:
        aside = folder
    shutil.rmtree(aside, ignore_errors=True)


def _mode(path: str) -> int:
    """Kind and permissions of what is there; 0 where nothing is."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as found:
            return next(found, None) is None
    except OSError:
        return False


def progress_of(step: Step, job: Job, folder: Path, before: Mapping[str, Entry], digests: ContentDigests) -> Progress:
    """What an unfinished step has left so far.

    :param folder: the step's own.
    :param before: what the workspace held before it ran, as far as that is known.
    :raises OSError: a folder does not let us look.
    :raises StoppedError: the digests were cancelled.
    """
    paths, _missing = expand(step.partial, step.cwd)
    now = {entry.path: entry for entry in _entries(names_in(job.root, paths), digests) if entry.path != "."}
    changed = tuple(now[path] for path in sorted(now) if before.get(path) != now[path])
    gone = tuple(
        sorted(
            path
            for path in before
            if path not in now
            and _is_gone(locate(job.root, path))
            and covers(step, job, path, folder=before[path].type == "dir")
        )
        if step.partial
        else ()
    )
    known = {path: before[path].content for path in (*(entry.path for entry in changed), *gone) if path in before}
    return Progress(Layer(changed, gone, known), _folder_layer(folder, digests))


def _folder_layer(folder: Path, digests: ContentDigests) -> Layer:
    if folder.is_symlink():  # the step has put it there: what it leads to is no folder of ours
        return Layer()
    places = ((os.path.join(folder, name), name) for name in walk(str(folder), ""))
    return Layer(tuple(sorted(_entries(places, digests), key=lambda entry: entry.path)))


def _entries(places: Iterable[tuple[str, str]], digests: ContentDigests) -> Iterator[Entry]:
    with closing(entries_of(places, digests)) as found:
        for _name, entry in found:
            if isinstance(entry, OSError):
                raise entry
            if entry is not None:
                yield entry


def _is_gone(path: str) -> bool:
    """Whether there is nothing; where we may not look, there may be something."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def covers(step: Step, job: Job, path: str, *, folder: bool) -> bool:
    """Whether a path of the workspace is among what a step names in ``partial``, there or not.

    :param path: relative to the job's root.
    :param folder: whether it is, or was, a folder.
    """
    return covered(step.partial, step.cwd, os.path.normpath(locate(job.root, path)), folder=folder)


def covered(patterns: Sequence[str], cwd: Path, place: str, *, folder: bool) -> bool:
    """Whether patterns take in a place, there or not.

    :param cwd: absolute folder that the patterns start from.
    :param place: absolute, without ``.`` and ``..``.
    :param folder: whether it is, or was, a folder.
    """
    verdict = False
    for pattern in patterns:
        taken = pattern.startswith("!")
        if verdict is taken and _matches(pattern[1:] if taken else pattern, cwd, place, folder=folder):
            verdict = not taken
    return verdict


def _matches(pattern: str, cwd: Path, place: str, *, folder: bool) -> bool:
    """Whether a pattern matches a place or a folder above it, as it would if all of them were there."""
    pattern = pattern.replace(os.sep, "/")
    plain = literal(pattern)
    start = place_of(cwd, static_prefix(pattern) if plain is None else plain)
    itself = folder or not pattern.endswith("/")
    if plain is not None and place == start:
        return itself
    if not place.startswith(os.path.join(start, "")):
        return False
    if plain is not None:
        return True
    prefix = static_prefix(pattern)
    rule = matcher(pattern[len(prefix) + 1 :] if prefix else pattern)
    parts = place[len(os.path.join(start, "")) :].split(os.sep)
    above = ("/".join(parts[:number]) for number in range(1, len(parts)))
    return any(rule.match(name) for name in above) or (itself and rule.match("/".join(parts)) is not None)


def sync_progress(progress: Progress, root: Path, folder: Path) -> None:
    """Have all of it on the disk.

    :raises OSError: a file cannot be synced; one that is gone meanwhile is no fault.
    """
    for base, layer in ((root, progress.workspace), (folder, progress.folder)):
        above = {name for entry in layer.entries for name in _above(locate(base, entry.path), str(base))}
        for path in _files(layer.entries):
            with suppress(FileNotFoundError), open(locate(base, path), _SYNCABLE) as file:
                os.fsync(file.fileno())
        for name in above:
            sync_folder(Path(name))
    if progress.folder.entries:  # it may be new itself
        sync_folder(folder.parent)
        sync_folder(folder.parent.parent)


def _above(place: str, top: str) -> Iterator[str]:
    """The folders above a place, up to ``top``, all of which may be new; of one elsewhere the nearest."""
    folder = os.path.dirname(place)
    yield folder
    while folder.startswith(os.path.join(top, "")):
        folder = os.path.dirname(folder)
        yield folder


def _files(entries: Iterable[Entry]) -> list[str]:
    return [entry.path for entry in entries if entry.type == "file"]
