"""The command for the end of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.events import RunEnded
from checkpoint_action.runner.on_finish import result_variables, run_on_finish
from checkpoint_action.runner.stop import StopRequest
from tests.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable

posix = pytest.mark.skipif(sys.platform == "win32", reason="a command for a POSIX shell")


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def until(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.02)


KEEPS = "env | grep ^CHECKPOINT_ | grep -v TOKEN | sort >told; echo said"


def told(folder: Path) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in (folder / "told").read_text().splitlines())


@posix
def test_it_is_told_how_a_run_went(console: Console, tmp_path: Path) -> None:
    steps = ("--job", "j", "--step", "a:true", "--step", "b:test -e fixed", "--step", "c:true")
    ended = console.run(*steps, "--on-finish", KEEPS)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "said"
    assert ended.stdout == ""
    found = told(tmp_path)
    wanted = {"JOB": "j", "RESULT": "failure", "EXIT_CODE": "1", "RAN": "a b", "FAILED": "b", "PENDING": "c"}
    wanted |= {"SKIPPED": "", "RAN_COUNT": "2", "STATE_DIR": str(tmp_path), "SECONDS_SAVED": "0.0"}
    assert found.items() >= {f"CHECKPOINT_{name}": value for name, value in wanted.items()}.items()
    assert float(found["CHECKPOINT_SECONDS"]) >= 0
    (tmp_path / "fixed").touch()
    assert console.run(*steps, "--on-finish", KEEPS, "--rate", "$1/h").returncode == 0
    found = told(tmp_path)
    assert (found["CHECKPOINT_RESULT"], found["CHECKPOINT_SKIPPED"]) == ("success", "a")
    assert found["CHECKPOINT_MONEY_SAVED"].startswith("$0.0")


@posix
def test_it_is_told_of_a_used_up_budget(console: Console, tmp_path: Path) -> None:
    ended = console.run("--job", "j", "--step", "a:sleep 60", "--budget", "0.5s", "--on-finish", KEEPS)
    assert ended.returncode == 75
    assert told(tmp_path)["CHECKPOINT_RESULT"] == "incomplete"


@posix
def test_it_is_told_of_a_signal(console: Console, tmp_path: Path) -> None:
    running = console.start("--job", "j", "--step", "a:touch up; sleep 60", "--on-finish", KEEPS)
    until((tmp_path / "up").exists)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == 143
    assert told(tmp_path).items() >= {"CHECKPOINT_RESULT": "interrupted", "CHECKPOINT_STOPPED": "a"}.items()


@posix
def test_the_job_is_free_by_then_so_that_it_may_run_it_again(console: Console, tmp_path: Path) -> None:
    steps = "--job j --step 'a:test -e fixed'"
    ended = console.script(f"$CR {steps} --on-finish \"touch fixed; '$CR' {steps}; echo again \\$?\"")
    assert ended.returncode == 1
    assert "again 0" in ended.stderr


@posix
def test_its_own_failure_is_a_warning_and_changes_nothing(console: Console) -> None:
    ended = console.run("--job", "j", "--step", "a:true", "--on-finish", "printf oops; exit 3")
    assert ended.returncode == 0
    last = "checkpoint-run: warning: the command of --on-finish ended with exit code 3"
    assert ended.stderr.splitlines()[-2:] == ["oops", last]


@posix
def test_the_events_have_stdout_to_themselves(console: Console) -> None:
    ended = console.run("--job", "j", "--step", "a:true", "--json", "--on-finish", "echo said")
    assert "said" not in ended.stdout
    assert ended.stderr.endswith("said\n")


def test_it_is_not_run_where_nothing_has_begun(console: Console, tmp_path: Path) -> None:
    assert console.run("--job", "j", "--on-finish", "echo x >told").returncode == 2
    assert not (tmp_path / "told").exists()


@posix
def test_one_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    env = {**os.environ, "WHERE": str(tmp_path)}
    text = "trap '' TERM; sleep 4211 & echo $! >$WHERE/pid; while :; do sleep 1; done"
    fault = run_on_finish(text, env, lambda _data: None, StopRequest(), longest=1.0)
    assert fault.startswith("the command of --on-finish took longer than 1 s and was ended")
    pid = (tmp_path / "pid").read_text().strip()
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False)
    assert shown.stdout.strip()[:1] in ("", "Z")


@posix
def test_a_signal_ends_it(console: Console, tmp_path: Path) -> None:
    running = console.start("--job", "j", "--step", "a:true", "--on-finish", "touch up; sleep 50")
    until((tmp_path / "up").exists)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=40)
    assert running.returncode == 0
    assert "warning: the command of --on-finish was stopped" in err


def test_long_lists_are_cut_at_a_step_and_counted() -> None:
    steps = tuple(f"step-{n:05d}" for n in range(3000))
    ended = RunEnded("j", 0, steps, (), (), (), (), None, 1.0, 0.0)
    found = result_variables("j", 0, ended, Path())
    assert len(found["CHECKPOINT_RAN"]) <= 8000
    assert set(found["CHECKPOINT_RAN"].split()) < set(steps)
    assert found["CHECKPOINT_RAN_COUNT"] == "3000"


def test_a_run_that_broke_off_has_no_counts() -> None:
    found = result_variables("j", 5, None, Path())
    assert (found["CHECKPOINT_RESULT"], found["CHECKPOINT_RAN_COUNT"]) == ("failure", "")


@posix
def test_it_sees_no_signing_key_and_shows_no_secret_to_others(console: Console, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text("job: j\nsecrets: [WORD]\nsteps:\n- {id: a, run: 'true'}\n")
    command = 'echo "word $WORD, key ${CHECKPOINT_SIGNING_KEY-none}"; exit 3'
    env = {"WORD": "hunter2", "CHECKPOINT_SIGNING_KEY": "k" * 40}
    ended = console.run("--on-finish", command, env=env)
    assert "word ***, key none" in ended.stderr
