"""The benchmark of resumes does what it says, on next to no steps. What it measures decides nothing."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks import resume

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh")]

TOOL = """\
#!/bin/sh
if [ "$1" = --version ]; then echo tool 1.2.3; exit; fi
[ -e out/0 ] && exit
for step in 0 1 2; do echo $step >> ran; echo $step > out/$step; done
"""


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with one tool; another is nowhere."""
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "some-tool"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    some = replace(resume.PEERS[0], name="some", argv=("some-tool",))
    none = replace(resume.PEERS[1], name="none", argv=("no-such-tool",))
    monkeypatch.setattr(resume, "PEERS", (some, none))
    return tmp_path


def test_it_measures_what_it_names(peers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--steps", "3", "--rounds", "2", "--peers", str(peers), "--folder", str(peers)]
    assert resume.main(words) in (0, 1)
    out = capsys.readouterr().out.splitlines()
    table = [line for line in out if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert len(table) == 11
    assert table[-2].startswith("| some 1.2.3 |")
    assert table[-1].startswith("| none | not installed |")
    assert "Medians of 2. Goals: " in out[-1]
    assert os.listdir(peers) == ["bin"]


def test_a_step_that_runs_again_is_an_error(peers: Path) -> None:
    tool = peers / "bin" / "some-tool"
    tool.write_text(TOOL.replace("[ -e out/0 ]", "[ -e never ]"))
    with pytest.raises(SystemExit, match="some-tool has run 3 steps again"):
        resume.main(["--steps", "3", "--rounds", "1", "--peers", str(peers)])


def test_its_lines_name_what_is_missing(
    peers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{peers / 'bin'}{os.pathsep}{os.environ['PATH']}")
    found = resume.lines(quick=True, folder=tmp_path)
    assert [line.peer for line in found[2:]] == ["some 1.2.3", "none"]
    assert [line.theirs is None for line in found] == [False, False, False, True]
    assert "round 1 of 1" in capsys.readouterr().err


def test_a_tool_that_does_not_run_the_job_is_told_that_it_is_done(peers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = replace(resume.PEERS[0], made=(("some-tool", "--version"),))
    monkeypatch.setattr(resume, "PEERS", (told,))
    assert resume.main(["--steps", "3", "--rounds", "1", "--peers", str(peers)]) in (0, 1)
