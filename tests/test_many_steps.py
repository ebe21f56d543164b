"""What a step more of a long job costs in memory, counted on the largest that our process has ever been."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.jobfile.resolve import JobDefaults, load_job
from checkpoint_action.model import Record, Status
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.plan import Planner
from checkpoint_action.runner.recall import mark_of

if TYPE_CHECKING:
    from pathlib import Path

FEW, MANY = 2_000, 12_000
MOST = {"run --quiet": 2_600, "plan": 2_200, "plan --json": 2_200, "status": 800, "status --json": 2_200}
"""Bytes a step, about a third more than it is."""

WATCHED = """
import json, os, sys
nowhere = os.open(os.devnull, os.O_WRONLY)
files = [(os.POSIX_SPAWN_DUP2, nowhere, 1)]
argv = [sys.executable, "-m", "checkpoint_action", *sys.argv[1:]]
pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=files)
_, status, used = os.wait4(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)]))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the largest size is not told there"),
]


def all_done(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of so many steps, and the state that a run has left that did them all."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    text = "job: many\nsteps:\n" + "".join(f"  - {{id: s{number}, run: 'true;'}}\n" for number in range(count))
    (folder / "checkpoint.yml").write_text(text, encoding="utf-8")
    job = load_job(text, "checkpoint.yml", JobDefaults("many", folder, folder))
    paths = StatePaths(folder, "many")
    planner, journal = Planner(job, {}, {}), Journal(paths, load(paths))
    for step in job.steps:
        parts = planner.parts(step)
        digest = fingerprint(parts)
        log = f".checkpoint-run-many.logs/{step.id}.log"
        record = Record(step.id, Status.DONE, digest, step.command, parts, 0, tries=1, started=1.7e9, duration=0.01)
        record = replace(record, result=digest, log=log)
        planner.recorded(record)
        journal.records[step.id] = record
    journal.order = mark_of("checkpoint.yml"), [step.id for step in job.steps]
    journal.open()
    journal.close()
    paths.logs.mkdir()


def largest(folder: Path, words: str) -> int:
    """Bytes of memory that a command had at most.

    It is started by a process that is small: what a program is measured by begins with what its parent had.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CHECKPOINT_", "PYTEST"))}
    argv = [sys.executable, "-c", WATCHED, *words.split()]
    said = subprocess.run(argv, cwd=folder, env=env, check=True, stdout=subprocess.PIPE, timeout=120).stdout
    code, size = json.loads(said)
    assert code == 0
    return int(size)


def test_a_step_more_costs_no_more_than_a_few_records_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (FEW, MANY):
        all_done(tmp_path / str(count), count, monkeypatch)
    found = {}
    for words in MOST:
        few, many = (largest(tmp_path / str(count), words) for count in (FEW, MANY))
        found[words] = (many - few) // (MANY - FEW)
        if words.startswith("run"):
            for count in (FEW, MANY):  # it has found all of it done; what it has kept would be the answer to the others
                (tmp_path / str(count) / ".checkpoint-run-many.plan").unlink()
    assert {words: size for words, size in found.items() if size > MOST[words]} == {}, found
