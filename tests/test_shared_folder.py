"""State in a folder like ``/tmp``, where another user has made something of our names first."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StateError
from checkpoint_action.runner.journal import StatePaths, load
from checkpoint_action.runner.shells import Scripts
from tests.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform == "win32" or os.geteuid() != 0 or shutil.which("setpriv") is None,
        reason="only root can be two users",
    ),
]

STRANGER = ("setpriv", "--reuid=12346", "--regid=12346", "--clear-groups")
NAMES = ("json", "journal", "index", "plan", "lock", "logs", "progress", "run", "archives", "fetched")


class Shared:
    """A folder that all may write to, and a file of ours that nobody else may change."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.state = folder / "state"
        self.state.mkdir()
        self.state.chmod(0o1777)
        self.precious = folder / "precious"
        self.precious.write_text("precious")
        (folder / "work").mkdir(mode=0o700)
        self.console = Console(folder / "work")

    def stranger(self, script: str) -> None:
        subprocess.run([*STRANGER, "sh", "-euc", f"umask 0; cd {self.state}; {script}"], check=True)

    def run(self, *words: str) -> tuple[int, str]:
        ended = self.console.run(*words, "--job", "j", "--state-dir", str(self.state))
        return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture
def shared() -> Iterator[Shared]:
    with tempfile.TemporaryDirectory() as folder:  # those of pytest let no other user in
        yield Shared(Path(folder))


@pytest.mark.parametrize("kind", ["link", "folder", "file"])
def test_what_a_stranger_made_is_not_used_and_named(shared: Shared, kind: str) -> None:
    paths = StatePaths(shared.state, "j")
    assert sorted(path.suffix[1:] for path in paths.all) == sorted(NAMES)
    for path in paths.all:
        how = {"link": f"ln -s {shared.precious} {path}", "folder": f"mkdir {path}", "file": f": >{path}"}
        shared.stranger(how[kind])
        with pytest.raises(StateError, match=f"{path.name}: it is another user's"):
            load(paths)
        shared.stranger(f"rmdir {path} 2>/dev/null || rm {path}")
    assert load(paths).records == {}


@pytest.mark.parametrize("words", [("run", "--step", "a:true"), ("plan", "--step", "a:true"), ("status",)])
def test_every_verb_that_reads_the_state_says_so(shared: Shared, words: tuple[str, ...]) -> None:
    shared.stranger(f"ln -s {shared.precious} .checkpoint-run-j.fetched")
    code, said = shared.run(*words)
    assert code == 2
    assert ".checkpoint-run-j.fetched: it is another user's, in a folder that all may write to" in said
    assert shared.precious.read_text() == "precious"


def test_a_log_is_not_written_through_a_link_that_lies_in_wait(shared: Shared) -> None:
    shared.stranger(f"mkdir .checkpoint-run-j.logs; ln -s {shared.precious} .checkpoint-run-j.logs/a.log")
    assert shared.run("run", "--step", "a:echo evil")[0] == 2
    assert shared.precious.read_text() == "precious"


def test_a_strangers_word_that_a_step_is_done_does_not_count(shared: Shared) -> None:
    assert shared.run("run", "--step", "a:true")[0] == 0
    for path in shared.state.glob(".checkpoint-run-j.*"):
        os.lchown(path, 12346, 12346)
        if path.is_file():
            path.chmod(0o644)
    code, said = shared.run("status")
    assert (code, "done" in said) == (2, False), said


def test_what_is_made_there_is_for_us_alone_whatever_the_mask(shared: Shared) -> None:
    before = os.umask(0)
    try:
        assert shared.run("run", "--step", "a:echo x", "--step", "b:false")[0] == 1
    finally:
        os.umask(before)
    paths = [path for path in shared.state.iterdir() if path.suffix != ".lock"]
    assert len(paths) >= 3
    assert [path for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    assert shared.run("run", "--step", "a:echo x", "--step", "b:true")[0] == 0


def test_a_folder_of_ones_own_may_hold_what_others_made(shared: Shared) -> None:
    """As where root works in somebody's project: who may write there may replace everything anyway."""
    shared.state.chmod(0o755)
    assert shared.run("run", "--step", "a:true")[0] == 0
    for path in shared.state.iterdir():
        os.lchown(path, 12346, 12346)
    assert shared.run("run", "--step", "a:true")[0] == 0


def test_a_script_is_not_put_into_a_folder_that_a_stranger_made_anew(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(shared.state))
    scripts = Scripts()
    folder = Path(scripts.take(b"true", ".sh")).parent
    shutil.rmtree(folder)
    shared.stranger(f"mkdir {folder}")
    with pytest.raises(PermissionError, match="another user's"):
        scripts.take(b"true", ".sh")
