"""Folders for a while."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.store.temporary import TemporaryFolder

if TYPE_CHECKING:
    import pytest


def _refuse(*_args: object, **_options: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_it_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    with TemporaryFolder("for-", tmp_path) as name:
        assert Path(name).name.startswith("for-")
        Path(name, "below").mkdir()
        Path(name, "below", "file").touch()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_every_change_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryFolder("for-", tmp_path) as name:
        Path(name, "file").touch()
        for call in ("unlink", "rmdir", "chmod"):
            monkeypatch.setattr(os, call, _refuse)
    monkeypatch.undo()
    assert Path(name, "file").exists()


def test_a_disk_that_opens_no_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryFolder("for-", tmp_path) as name:
        Path(name, "file").touch()
        for call in ("open", "scandir"):
            monkeypatch.setattr(os, call, _refuse)
    monkeypatch.undo()
    assert Path(name, "file").exists()
