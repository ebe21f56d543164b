"""The folder that a run lends to its steps, and the command in it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action import __version__
from checkpoint_action.runner.handed_on import Seen
from checkpoint_action.runner.run_folder import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and a script of sh")

ODD = ["with space", 'it\'s "quoted"', "$HOME `id` $(id)", "back\\slash", "-dash", "tab\tand\nline", "ünï", "%TEMP%;:"]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "state" / "run")
    made.make()
    return made


@posix
def test_nobody_else_may_look_into_it(folder: RunFolder) -> None:
    for path in [folder.path, *folder.path.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_dir():
            assert mode == 0o700, path
    assert stat.S_IMODE((folder.programs / "checkpoint-run").stat().st_mode) == 0o700


@posix
def test_the_mode_does_not_depend_on_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = RunFolder(tmp_path / "run")
        folder.make()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_what_an_earlier_run_left_is_removed(folder: RunFolder) -> None:
    (folder.requests / "old.request").touch()
    folder.make()
    assert list(folder.requests.iterdir()) == []
    folder.remove()
    assert not folder.path.exists()
    folder.remove()


def test_what_cannot_be_removed_does_not_keep_a_run_from_starting(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case: a process that an earlier run left behind has a file open, on Windows."""
    monkeypatch.setattr("shutil.rmtree", lambda *_args, **_options: None)
    folder.make()
    assert (folder.programs / "checkpoint-run").exists()


def call(folder: RunFolder, *words: str) -> subprocess.CompletedProcess[str]:
    """Call the command as a step does: by its name."""
    return subprocess.run(
        ["sh", "-c", 'exec checkpoint-run "$@"', "sh", *words],
        env={"PATH": f"{os.defpath}{os.pathsep}{folder.programs}", "PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


@posix
def test_the_command_works_whatever_the_steps_own_python_settings_are(folder: RunFolder) -> None:
    done = call(folder, "--version")
    assert (done.returncode, done.stdout.split()[-1]) == (0, __version__), done.stderr


@posix
@pytest.mark.parametrize("name", [name for name in ODD if os.pathsep not in name])
def test_the_command_works_from_odd_places(tmp_path: Path, name: str) -> None:
    folder = RunFolder(tmp_path / name / "run")
    folder.make()
    assert call(folder, "--version").returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text")
def test_the_command_works_from_a_place_whose_name_is_no_text(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / os.fsdecode(b"odd\xff") / "run")
    folder.make()
    assert call(folder, "--version").returncode == 0


@posix
@pytest.mark.parametrize("words", [["save"], ["save", "--quiet", "it's"], ["a b", "$HOME", ""]])
def test_the_command_gets_its_words_as_they_are(folder: RunFolder, words: list[str]) -> None:
    program = folder.programs / "checkpoint-run.py"
    program.write_text("import json, sys; print(json.dumps(sys.argv[1:]))")
    assert json.loads(call(folder, *words).stdout) == words


def test_the_command_comes_after_all_else_on_the_path_and_folders_of_steps_before(folder: RunFolder) -> None:
    found = folder.search_path(os.pathsep.join(("/usr/bin", "/bin")), Seen(path=("/first", "/second")))
    assert found == os.pathsep.join(("/second", "/first", "/usr/bin", "/bin", str(folder.programs)))


@pytest.mark.parametrize(("seen", "expected"), [((), None), (("/tools",), ["/tools", *os.defpath.split(os.pathsep)])])
def test_a_missing_path_stays_so_unless_something_is_to_be_added(
    folder: RunFolder, seen: tuple[str, ...], expected: list[str] | None
) -> None:
    found = folder.search_path(None, Seen(path=seen))
    assert found == (None if expected is None else os.pathsep.join([*expected, str(folder.programs)]))


def test_an_empty_path_is_one(folder: RunFolder) -> None:
    assert folder.search_path("", Seen()) == os.pathsep.join(["", str(folder.programs)])


def test_the_outputs_of_steps_before_are_in_a_file_of_each_try(folder: RunFolder) -> None:
    nothing = folder.outputs_file(Seen(), "t1")
    assert json.loads(nothing.read_text()) == {}
    assert folder.outputs_file(Seen(), "t2") == nothing
    some = folder.outputs_file(Seen(outputs={"a": {"x": "ü\ud800"}}), "t3")
    assert json.loads(some.read_text()) == {"a": {"outputs": {"x": "ü\ud800"}}}
