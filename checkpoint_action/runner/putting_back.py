"""Layers of a store's archives, put back into a folder."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError
from checkpoint_action.runner.archives import reason
from checkpoint_action.store.apply import apply_layer
from checkpoint_action.store.base import Found
from checkpoint_action.store.bundle import unpack_layer
from checkpoint_action.store.paths import check_layer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from checkpoint_action.model import ArchiveRef, Layer
    from checkpoint_action.runner.archives import Archives
    from checkpoint_action.runner.scan import Workspace

__all__ = ["PuttingBack"]


class PuttingBack:
    """What unpacks layers of archives and puts them where they belong.

    :param folder: a folder of our own, for what is unpacked.
    """

    def __init__(self, archives: Archives, workspace: Workspace, folder: Path) -> None:
        self._archives = archives
        self._workspace = workspace
        self._side = folder / "side"

    def put_back(
        self,
        where: ArchiveRef,
        layer: Layer,
        root: Path,
        acceptable: Callable[[str], Collection[str]],
        stay: Collection[str] = (),
    ) -> None:
        """Put a layer into a folder, all of it or nothing.

        :param acceptable: contents of a path, besides those the layer knows, that may be written over.
        :param stay: paths that stay as they are.
        :raises StoreError: it cannot be put back, for whatever reason.
        """
        try:
            check_layer(layer)
            if root == self._workspace.root:
                self._workspace.check_kept(layer)
            archive = self._archives.fetch(Found(where.key))
            unpack_layer(archive, where.layer, layer, self._side)
            apply_layer(self._side, root, _without(layer, stay, self._side), acceptable)
        except StoreError:
            raise
        except Exception as error:  # nothing that a store holds may cost the job
            raise StoreError(reason(error)) from error
        finally:
            shutil.rmtree(self._side, ignore_errors=True)


def _without(layer: Layer, stay: Collection[str], side: Path) -> Layer:
    """A layer without some paths, which go from where it was unpacked, too: what is new is moved folder by folder."""
    if not stay:
        return layer
    for entry in sorted(layer.entries, key=lambda entry: entry.path, reverse=True):
        if entry.path in stay and entry.type != "link":  # which are not made there
            with suppress(OSError):
                place = side / entry.path
                place.rmdir() if entry.type == "dir" else place.unlink()
    entries = tuple(entry for entry in layer.entries if entry.path not in stay)
    return replace(layer, entries=entries, deleted=tuple(path for path in layer.deleted if path not in stay))
