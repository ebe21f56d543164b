"""What running a step costs, counted: a run of more steps does no more for each than it must."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are shell scripts")

FEW, MORE = 10, 50
COUNTED = """
import json, os, sys, threading
counts = {}

def note(event, words=()):
    if event == "open":
        if not isinstance(words[0], (str, bytes)) or not words[2] & os.O_CREAT or os.path.exists(words[0]):
            return
        event = "new file"
    counts[event] = counts.get(event, 0) + 1

def counting(where, name):
    real = getattr(where, name)
    def counted(*words, **more):
        note(name)
        return real(*words, **more)
    setattr(where, name, counted)

sys.addaudithook(note)
for where, name in ((os, "fsync"), (os, "fdatasync"), (os, "pipe"), (threading.Thread, "start")):
    if hasattr(where, name):
        counting(where, name)
from checkpoint_action.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, counts]), file=sys.stderr)
"""


def counts(folder: Path, steps: int, *words: str) -> dict[str, int]:
    """How often a run of so many trivial steps does something."""
    folder.mkdir()
    lines = ["job: j", "shell: sh", "steps:", *(f"  - {{id: s{number}, run: 'true'}}" for number in range(steps))]
    (folder / "checkpoint.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, "--quiet", *words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    code, found = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return dict(found)


def growth(folder: Path, *words: str) -> dict[str, float]:
    """What each further step adds, by kind."""
    few, more = (counts(folder / str(steps), steps, *words) for steps in (FEW, MORE))
    return {kind: (number - few.get(kind, 0)) / (MORE - FEW) for kind, number in more.items()}


def test_each_step_is_one_process_one_sync_and_one_new_file(tmp_path: Path) -> None:
    found = growth(tmp_path)
    assert found["subprocess.Popen"] == 1
    assert found["fsync"] + found.get("fdatasync", 0) == 1
    assert found["new file"] == 1, "its log"
    assert found["pipe"] == 2, "its output, and what tells Popen that it has started"
    made = {kind: found.get(kind, 0) for kind in ("os.mkdir", "os.rmdir", "os.remove", "socket.__new__", "start")}
    assert set(made.values()) == {0}, "nothing that is soon removed again is made"


def test_without_logs_no_file_is_made(tmp_path: Path) -> None:
    assert growth(tmp_path, "--no-logs").get("new file", 0) == 0


def test_the_journal_has_grown_by_few_blocks_when_a_sync_needs_more_than_the_data(tmp_path: Path) -> None:
    found = growth(tmp_path)
    if "fdatasync" in found:
        assert found["fsync"] < 0.1 < 0.9 < found["fdatasync"]
