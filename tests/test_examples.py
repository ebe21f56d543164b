"""The example of the README, lost in its third step and run again."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from checkpoint_action.runner.journal import StatePaths, load

ROOT = Path(__file__).parent.parent
TOOL = Path(sys.executable).with_name("checkpoint-run")
COMMAND = [str(TOOL), "-f", "examples/stdlib-search/checkpoint.yml"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the examples in it."""
    shutil.copytree(ROOT / "examples", tmp_path / "clone" / "examples")
    return tmp_path / "clone"


def digests(folder: Path) -> dict[str, str]:
    """Every file of the result."""
    files = sorted(path for path in (folder / "build").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def start(folder: Path) -> subprocess.Popen[str]:
    """Start the job as a person would; python3 is this Python."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.Popen(
        COMMAND, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )


def statuses(folder: Path) -> dict[str, str]:
    """What is recorded."""
    return {step: record.status.value for step, record in load(StatePaths(folder, "stdlib-search")).records.items()}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_example_killed_in_its_third_step_goes_on_there(clone: Path) -> None:
    lost = start(clone)
    deadline = time.monotonic() + 300
    while statuses(clone).get("index") != "running":
        assert lost.poll() is None, lost.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.1)
    parent = psutil.Process(lost.pid)
    for process in [*parent.children(recursive=True), parent]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    lost.communicate(timeout=30)
    assert statuses(clone) == {"collect": "done", "count": "done", "index": "running"}

    again = start(clone)
    log = again.communicate(timeout=300)[0]
    assert again.returncode == 0, log
    assert "[1/5] collect: skipped (done)" in log
    assert "[2/5] count: skipped (done)" in log
    assert "[3/5] index: runs (interrupted-before)" in log
    assert set(statuses(clone).values()) == {"done"}
    assert (clone / "build/stdlib-search/report.html").stat().st_size > 10_000

    resumed = digests(clone)
    shutil.rmtree(clone / "build")
    whole = start(clone)
    log = whole.communicate(timeout=400)[0]
    assert whole.returncode == 0, log
    assert digests(clone) == resumed


@pytest.mark.skipif(sys.platform == "win32", reason="its commands are those of POSIX")
def test_the_readmes_own_command_line_runs_as_it_stands(tmp_path: Path) -> None:
    found = re.search(
        r"<!-- runs as it stands -->\n```sh\n(.*?)\n```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    command = found[1]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def again() -> str:
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
        return done.stderr

    assert "skipped" not in again()
    assert (tmp_path / "sum").read_text() == "50005000\n"
    assert again().count(": skipped") == 2
    (tmp_path / "numbers").unlink()
    said = again()
    assert "list: runs (output-missing: numbers" in said
    assert "add: skipped" in said
