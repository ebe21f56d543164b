"""What a run lends to its steps, and takes back."""

from __future__ import annotations

import errno
import sys
import tempfile
from pathlib import Path

import pytest

from checkpoint_action.errors import StateWriteError, UsageError
from checkpoint_action.runner.journal import StatePaths
from checkpoint_action.runner.lent import Lent
from checkpoint_action.runner.run_folder import RunFolder
from checkpoint_action.runner.save_requests import request_save
from tests.runner.jobs import job, step


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    return StatePaths(tmp_path, "demo")


def lent(paths: StatePaths | None) -> Lent:
    made = Lent(job(Path("/"), step("a", Path("/")), step("b", Path("/"))), paths)
    made.open()
    return made


def test_only_what_unfinished_steps_have_outlives_the_run(paths: StatePaths) -> None:
    one = lent(paths)
    (Path(one.progress.make("a")) / "x").write_text("kept")
    one.progress.make("b")
    prefix = one.desk.open_for("token", lambda: "saved")
    assert request_save(prefix) == "saved"
    one.close()
    assert sorted(path.name for path in paths.folder.iterdir()) == [".checkpoint-run-demo.progress"]
    other = lent(paths)
    assert (Path(other.progress.make("a")) / "x").read_text() == "kept"
    other.progress.forget("a")
    other.close()
    assert list(paths.folder.iterdir()) == []


def test_a_request_after_the_end_is_told_so(paths: StatePaths) -> None:
    one = lent(paths)
    prefix = one.desk.open_for("token", lambda: "saved")
    one.close()
    with pytest.raises(UsageError, match="the run that started this step is over"):
        request_save(prefix)


def test_without_a_place_for_the_state_all_of_it_is_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one = lent(None)
    (Path(one.progress.make("a")) / "x").touch()
    assert one.folder.path.is_relative_to(tmp_path)
    one.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a file in the place of a folder, as POSIX tells it")
def test_a_place_that_cannot_be_made_is_named(paths: StatePaths) -> None:
    paths.folder.rmdir()
    paths.folder.write_text("a file")
    with pytest.raises(
        StateWriteError, match=r"cannot make .*\.checkpoint-run-demo\.run.*: .*choose another --state-dir"
    ):
        lent(paths)


def test_a_full_disk_is_named_with_the_place(paths: StatePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case: what is raised by a write names no file."""

    def fail(_folder: RunFolder) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RunFolder, "make", fail)
    with pytest.raises(StateWriteError, match=r"cannot make .*\.checkpoint-run-demo\.run: No space left on device"):
        lent(paths)
