"""Finished steps, packed for a store at once, as the next step may change what they left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError, StoreError
from checkpoint_action.model import AUTO, Layer
from checkpoint_action.runner.archives import reason
from checkpoint_action.runner.limits import excess_of
from checkpoint_action.runner.parcels import Parcel
from checkpoint_action.runner.scan import UNREADABLE
from checkpoint_action.store.bundle import pack_layer, unpack_layer

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.model import ArchiveRef, Record, Step
    from checkpoint_action.runner.seen_workspace import SeenWorkspace
    from checkpoint_action.runner.uploads import Uploads

__all__ = ["Finished"]


class Finished:
    """What one job's finished steps left.

    :param root: the workspace.
    :param folder: a folder of our own, for what is packed.
    :param at_hand: the archive that a step came from, where it is still on this machine.
    :param warn: told of what a person should know.
    :param required: whether a failing store is an error.
    :param max_size: bytes that the files a step left may have together to be kept.
    """

    def __init__(
        self,
        uploads: Uploads,
        seen: SeenWorkspace,
        root: Path,
        folder: Path,
        at_hand: Callable[[ArchiveRef], Path | None],
        *,
        warn: Callable[[str], None],
        required: bool,
        max_size: int | None = None,
    ) -> None:
        self._uploads = uploads
        self._seen = seen
        self._root = root
        self._folder = folder
        self._at_hand = at_hand
        self._warn = warn
        self._required = required
        self._max_size = max_size

    def keep(self, record: Record) -> None:
        """Pack a finished step and see that it goes up; one that is too large is left out, as the user wants it.

        :raises StoreError: it cannot be packed, and the store is required.
        """
        if fault := self._keep(record, self._root):
            self._warn(f"step '{record.step}' is done but not kept for other machines: {fault}")

    def _keep(self, record: Record, root: Path) -> str:
        """Pack what a step left in a folder; why it is left out, or an empty text."""
        self._seen.forget_start(record.step)
        if self._uploads.off:
            return ""
        if excess := excess_of(record.layer.entries, self._max_size):
            return self._leave_out(record.step, excess)
        name = self._uploads.next_name(record.step)
        file = self._folder / f"{name}.layer"
        try:
            self._check_seen(record)
            with self._uploads.growing(Parcel(record, name, (file,))) as grown:
                pack_layer(root, name, record.layer, file, grown=grown)
        except Exception as error:  # not even a lack of memory may cost the job what is done
            if self._required:
                raise StoreError(f"step '{record.step}' could not be packed: {reason(error)}") from error
            return self._leave_out(record.step, reason(error))
        return ""

    def holds(self, record: Record) -> bool:
        """Whether other machines know that a step is done, with what it left here."""
        known = self._uploads.known.of(record.step)
        return known is not None and (known.status, known.fingerprint, known.result) == (
            record.status,
            record.fingerprint,
            record.result,
        )

    def catch_up(self, step: Step, record: Record) -> str:
        """Have a step in the store that was done without it, as far as it is known what the step left.

        :returns: why it is not put there, or an empty text.
        :raises StoreError: it cannot be packed, and the store is required.
        """
        if step.outputs == AUTO and record.layer == Layer() and record.archive is None:
            return "nobody has looked at what it leaves; declare its outputs, or run it with the store"
        archive = None if record.archive is None else self._at_hand(record.archive)
        if archive is None or record.archive is None:
            return self._keep(record, self._root)
        side = self._folder / "side"
        try:
            unpack_layer(archive, record.archive.layer, record.layer, side)
            for entry in record.layer.entries:
                if entry.type == "link":  # which are made in their final place otherwise
                    Path(side, entry.path).symlink_to(entry.target)
            return self._keep(record, side)
        except (BundleError, OSError) as error:
            return self._leave_out(record.step, str(error))
        finally:
            shutil.rmtree(side, ignore_errors=True)

    def _leave_out(self, step: str, why: str) -> str:
        """Not keep a finished step, nor what another machine has kept of it: that is not what it left now."""
        self._uploads.known.forget(step)
        return why

    def _check_seen(self, record: Record) -> None:
        if self._seen.closed:
            raise BundleError(f"it left {min(self._seen.closed)}, which we may not look into")
        for entry in record.layer.entries:
            if entry.type == "file" and entry.sha256 == UNREADABLE:
                raise BundleError(f"{entry.path} cannot be read")
