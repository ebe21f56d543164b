"""The looks at programs, libraries and settings, each with and without what it looks for."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.health import machine
from checkpoint_action.health.finding import Level, good

if TYPE_CHECKING:
    from pathlib import Path

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="programs are files with a mode")


def program(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_python_by_its_version() -> None:
    assert machine.python().level is not Level.PROBLEM
    assert machine.python((3, 9, 1)).level is Level.PROBLEM
    assert [machine.python((3, minor, 0)).level for minor in range(10, 15)] == [Level.OK] * 5
    assert machine.python((3, 15, 0)).level is Level.WARNING


@posix_only
def test_shells(tmp_path: Path) -> None:
    assert machine.shells(str(tmp_path)).level is Level.PROBLEM
    program(tmp_path, "sh")
    without_bash = machine.shells(str(tmp_path))
    assert (without_bash.level, without_bash.found) == (Level.WARNING, "sh; no bash")
    assert "shell: sh" in without_bash.remedy
    program(tmp_path, "bash")
    program(tmp_path, "python3")
    assert machine.shells(str(tmp_path)) == good("shells", "bash, sh, python")


@posix_only
def test_git(tmp_path: Path) -> None:
    assert (machine.git(str(tmp_path)).level, machine.git(str(tmp_path)).found) == (Level.WARNING, "not found")
    program(tmp_path, "git", "exit 1")
    assert "does not run" in machine.git(str(tmp_path)).found
    program(tmp_path, "git", "echo git version 9.8")
    assert machine.git(str(tmp_path)) == good("git", "9.8")


def test_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.zstandard().level is Level.OK
    assert machine.yaml().level is not Level.PROBLEM
    monkeypatch.setitem(sys.modules, "yaml", None)
    missing = machine.yaml()
    assert (missing.level, "pip install pyyaml" in missing.remedy) == (Level.PROBLEM, True)
    monkeypatch.setitem(sys.modules, "backports", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    without = machine.zstandard()
    assert (without.level, without.found) == (
        Level.WARNING,
        "no Zstandard in this Python (" + without.found.partition("(")[2],
    )
    assert "pip install backports.zstd" in without.remedy


def test_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert machine.temporary_folder() == good("temporary folder", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert "TMPDIR" in machine.temporary_folder().remedy


def test_terminal_by_what_it_can_show() -> None:
    plain = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert machine.terminal(plain, "xterm") == good("terminal", "no terminal, utf-8")
    narrow = machine.terminal(io.TextIOWrapper(io.BytesIO(), encoding="ascii"), None)
    assert (narrow.level, "PYTHONUTF8" in narrow.remedy) == (Level.WARNING, True)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo terminals here")
def test_terminal_that_is_one() -> None:
    import pty  # noqa: PLC0415  # not on Windows

    main, other = pty.openpty()
    with os.fdopen(other, "w", encoding="utf-8") as out:
        assert machine.terminal(out, "vt100").found == "a terminal, utf-8, TERM=vt100"
    os.close(main)


def test_proxies_without_what_is_secret_in_them() -> None:
    assert machine.proxies({}) == good("proxy", "none")
    env = {"HTTPS_PROXY": "http://me:hunter2@proxy.example:3128", "http_proxy": "plain", "NO_PROXY": "local"}
    assert machine.proxies(env) == good("proxy", "HTTPS_PROXY proxy.example:3128, HTTP_PROXY plain, not for local")
    assert machine.proxies({"HTTPS_PROXY": "http://:0"}).level is Level.WARNING
    assert machine.proxies({"HTTPS_PROXY": "http://x:notaport"}).level is Level.WARNING
    assert machine.proxies({"HTTP_PROXY": "socks5://me:hunter2@x:1"}).found == (
        "HTTP_PROXY names a socks5 proxy, and only http and https proxies can be used"
    )
