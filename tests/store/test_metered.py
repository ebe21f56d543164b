"""A store that is watched does what it did, and tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreMissingError
from checkpoint_action.store.base import FilePart, Found, ListingLook, PieceStore
from checkpoint_action.store.metered import Moved, metered
from checkpoint_action.store.urls import store_for
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.store.base import Store

KEY = "cpr1-run7-build-a-7-1-0000000000001-abc"


@pytest.fixture
def folder(tmp_path: Path) -> Store:
    return store_for(f"file://{tmp_path / 'store'}")


def test_it_can_what_the_other_can_and_no_more(folder: Store) -> None:
    for store in (folder, MemoryStore()):
        watched = metered(store, lambda _moved: None)
        assert isinstance(watched, PieceStore) == isinstance(store, PieceStore)
        assert isinstance(watched, ListingLook) == isinstance(store, ListingLook)
        assert watched.name == store.name


def test_files_and_what_is_read_of_them(folder: Store, tmp_path: Path) -> None:
    told: list[Moved] = []
    watched = metered(folder, told.append)
    (tmp_path / "source").write_bytes(b"x" * 1000)
    watched.save(KEY, tmp_path / "source")
    found = watched.find("cpr1-run7-")
    assert found is not None
    watched.fetch(found, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"x" * 1000
    assert watched.read(found, 990, 100) == b"x" * 10
    assert [(moved.up, moved.total, moved.ended) for moved in told] == [
        *((True, 1000, False), (True, 1000, True)),
        *((False, None, False), (False, None, True)) * 2,
    ]


def test_pieces_are_counted_as_they_go(folder: Store, tmp_path: Path) -> None:
    told: list[Moved] = []
    watched = metered(folder, told.append)
    assert isinstance(watched, PieceStore)
    (tmp_path / "source").write_bytes(b"0123456789")
    with watched.begin(KEY) as pieces:
        parts = [pieces.put(b"abc"), pieces.put(FilePart(tmp_path / "source", 2, 5))]
        pieces.finish(parts)
    found = folder.find("cpr1-run7-")
    assert found is not None
    assert folder.read(found, 0, 100) == b"abc23456"
    assert [moved.size for moved in told[:3]] == [0, 3, 8]
    assert told[-1].ended


def test_one_that_fails_is_over_too(folder: Store, tmp_path: Path) -> None:
    told: list[Moved] = []
    with pytest.raises(StoreMissingError):
        metered(folder, told.append).fetch(Found(KEY), tmp_path / "target")
    assert told[-1].ended
