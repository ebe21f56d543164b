"""Entries handed over in pieces to stores that take files alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError
from checkpoint_action.store.base import FilePart, PieceStore
from checkpoint_action.store.gathered import begin
from tests.runner.memory_store import MemoryPieceStore, MemoryStore

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("store", [MemoryStore(), MemoryPieceStore()])
def test_pieces_are_put_together_in_the_order_that_is_named_in_the_end(tmp_path: Path, store: MemoryStore) -> None:
    (tmp_path / "layer").write_bytes(b"0123456789")
    spool = tmp_path / "spool"
    with begin(store, "k", spool) as pieces:
        tail = pieces.put(FilePart(tmp_path / "layer", 5, 5))
        head = pieces.put(FilePart(tmp_path / "layer", 0, 5))
        pieces.put(b"not wanted")
        pieces.finish([pieces.put(b"header"), head, tail])
    assert store.entries == {"k": b"header0123456789"}
    assert store.calls.count("save") == (0 if isinstance(store, PieceStore) else 1)
    assert not spool.exists()


@pytest.mark.parametrize("store", [MemoryStore(), MemoryPieceStore()])
def test_without_its_end_there_is_no_entry(tmp_path: Path, store: MemoryStore) -> None:
    with pytest.raises(ZeroDivisionError), begin(store, "k", tmp_path / "spool") as pieces:
        pieces.finish([pieces.put(b"x")][1 // 0 :])
    assert store.entries == {}


def test_a_file_that_became_shorter_is_a_store_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(b"0123456789")
    store = MemoryStore()
    with pytest.raises(StoreError, match="became shorter"), begin(store, "k", tmp_path / "spool") as pieces:
        pieces.finish([pieces.put(FilePart(tmp_path / "layer", 5, 6))])
    assert store.entries == {}
    assert not (tmp_path / "spool").exists()


def test_a_store_that_refuses_the_file_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    store = MemoryStore()
    store.refuse["save"] = StoreError("memory: 503")
    with pytest.raises(StoreError, match="503"), begin(store, "k", tmp_path / "spool") as pieces:
        pieces.finish([pieces.put(b"x")])
    assert not (tmp_path / "spool").exists()
