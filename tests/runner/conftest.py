"""A folder that any user can get to, and machines that share a store."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner import uploads
from tests.runner.machines import Machine
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def public() -> Iterator[Path]:
    """Unlike ``tmp_path`` it is not below a folder that only its owner may enter."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """One upload follows the other at once."""
    monkeypatch.setattr(uploads, "_APART", 0.0)


@pytest.fixture
def store() -> MemoryStore:
    """An empty one."""
    return MemoryStore()


@pytest.fixture
def one(tmp_path: Path, store: MemoryStore) -> Machine:
    """A machine with a workspace of its own."""
    return Machine(tmp_path / "one", store)


@pytest.fixture
def other(tmp_path: Path, store: MemoryStore) -> Machine:
    """Another, with the same store."""
    return Machine(tmp_path / "other", store)
