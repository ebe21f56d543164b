"""What unfinished steps have so far, kept in a store for a try on another machine, and put back for it."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError, StoreError
from checkpoint_action.model import ArchiveRef, Entry, Layer, Partial
from checkpoint_action.runner.archives import reason
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.limits import excess_of
from checkpoint_action.runner.parcels import Parcel
from checkpoint_action.runner.progress import Progress, progress_of
from checkpoint_action.runner.scan import UNREADABLE, Scan
from checkpoint_action.runner.stop import StoppedError
from checkpoint_action.store.bundle import pack_layer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from checkpoint_action.model import Job, Record, Step
    from checkpoint_action.runner.scan import Workspace
    from checkpoint_action.runner.uploads import Uploads

__all__ = ["Unfinished"]

_FOLDER = ".folder"
"""What is added to a layer's name for the contents of the step's own folder."""

_SAVE = 1800.0  # seconds that a step waits until its progress is in the store
_PAUSES = (0.05, 0.1, 0.2, 0.4)  # seconds between looks at files that change while they are packed


@dataclass(frozen=True, slots=True)
class _Look:
    """A step whose progress is to be looked at.

    :param folder: the step's own.
    :param before: what the workspace held before it ran.
    """

    step: Step
    job: Job
    folder: Path
    before: Scan


class Unfinished:
    """The progress of one job's unfinished steps.

    :param folder: a folder of our own, for what is packed.
    :param put_back: unpacks a layer of an archive and puts it into a folder, all of it or nothing.
    :param warn: told of what a person should know; also from the thread that uploads.
    :param required: whether a failing store is an error.
    :param is_stopping: whether a stop was requested.
    :param max_size: bytes that the progress of a step may have to be kept.
    """

    def __init__(
        self,
        uploads: Uploads,
        workspace: Workspace,
        folder: Path,
        put_back: Callable[[ArchiveRef, Layer, Path, Callable[[str], Collection[str]]], None],
        *,
        warn: Callable[[str], None],
        required: bool,
        is_stopping: Callable[[], bool],
        max_size: int | None = None,
    ) -> None:
        self._uploads = uploads
        self._workspace = workspace
        self._folder = folder
        self._put_back = put_back
        self._warn = warn
        self._required = required
        self._is_stopping = is_stopping
        self._max_size = max_size
        self._elsewhere: dict[str, Partial] = {}
        self._told: set[str] = set()
        known: dict[str, str] = {}
        # Digests of its own, as this runs beside the engine. A stop does not cut the last look short: that is given up
        # when the time for it is over.
        self._digests = ContentDigests(known=known)
        self._digests_until_stop = ContentDigests(is_stopping, known=known)

    def learn(self, records: Mapping[str, Record]) -> None:
        """Take over what the store tells of the job."""
        self._elsewhere = {step: record.partial for step, record in records.items() if record.partial is not None}

    def restore(self, step: str, folder: Path, before: Scan | None) -> int | None:
        """Put back what an unfinished try on another machine left, all of it or nothing.

        What this machine has in the step's own folder already is left alone.

        :param folder: the step's own.
        :param before: what the workspace holds, made what it held before that try.
        :returns: bytes of what was put back, ``None`` where there is nothing to put back.
        :raises StoreError: it cannot be put back, for whatever reason.
        """
        partial = self._elsewhere.pop(step, None)
        if partial is None:
            return None
        inner = ArchiveRef(partial.archive.key, partial.archive.layer + _FOLDER)
        empty = not any(folder.iterdir())
        try:
            if partial.folder != Layer() and empty:
                self._put_back(inner, partial.folder, folder, _nothing)
            if partial.workspace != Layer():
                self._put_back(partial.archive, partial.workspace, self._workspace.root, _nothing)
        except StoreError:
            if empty:  # the two belong together
                _clear(folder)
            raise
        if before is not None:
            _take_back(before, partial.workspace)
        return Progress(partial.workspace, partial.folder).size

    def keep(self, step: Step, job: Job, record: Record, folder: Path, before: Scan, *, stopping: bool) -> None:
        """See that a step that is not done goes up, with what its next try may continue from.

        :param record: how it ended.
        :param stopping: whether no other step follows, so that packing may happen beside the end of the run.
        """
        name = self._uploads.next_name(step.id)
        look = _Look(step, job, folder, before)
        parcel = Parcel(record, name, pack=lambda: self._packed(look, record, name, self._digests))
        if not stopping:
            try:
                parcel = self._packed(look, record, name, self._digests_until_stop)
            except StoppedError:  # then no other step follows after all
                pass
            except Exception as error:  # not even a lack of memory may cost the job what else it does
                self._warn(f"step '{step.id}': what it left unfinished is not kept: {reason(error)}")
                parcel = Parcel(self._uploads.known.with_progress(record), name)
        self._uploads.put(parcel)

    def save(self, step: Step, job: Job, record: Record, folder: Path, before: Scan) -> str:
        """Have the progress of a running step in the store now; called from a thread of its own.

        :param record: says how the step would count if the machine died now.
        :returns: what became of it, as the end of a sentence.
        :raises StoreError: it is not there, and the store is required.
        """
        name = self._uploads.next_name(step.id)
        look = _Look(step, job, folder, before)
        parcel = Parcel(
            record, name, pack=lambda: self._packed(look, record, name, self._digests_until_stop), awaited=True
        )
        fault = "the run is being stopped" if self._is_stopping() else ""
        if not fault:
            self._uploads.put(parcel)
            fault = self._uploads.wait_for(parcel, _SAVE)
        if fault and self._required:
            raise StoreError(fault)
        if fault:
            return f"but not in the store: {fault}"
        known = self._uploads.known.of(step.id)
        partial = None if known is None else known.partial
        size = 0 if partial is None else Progress(partial.workspace, partial.folder).size
        return f"and {size} bytes that were not there before the step are in the store"

    def _packed(self, look: _Look, record: Record, name: str, digests: ContentDigests) -> Parcel:
        """A parcel with the progress that there is now. Files that change meanwhile are looked at again, for a while.

        :raises BundleError: they do not stop changing, or cannot be packed.
        """
        for pause in _PAUSES:
            with suppress(BundleError):
                return self._packed_now(look, record, name, digests)
            time.sleep(pause)
        return self._packed_now(look, record, name, digests)

    def _packed_now(self, look: _Look, record: Record, name: str, digests: ContentDigests) -> Parcel:
        progress = self._travelling(look.step.id, progress_of(look.step, look.job, look.folder, look.before, digests))
        if not progress.count:
            return Parcel(record, name)
        if excess := excess_of((*progress.workspace.entries, *progress.folder.entries), self._max_size):
            raise StoreError(excess)
        parts = (
            (self._workspace.root, name, progress.workspace, self._folder / f"{name}.layer"),
            (look.folder, name + _FOLDER, progress.folder, self._folder / f"{name}{_FOLDER}.layer"),
        )
        try:
            for root, layer_name, layer, file in parts:
                pack_layer(root, layer_name, layer, file)
        except BaseException:
            parts[0][3].unlink(missing_ok=True)
            raise
        partial = Partial(progress.workspace, progress.folder, ArchiveRef("not yet", name))
        return Parcel(replace(record, partial=partial), name, tuple(file for *_, file in parts))

    def _travelling(self, step: str, progress: Progress) -> Progress:
        """What of a step's progress goes to other machines.

        :raises StoreError: a part of it cannot be read.
        """
        for entry in (*progress.workspace.entries, *progress.folder.entries):
            if entry.type == "file" and entry.sha256 == UNREADABLE:
                raise StoreError(f"{entry.path} cannot be read")
        layer = progress.workspace
        inside = [entry for entry in layer.entries if not Path(entry.path).is_absolute()]
        if len(inside) < len(layer.entries) and step not in self._told:
            self._told.add(step)
            self._warn(f"step '{step}': what its 'partial' names outside the workspace stays on this machine")
        entries = tuple(entry for entry in inside if self._workspace.keeps(entry.path, folder=entry.type == "dir"))
        deleted = tuple(path for path in layer.deleted if self._workspace.keeps(path, folder=False))
        return replace(progress, workspace=replace(layer, entries=entries, deleted=deleted))


def _nothing(_path: str) -> Collection[str]:
    return ()


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _take_back(before: Scan, layer: Layer) -> None:
    """Make a look at the workspace what it was before an earlier try.

    Else what is there already, as on a machine that the workspace outlives the job on, would not count as progress.
    """
    for path in (*(entry.path for entry in layer.entries), *layer.deleted):
        then = layer.before.get(path, "")
        now = before.get(path)
        if (now.content if now is not None else "") == then:
            continue
        if then:
            before[path] = _entry(path, then)
        else:
            del before[path]


def _entry(path: str, content: str) -> Entry:
    """An entry of which only the content is known: no other equals it."""
    if content == "dir":
        return Entry(path, "dir", 0, 0)
    if content.startswith("link:"):
        return Entry(path, "link", 0, 0, target=content.removeprefix("link:"))
    return Entry(path, "file", 0, 0, size=0, sha256=content)
