"""``on-crash: stop``: a step in which a run died is not run twice behind somebody's back."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.console import Console, lines_of

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh; no SIGKILL"),
    pytest.mark.timeout(90),
]

JOB = """\
job: j
steps:
- {id: build, run: echo build >>ran}
- id: publish
  run: |
    echo publish >>ran
    if test -e hold; then echo up >up; sleep 4331; fi
  on-crash: stop
- {id: notify, run: echo notify >>ran}
- {id: other, needs: [], run: echo other >>ran}
"""
WHAT_TO_DO = (
    "the run died in it, so it may have done its work; "
    "'checkpoint-run accept publish' takes it as done, '--force publish' runs it again"
)


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "checkpoint.yml").write_text(JOB)
    return Console(tmp_path)


def sleeping(tool: psutil.Process) -> list[psutil.Process]:
    """The middle of the step, where it is in it."""
    found = []
    for child in tool.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it may end between the two looks
            if child.name() == "sleep":
                found.append(child)
    return found


def start_to_the_middle(console: Console, *words: str) -> subprocess.Popen[str]:
    """Start the job and wait until it is in the middle of its second step."""
    (console.folder / "hold").touch()
    up = console.fifo("up")
    running = console.start("--quiet", *words)
    assert up.read_text() == "up\n"
    deadline = time.monotonic() + 30
    while not sleeping(psutil.Process(running.pid)):
        assert time.monotonic() < deadline, "the step gets to its middle"
        time.sleep(0.02)
    up.unlink()
    (console.folder / "hold").unlink()
    return running


def kill(running: subprocess.Popen[str], *, everything: bool) -> None:
    """SIGKILL of the tool, and of its guardian and the step too when all of the machine is lost."""
    tool = psutil.Process(running.pid)
    tool.suspend()  # or it would start another guardian between the look and the kill
    doomed = [tool, *(tool.children(recursive=True) if everything else [])]
    steps = sleeping(tool)
    for one in doomed:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    running.communicate(timeout=30)
    _gone, alive = psutil.wait_procs([*doomed, *steps], timeout=30)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def died(console: Console) -> Console:
    """A run has died in `publish`, after `build` was done."""
    kill(start_to_the_middle(console), everything=True)
    assert (console.folder / "ran").read_text() == "build\npublish\n"
    (console.folder / "ran").unlink()
    return console


def ran(console: Console) -> list[str]:
    file = console.folder / "ran"
    return file.read_text().split() if file.exists() else []


def planned(console: Console, *words: str) -> dict[str, tuple[str, str, str]]:
    shown = console.run("plan", "--json", *words)
    assert shown.returncode == 0
    return {step["id"]: (step["action"], step["reason"], step["detail"]) for step in json.loads(shown.stdout)["steps"]}


def told(events: list[dict[str, Any]]) -> dict[str, tuple[str, str, str]]:
    return {one["id"]: (one["action"], one["reason"], one["detail"]) for one in events if "action" in one}


@pytest.mark.parametrize("everything", [False, True], ids=["tool", "everything"])
def test_kill_9_in_such_a_step_asks_before_it_runs_again(console: Console, everything: bool) -> None:
    kill(start_to_the_middle(console), everything=everything)
    assert console.recorded("j")["publish"]["status"] == "running"
    plan = planned(console)
    assert plan == {
        "build": ("skip", "done", ""),
        "publish": ("stop", "interrupted-before", WHAT_TO_DO),
        "notify": ("stop", "needs-changed", "it needs 'publish', which is held back"),
        "other": ("run", "never-ran", ""),
    }
    ended = console.run("--json", "--quiet")
    assert (ended.returncode, ended.stderr) == (1, "")
    events = lines_of(ended.stdout)
    assert told(events) == plan
    last = events[-1]
    assert (last["ran"], last["skipped"], last["held"]) == (["other"], ["build"], ["publish", "notify"])
    assert (last["failed"], last["pending"], last["exit-code"]) == ([], ["publish", "notify"], 1)
    # However often it is asked, until somebody has answered.
    assert console.run().returncode == 1
    assert ran(console) == ["build", "publish", "other"]


def test_what_to_do_is_said_in_one_line(died: Console) -> None:
    ended = died.run("--quiet")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"checkpoint-run: [2/4] publish: left (interrupted-before: {WHAT_TO_DO})",
        "checkpoint-run: [3/4] notify: left (it needs 'publish', which is held back)",
    ]
    assert f"publish  stop     interrupted-before: {WHAT_TO_DO}\n" in died.run("plan").stdout
    assert died.run("status").stdout.splitlines()[2] == "publish  interrupted"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_independent_steps_run_all_the_same(died: Console, jobs: str) -> None:
    assert died.run("-j", jobs).returncode == 1
    assert ran(died) == ["other"]
    assert died.run("-j", jobs).returncode == 1
    assert ran(died) == ["other"]


def test_what_to_do_names_a_job_file_that_is_not_found_by_itself(died: Console) -> None:
    (died.folder / "checkpoint.yml").rename(died.folder / "my job.yml")
    said = died.run("plan", "-f", "my job.yml").stdout
    assert "'checkpoint-run accept publish -f 'my job.yml'' takes it as done" in said
    assert died.run("accept", "publish", "-f", "my job.yml").returncode == 0


def test_accept_takes_it_as_done(died: Console) -> None:
    assert died.run("accept", "publish").returncode == 0
    assert died.run().returncode == 0
    assert ran(died) == ["notify", "other"]
    assert died.statuses("j") == dict.fromkeys(("build", "publish", "notify", "other"), "done")


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (("--force", "publish"), ["publish", "notify", "other"]),
        (("--from", "publish"), ["publish", "notify", "other"]),
        (("--only", "publish"), ["publish"]),
    ],
)
def test_who_asks_for_it_runs_it_again(died: Console, words: tuple[str, ...], runs: list[str]) -> None:
    assert planned(died, *words)["publish"][0] == "run"
    assert died.run(*words).returncode == 0
    assert ran(died) == runs
    assert died.statuses("j")["publish"] == "done"
    assert planned(died)["publish"][0] == "skip"


@pytest.mark.parametrize("words", [("--from", "build"), ("--force", "build"), ("--force", "other")])
def test_to_name_another_step_is_no_decision(died: Console, words: tuple[str, ...]) -> None:
    assert planned(died, *words)["publish"][0] == "stop"
    assert died.run(*words).returncode == 1
    assert "publish" not in ran(died)


def test_a_fresh_start_is_no_decision_either(died: Console) -> None:
    refused = died.run("--force")
    assert refused.returncode == 2
    assert refused.stderr.endswith(
        "error CPR303: --force: the run died in 'publish', which may have done its work; "
        "'checkpoint-run accept publish' takes it as done, '--force publish' runs it again\n"
    )
    assert ran(died) == []
    assert died.run("--force", "--force", "publish").returncode == 0
    assert ran(died) == ["build", "publish", "notify", "other"]


def test_a_reset_step_runs_like_one_that_never_ran(died: Console) -> None:
    assert died.run("reset", "publish").returncode == 0
    assert planned(died)["publish"] == ("run", "never-ran", "")
    assert died.run().returncode == 0
    assert ran(died) == ["publish", "notify", "other"]


def test_only_a_step_that_needs_it_says_so(died: Console) -> None:
    plan = planned(died, "--only", "notify")
    assert plan["publish"] == ("stop", "interrupted-before", f"{WHAT_TO_DO}; --only leaves it out")
    assert plan["notify"] == (
        "stop",
        "selected",
        f"it needs 'publish', which waits for you ({WHAT_TO_DO})",
    )
    assert died.run("--only", "notify").returncode == 2
    assert ran(died) == []


def test_accept_of_what_needs_it_names_it(died: Console) -> None:
    refused = died.run("accept", "notify")
    assert refused.returncode == 2
    assert "accept 'notify': it needs 'publish', which is not done (interrupted-before: " in refused.stderr
    assert died.run("accept", "notify", "publish").returncode == 0
    assert died.run().returncode == 0
    assert ran(died) == ["other"]


def test_a_step_that_says_nothing_of_it_runs_again(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(JOB.replace("  on-crash: stop\n", ""))
    kill(start_to_the_middle(console), everything=True)
    assert planned(console)["publish"][:2] == ("run", "interrupted-before")
    assert console.run().returncode == 0
    assert ran(console) == ["build", "publish", "publish", "notify", "other"]


def test_a_changed_command_is_no_answer(died: Console) -> None:
    (died.folder / "checkpoint.yml").write_text(JOB.replace("echo publish", "echo again"))
    assert planned(died)["publish"][:2] == ("stop", "interrupted-before")


@pytest.mark.parametrize(
    ("how", "code", "reason"),
    [("signal", 143, "interrupted-before"), ("budget", 75, "interrupted-before"), ("timeout", 1, "timed-out-before")],
)
def test_an_end_that_we_have_seen_needs_no_person(console: Console, how: str, code: int, reason: str) -> None:
    words = {"budget": ("--budget", "2"), "timeout": ("--timeout", "1")}.get(how, ())
    running = start_to_the_middle(console, *words)
    if how == "signal":
        running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == code
    assert planned(console)["publish"][:2] == ("run", reason)
    assert console.run().returncode == 0
    assert ran(console) == ["build", "publish", "publish", "notify", "other"]


def test_a_state_that_may_have_lost_its_start_asks_too(console: Console) -> None:
    """Where the journal is damaged where a start of the step may have stood, nobody knows that it did not run."""
    assert console.run().returncode == 0
    journal = console.folder / ".checkpoint-run-j.journal"
    with journal.open("ab") as file:
        file.write(b'{"crc":"00000000","format":1,"seq":99,"record":{}}\n' * 2)
    assert planned(console)["publish"][:2] == ("stop", "interrupted-before")
    assert "damaged line" in console.run().stderr
    assert ran(console) == ["build", "publish", "notify", "other", "build", "other"]


def test_a_run_that_goes_on_is_not_disturbed(console: Console) -> None:
    """While a run is in the step, a plan beside it tells how things stand, and a second run is refused."""
    running = start_to_the_middle(console)
    try:
        shown = console.run("plan")
        assert "a run of this job is going on" in shown.stderr
        assert console.run("accept", "publish").returncode == 4
        assert console.run("reset", "publish").returncode == 4
        assert console.run("--force", "publish").returncode == 4
    finally:
        kill(running, everything=True)


def test_a_plan_beside_the_run_holds_nothing_back(tmp_path: Path) -> None:
    console = Console(tmp_path)
    (tmp_path / "checkpoint.yml").write_text(
        "job: j\nsteps:\n- {id: publish, on-crash: stop, run: 'touch on; while ! test -e go; do sleep 0.05; done'}\n"
        "- {id: after, run: 'true'}\n"
    )
    running = console.start()
    end = time.monotonic() + 60
    while not (tmp_path / "on").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    shown = console.run("plan").stdout
    (tmp_path / "go").touch()
    running.communicate(timeout=60)
    assert "publish  run      interrupted-before: it is running right now" in shown
    assert "after    run" in shown
