"""A job's state held for a run: ready when it is given, let go of however the run ends."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import Kind, StateWriteError, UsageError
from checkpoint_action.model import Job, Record, Status, Step
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.lock import JobLock
from checkpoint_action.runner.log_places import log_of
from checkpoint_action.runner.opening import opened
from checkpoint_action.runner.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Here:
    """Opens one job."""

    def __init__(self, folder: Path) -> None:
        self.paths = StatePaths(folder / "state", "j")
        self.job = Job("j", folder, (Step("a", "true", "python", folder),))
        self.told: list[str] = []

    def opened(self, selection: Selection = Selection(), *, logs: bool = True) -> Any:
        return opened(self.job, self.paths, selection, os.environ, wait=0, logs=logs, warn=self._warn)

    def _warn(self, warnings: Sequence[str]) -> None:
        self.told += warnings


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_the_lock_is_held_as_long_as_the_context_is_open(here: Here) -> None:
    def run_that_breaks_off() -> None:
        with here.opened() as (job, journal):
            assert JobLock(here.paths.lock).held()
            assert log_of(job, job.steps[0]) == str(here.paths.logs / "a.log")
            journal.finish(Record("a", Status.DONE, "f", "true"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        run_that_breaks_off()
    assert not JobLock(here.paths.lock).held()
    assert load(here.paths).records["a"].status is Status.DONE


def test_without_logs_none_is_named(here: Here) -> None:
    with here.opened(logs=False) as (job, journal):
        journal.close()
    assert log_of(job, job.steps[0]) == ""
    assert not here.paths.logs.exists()


def test_a_fresh_start_forgets_all_but_what_a_person_has_to_decide(here: Here) -> None:
    with here.opened() as (_, journal):
        journal.start(Record("a", Status.RUNNING, "f", "true"))
        journal.close()
    here.job = replace(here.job, steps=(replace(here.job.steps[0], on_crash="stop"),))
    with pytest.raises(UsageError, match="the run died in 'a'") as caught, here.opened(Selection(everything=True)):
        pass
    assert caught.value.kind is Kind.UNDECIDED
    with here.opened(Selection(everything=True, named=frozenset({"a"}))) as (_, journal):
        assert journal.records == {}
        journal.close()


def test_a_damaged_state_is_told(here: Here) -> None:
    with here.opened() as (_, journal):
        journal.finish(Record("a", Status.DONE, "f", "true"))
        journal.close()
    here.paths.snapshot.write_text("no JSON")
    with here.opened() as (_, journal):
        journal.close()
    assert here.told[0].startswith("CPR404: ")


def test_no_log_may_be_a_file_of_the_state(here: Here) -> None:
    here.job = replace(here.job, steps=(replace(here.job.steps[0], log=here.paths.journal),))
    with pytest.raises(UsageError, match="is a file of the job's state"), here.opened():
        pass
    assert not here.paths.folder.exists()


def test_a_state_dir_that_cannot_be_made_is_an_error(here: Here) -> None:
    here.paths.folder.write_text("in the way")
    with pytest.raises(StateWriteError, match="cannot make the state dir"), here.opened():
        pass


def test_a_state_that_cannot_be_used_is_left_alone(here: Here) -> None:
    here.paths.folder.mkdir()
    Journal(replace(here.paths, job="other"), load(here.paths)).open()
    os.replace(here.paths.folder / ".checkpoint-run-other.json", here.paths.snapshot)
    with pytest.raises(Exception, match="holds the state of the job 'other'"), here.opened():
        pass
    assert not here.paths.lock.exists()


def test_what_is_recorded_until_the_lock_is_held_is_known(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    acquire = JobLock.acquire

    def at_last(lock: JobLock, wait: float | None = 0) -> None:
        other = Journal(here.paths, load(here.paths))
        other.open()
        other.finish(Record("a", Status.DONE, "f", "true"))
        other.close()
        acquire(lock, wait)

    monkeypatch.setattr(JobLock, "acquire", at_last)
    with here.opened() as (_, journal):
        assert journal.records["a"].status is Status.DONE
        journal.close()


def test_what_has_not_changed_is_not_read_again(here: Here) -> None:
    with here.opened() as (_, journal):
        journal.finish(Record("a", Status.DONE, "f", "true"))
        journal.close()
    known = load(here.paths)
    assert load(here.paths, known) is known
    here.paths.journal.write_bytes(here.paths.journal.read_bytes() + b"\n")
    assert load(here.paths, known) is not known
