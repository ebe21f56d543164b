"""``doctor`` as a whole: a line a thing, what to do below it, exit code 0 or 1."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path


def test_a_good_machine_is_told_of_line_by_line_and_nothing_is_left_behind(tmp_path: Path) -> None:
    told = Console(tmp_path).run("doctor")
    assert told.stderr == ""
    names = [line[9:].split("  ")[0] for line in told.stdout.splitlines() if not line.startswith(" ")]
    assert names[:5] == ["python", "shells", "git", "zstandard", "yaml"]
    assert {"state dir", "free space", "locks", "clock", "temporary folder", "terminal", "proxy"} <= set(names)
    assert told.returncode == ("problem" in told.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="PATH is looked at as on POSIX")
def test_a_problem_is_exit_code_1_and_json_says_the_same(tmp_path: Path) -> None:
    told = Console(tmp_path).run("doctor", "--json", env={"PATH": str(tmp_path)})
    assert told.returncode == 1
    found = {one["what"]: one for one in json.loads(told.stdout)["findings"]}
    assert found["shells"]["level"] == "problem"
    assert found["shells"]["remedy"]
    assert found["python"] == {**found["python"], "level": "ok", "remedy": ""}
    lines = Console(tmp_path).run("doctor", env={"PATH": str(tmp_path)})
    assert lines.returncode == 1
    assert "problem  shells" in lines.stdout
    assert f"-> {found['shells']['remedy']}" in lines.stdout


def test_the_state_dir_that_is_named_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = Console(tmp_path).run("doctor", "--state-dir", "file")
    assert told.returncode == 1
    assert "cannot be written" in told.stdout


def test_words_and_options_of_other_verbs_are_refused(tmp_path: Path) -> None:
    console = Console(tmp_path)
    assert console.run("doctor", "--jobs", "2").stderr.endswith("--jobs is not for doctor; leave it out\n")
    assert console.run("doctor", "me").stderr.endswith("doctor takes no such word; leave 'me' out\n")
