"""A job looked at from outside: at rest, after a death, and in the midst of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, Job, Reason, Record, Status, Step
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.lock import JobLock
from checkpoint_action.runner.looking import foreseen, recorded
from checkpoint_action.runner.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    """A state in which step ``a`` runs."""
    paths = StatePaths(tmp_path, "j")
    journal = Journal(paths, load(paths))
    journal.open()
    journal.start(Record("a", Status.RUNNING, "f", "true"))
    journal.close()
    return paths


def job(paths: StatePaths) -> Job:
    return Job("j", paths.folder, (Step("a", "true", "sh", paths.folder, on_crash="stop"),))


def test_what_says_that_it_runs_while_nothing_does_was_cut_off(paths: StatePaths) -> None:
    record = recorded(paths).records["a"]
    assert (record.status, record.error) == (Status.INTERRUPTED, "the run ended without a word")
    [decision] = foreseen(job(paths), paths, {}, Selection(), trust_stat=False).plan.decisions
    assert decision.action is Action.STOP  # a person has to say what became of it


def test_in_the_midst_of_a_run_what_runs_has_not_died(paths: StatePaths) -> None:
    lock = JobLock(paths.lock)
    lock.acquire()
    try:
        assert recorded(paths).records["a"].status is Status.RUNNING
        found = foreseen(job(paths), paths, {}, Selection(), trust_stat=True)
        [decision] = found.plan.decisions
        assert (decision.action, decision.reason) == (Action.RUN, Reason.INTERRUPTED_BEFORE)
        assert decision.detail == "it is running right now"
        assert "going on" in found.warnings[0]
    finally:
        lock.release()
