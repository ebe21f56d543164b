"""The action's modules are compiled beside an installation, and never in its way."""

from __future__ import annotations

import py_compile
import threading
import time
from importlib.util import cache_from_source
from typing import TYPE_CHECKING

import pytest

from runtime.compiling import compiling, compiling_from_behind

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine tells Python, it may write bytecode."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


def package(folder: Path, modules: int) -> list[Path]:
    paths = [folder / "inner" / f"module{number}.py" for number in range(modules)]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_text("answer = 42\n" * 500)
    return paths


def compiled(paths: list[Path]) -> list[Path]:
    return [path for path in paths if (path.parent / cache_from_source(path.name)).exists()]


def test_modules_are_compiled_meanwhile(tmp_path: Path) -> None:
    paths = package(tmp_path, 3)
    paths[1].write_text("not Python at all\n")
    with compiling(tmp_path):
        deadline = time.monotonic() + 60
        while len(compiled(paths)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert compiled(paths) == [paths[0], paths[2]]


def test_it_ends_with_what_it_goes_beside(tmp_path: Path) -> None:
    paths = package(tmp_path, 500)
    before = threading.active_count()
    with compiling(tmp_path):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    assert len(compiled(paths)) < len(paths)


def test_a_failed_installation_ends_it_too(tmp_path: Path) -> None:
    package(tmp_path, 500)
    before = threading.active_count()
    with pytest.raises(KeyError), compiling(tmp_path):
        raise KeyError
    assert threading.active_count() == before


def test_a_folder_that_is_not_there_is_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with compiling(tmp_path / "missing"):
        pass
    assert capfd.readouterr() == ("", "")


def test_nothing_is_written_where_python_is_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    before = threading.active_count()
    with compiling(tmp_path):
        assert threading.active_count() == before


def parts(folder: Path) -> list[Path]:
    (folder / "__init__.py").touch()
    for name in ("report", "runner", "store", "toolkit"):
        (folder / name).mkdir()
        for number in range(3):
            (folder / name / f"m{number}.py").write_text("answer = 42\n")
    return sorted(folder.rglob("m*.py"))


def test_the_last_modules_are_compiled_beside_the_loading_of_the_first(tmp_path: Path) -> None:
    paths = parts(tmp_path)
    with compiling_from_behind(tmp_path):
        deadline = time.monotonic() + 60
        while len(compiled(paths)) < 9:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert [path.parent.name for path in paths if path not in compiled(paths)] == ["report"] * 3


@pytest.mark.parametrize("why", ["there already", "not wanted", "not there"])
def test_no_process_is_started_where_there_is_nothing_to_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why != "not there":
        parts(tmp_path)
    if why == "there already":
        py_compile.compile(str(tmp_path / "__init__.py"))
    monkeypatch.setattr("sys.dont_write_bytecode", why == "not wanted")
    started: list[object] = []
    monkeypatch.setattr("subprocess.Popen", lambda *words, **_options: started.append(words))
    with compiling_from_behind(tmp_path):
        assert started == []


def test_what_is_left_at_the_end_of_the_loading_stays_as_it_is(tmp_path: Path) -> None:
    paths = parts(tmp_path)
    for path in paths:
        path.write_text("answer = 42\n" * 100_000)
    with pytest.raises(KeyError), compiling_from_behind(tmp_path):
        raise KeyError
    assert len(compiled(paths)) < 9
