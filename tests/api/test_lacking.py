"""A lack of memory or threads from Python: one error of ours, and nothing that runs on or counts as done."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from checkpoint_action import Job, Step, load_job, plan, run, status
from checkpoint_action.api.lacking import tells_of_lacks
from checkpoint_action.errors import CheckpointError, ExhaustedError, StoreError
from checkpoint_action.model import Status
from checkpoint_action.runner import attempts, steprun
from checkpoint_action.runner.journal import StatePaths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(120),
]

# What an abandoned step has printed is closed only when it is collected, which is told as a warning.
unclosed = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    gc.collect()


def lacking(function: Any, when: Any) -> Any:
    """A function for which there is no memory at some calls."""

    def called(*words: Any, **named: Any) -> Any:
        if when(*words, **named):
            raise MemoryError
        return function(*words, **named)

    return called


def ended(pid: int) -> bool:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@unclosed
def test_a_lack_in_the_thread_of_a_step_ends_the_run_and_the_steps_beside_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo("begun")
    long = Step("long", "echo $$ > pid; echo > begun; exec sleep 300", needs=[], inputs=[], outputs="none")
    short = Step("short", "cat begun; echo >> ran; echo x > out", needs=[], inputs=[], outputs="out")
    job = Job("job", [long, short])
    with monkeypatch.context() as patched:
        met = lacking(attempts.judge, lambda outcome, *_, **__: outcome.exit_code == 0)
        patched.setattr(steprun, "judge", met)
        with pytest.raises(ExhaustedError, match=r"^there is too little memory") as caught:
            run(job, jobs=2)
    assert (caught.value.code, caught.value.exit_code, caught.value.__context__) == ("CPR306", 5, None)
    assert ended(int((here / "pid").read_text()))
    assert status(job)["short"].status is not Status.DONE
    assert status(job)["long"].status is not Status.DONE


def test_what_is_recorded_stays_and_the_next_run_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Step("first", "echo >> ran1; echo x > one", inputs=[], outputs="one")
    second = Step("second", "echo >> ran2; cp one two", outputs="two", inputs=["one"])
    job = Job("job", [first, second])
    calls = iter((False, True))
    with monkeypatch.context() as patched:
        patched.setattr(steprun, "judge", lacking(attempts.judge, lambda *_, **__: next(calls)))
        with pytest.raises(ExhaustedError):
            run(job)
    found = {step: record.status for step, record in status(job).items()}
    assert found == {"first": Status.DONE, "second": Status.INTERRUPTED}
    again = run(job)
    assert (again.result, again.skipped, again.ran) == ("success", ("first",), ("second",))
    assert (here / "ran1").read_text() == "\n"
    assert (here / "ran2").read_text() == "\n\n"


@unclosed
@pytest.mark.parametrize("jobs", [1, 2])
def test_without_threads_it_is_said_and_nothing_is_begun(
    here: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    job = Job("job", [Step("a", "touch ran", outputs="ran")])
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none)
        with pytest.raises(ExhaustedError, match=r"^no more threads can be started"):
            run(job, jobs=jobs)
    assert not (here / "ran").exists()
    assert run(job, jobs=jobs).result == "success"


def test_looking_tells_it_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_words: object) -> None:
        raise MemoryError

    job = Job("job", [Step("a", "true")])
    monkeypatch.setattr(StatePaths, "__init__", lacks)
    for look in (plan, status):
        with pytest.raises(ExhaustedError):
            look(job)
    (here / "job.yml").write_text("steps: [{id: a, run: x}]")
    monkeypatch.setattr("checkpoint_action.jobfile.resolve.load_job", lacks)
    with pytest.raises(ExhaustedError):
        load_job("job.yml")


def test_other_errors_come_out_as_they_are() -> None:
    required = StoreError("cache: it failed")
    required.__cause__ = MemoryError()
    for error in (ValueError("x"), CheckpointError("y"), required):

        @tells_of_lacks
        def fails(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            fails()
        assert caught.value is error
