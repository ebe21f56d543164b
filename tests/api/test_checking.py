"""Arguments of the wrong kind: one line that names them, before anything is begun."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action import Job, Retry, Step, load_job, plan, run, status
from checkpoint_action.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def step(**words: Any) -> Job:
    return Job("j", [Step(**{"id": "a", "command": "true", **words})])


def job(**words: Any) -> Job:
    return Job(**{"name": "j", "steps": [Step("a", "true")], **words})


JOBS: dict[str, Callable[[], Any]] = {
    "a step's id must be a text, not 1": lambda: step(id=1),
    "job name must be a text, not None": lambda: job(name=None),
    "step 'a': the command must be a text, not ['echo', 'x']": lambda: step(command=["echo", "x"]),
    "steps must be a list of Step, not None": lambda: job(steps=None),
    "steps must be a list of Step, not Step(": lambda: job(steps=Step("a", "true")),
    "each of the steps must be a Step, not 'true'": lambda: job(steps=["true"]),
    "step 'a': needs must be a text, not None": lambda: step(needs=[None]),
    "step 'a': needs must be a list of texts, not 3": lambda: step(needs=3),
    "step 'a': env: A must be a text, not 1": lambda: step(env={"A": 1}),
    "step 'a': env: A holds a NUL character": lambda: step(env={"A": "x\0y"}),
    "step 'a': env must be a mapping of texts, not ['A=1']": lambda: step(env=["A=1"]),
    "env: A must be a text, not None": lambda: job(env={"A": None}),
    "step 'a': retry must be a whole number from 0, not True": lambda: step(retry=True),
    "step 'a': retry must be a whole number from 0, not 1.5": lambda: step(retry=1.5),
    "step 'a': retry: max must be a whole number from 0, not '3'": lambda: step(retry=Retry("3")),  # type: ignore[arg-type]
    "step 'a': retry: on must be a list of texts, not 'error'": lambda: step(retry=Retry(1, on="error")),  # type: ignore[arg-type]
    "step 'a': timeout must be a number of seconds": lambda: step(timeout=[]),
    "step 'a': idle_timeout must be a number of seconds": lambda: step(idle_timeout=True),
    "step 'a': inputs must be a path, not 1": lambda: step(inputs=[1]),
    "step 'a': inputs must be paths, not b'x'": lambda: step(inputs=b"x"),
    "step 'a': outputs holds a NUL character": lambda: step(outputs="a\0b"),
    "step 'a': cwd must be a path, not b'x'": lambda: step(cwd=b"x"),
    "step 'a': log holds a NUL character": lambda: step(log="a\0b"),
    "shell must be a text, not None": lambda: job(shell=None),
    "max_failures must be a whole number from 1, not '2'": lambda: job(max_failures="2"),
    "secrets must be a text, not b'x'": lambda: job(secrets=[b"x"]),
    "step 'a': pass_env must be a list of texts, not None": lambda: step(pass_env=None),
    "step 'a': wait_online must be a text, not 443": lambda: step(wait_online=443),
    "step 'a': always must be True or False, not 'no'": lambda: step(always="no"),
    "the job must be a Job, or what load_job gives, not 'j'": lambda: "j",
}

WORDS: dict[str, dict[str, Any]] = {
    "jobs must be a whole number from 1, not 1.5": {"jobs": 1.5},
    "jobs must be a whole number from 1, not inf": {"jobs": math.inf},
    "only must be a list of ids, not None": {"only": None},
    "only must be a text, not 1": {"only": [1]},
    "first must be a text, not 1": {"first": 1},
    "force must be a list of ids, not 1": {"force": 1},
    "wait_lock must be a number of seconds, not 'nan'": {"wait_lock": math.nan},
    "grace must be a number of seconds, not '-1'": {"grace": -1},
    "grace must be a number of seconds, not 'x'": {"grace": "x"},
    "state_dir must be a path, not b'x'": {"state_dir": b"x"},
    "state_dir holds a NUL character": {"state_dir": "a\0b"},
    "env: A must be a text, not 1": {"env": {"A": 1}},
    "env: 'A=B' cannot be the name of a variable": {"env": {"A=B": "1"}},
    "write must be a function, not 'x'": {"write": "x"},
    "on_event must be a function, not 3": {"on_event": 3},
    "stop must be a StopRequest, not 3": {"stop": 3},
    "store must be a text, not 3": {"store": 3},
    "store is empty": {"store": ""},
}


@pytest.mark.parametrize("said", JOBS)
def test_a_job_with_a_value_of_the_wrong_kind(said: str, here: Path) -> None:
    for use in (run, plan):
        with pytest.raises(UsageError) as raised:
            use(JOBS[said]())
        assert str(raised.value).startswith(said)
    assert os.listdir(here) == []


@pytest.mark.parametrize("said", WORDS)
def test_a_run_told_something_of_the_wrong_kind(said: str, here: Path) -> None:
    with pytest.raises(UsageError) as raised:
        run(job(), **WORDS[said])
    assert str(raised.value).startswith(said)
    assert os.listdir(here) == []


def test_the_other_functions_say_so_too() -> None:
    with pytest.raises(UsageError, match=r"^path must be a path, not 3$"):
        load_job(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^the job must be a Job"):
        status(None)  # type: ignore[arg-type]


def test_a_long_value_is_cut() -> None:
    with pytest.raises(UsageError) as raised:
        run(job(steps=[b"x" * 500]))
    assert len(str(raised.value)) < 150
