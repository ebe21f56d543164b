"""What a path is, as an entry."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from checkpoint_action.runner.entries import UNREADABLE, entries_of, entry_of, looked_at
from checkpoint_action.runner.hashing import ContentDigests, text_digest

if TYPE_CHECKING:
    from pathlib import Path


def test_a_path_that_is_not_there_has_no_entry(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    assert entry_of(str(tmp_path / "x"), "x", ContentDigests()) is None
    assert entry_of(str(tmp_path / "f" / "x"), "f/x", ContentDigests()) is None


def test_many_paths_come_in_their_order_each_with_what_the_system_says_of_it(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (2 << 20))
    (tmp_path / "small").write_bytes(b"y")
    names = ["large", "missing", "small", "."]
    places = [(str(tmp_path / name), name) for name in names]
    found = list(looked_at(places, ContentDigests()))
    assert [(name, entry) for name, entry, _ in found] == list(entries_of(places, ContentDigests()))
    assert [name for name, _, _ in found] == names
    assert [info.st_size if info else None for _, _, info in found][:3] == [2 << 20, None, 1]
    large = found[0][1]
    assert not isinstance(large, OSError)
    assert large is not None
    assert large.sha256 == text_digest("x" * (2 << 20)) != UNREADABLE
    assert found[3][2] == os.lstat(tmp_path)
