"""The benchmark of the set-up does what it says. What it measures decides nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import setup
from runtime import bootstrap

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the script of the action is started by bash"),
]


def test_cold_warm_and_again(tmp_path: Path) -> None:
    machine = setup.Machine(tmp_path / "machine", sys.executable)
    packages = tmp_path / "machine" / "tools" / "checkpoint-run"
    name = bootstrap.folder_name(setup.REQUIREMENTS.read_bytes())
    machine.action()
    assert bootstrap.is_complete(packages / name)
    machine.new_job()
    assert not list((tmp_path / "machine" / "action").rglob("__pycache__"))
    machine.action()
    machine.next_use()
    machine.action()
    assert "checkpoint_action.runner.engine" in machine.profile()
    machine.pip()
    assert (tmp_path / "machine" / "target" / "urllib3").is_dir()
    machine.forget()
    assert not packages.exists()
    assert not (tmp_path / "machine" / "target").exists()
