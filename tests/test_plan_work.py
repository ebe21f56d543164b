"""What a plan costs, counted: no folder is listed and no file opened more often than needed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are shell scripts")

STEPS = 12
COUNTED = """
import json, os, sys
from checkpoint_action.cli import main

events = []
here = os.path.join(os.path.realpath(os.getcwd()), "")

def note(event, words):
    if event in ("open", "os.scandir") and isinstance(words[0], str):
        path = os.path.join(here, words[0])
        if path.startswith(here):
            events.append([event, path[len(here):]])

sys.addaudithook(note)
code = main(sys.argv[1:])
print(json.dumps([code, events]), file=sys.stderr)
"""


def counted(folder: Path, *words: str) -> tuple[Counter[str], Counter[str]]:
    """How often the program itself opens each file and lists each folder."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    code, events = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return (
        Counter(path for event, path in events if event == "open"),
        Counter(path for event, path in events if event == "os.scandir"),
    )


def job(folder: Path, inputs: str) -> Console:
    """A job of steps that all read the same, once run."""
    for name in ("src/a/one", "src/a/b/two", "other/three"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    steps = "".join(f"  - {{id: s{number}, inputs: {inputs}, run: 'true'}}\n" for number in range(STEPS))
    (folder / "checkpoint.yml").write_text(f"job: demo\nshell: sh\nsteps:\n{steps}")
    console = Console(folder)
    assert console.run("--no-logs").returncode == 0
    return console


def test_what_many_steps_read_is_looked_at_once(tmp_path: Path) -> None:
    job(tmp_path, "['src/**']")
    opened, listed = counted(tmp_path, "plan")
    assert opened["src/a/one"] == opened["src/a/b/two"] == 1
    assert listed == {"src": 1, "src/a": 1, "src/a/b": 1}


def test_each_folder_that_a_pattern_matches_is_listed_once(tmp_path: Path) -> None:
    job(tmp_path, "['src/*', 'other/thr*']")
    assert counted(tmp_path, "plan")[1] == {"src": 1, "src/a": 1, "src/a/b": 1, "other": 1}


def test_for_a_path_without_wildcards_no_folder_is_listed(tmp_path: Path) -> None:
    job(tmp_path, "[src/a/one, other/three]")
    opened, listed = counted(tmp_path, "plan")
    assert opened["src/a/one"] == opened["other/three"] == 1
    assert listed == {}


def test_the_state_is_read_once(tmp_path: Path) -> None:
    job(tmp_path, "[other/three]")
    opened, _ = counted(tmp_path, "plan")
    assert (
        opened["checkpoint.yml"] == opened[".checkpoint-run-demo.json"] == opened[".checkpoint-run-demo.journal"] == 1
    )


def test_a_step_that_runs_sees_its_inputs_anew(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text(
        "job: demo\nshell: sh\nsteps:\n"
        "  - {id: a, inputs: ['src/**'], run: 'mkdir -p src; echo x > src/x'}\n"
        "  - {id: b, inputs: ['src/**'], run: 'true'}\n"
    )
    console = Console(tmp_path)
    console.run()
    state = console.state("demo")
    assert "input src/x" not in state["a"]["parts"]
    assert "input src/x" in state["b"]["parts"]
