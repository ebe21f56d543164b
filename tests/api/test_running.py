"""Running from Python: results and errors instead of exits, from any thread, with state that outlives the caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action import Job, Result, Step, StopRequest, load_job, plan, run, status
from checkpoint_action.errors import LockHeldError, RunFailedError, StateError, UsageError
from checkpoint_action.model import Action, Reason, Status
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(120),
]
LIMIT = 60.0  # seconds that only a hang reaches


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(**words: Any) -> Job:
    return Job(
        "release",
        [
            Step("fetch", "echo ran >> fetched; echo data > model.bin", outputs="model.bin"),
            Step("build", 'echo "version=1.2" >> "$GITHUB_OUTPUT"; echo MODE=fast >> "$GITHUB_ENV"; cat model.bin'),
        ],
        **words,
    )


def wait_for(true: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_run_gives_its_result_and_the_next_does_only_what_is_left(here: Path) -> None:
    first = run(release())
    assert (first.result, first.exit_code, first.ran, first.skipped) == ("success", 0, ("fetch", "build"), ())
    assert first.outputs == {"build": {"version": "1.2"}}
    assert first.values["build"].env == {"MODE": "fast"}
    assert {step: record.status for step, record in first.records.items()} == dict.fromkeys(
        ("fetch", "build"), Status.DONE
    )
    first.check()
    (here / "model.bin").unlink()
    assert [(one.action, one.reason) for one in plan(release()).decisions] == [
        (Action.RUN, Reason.OUTPUT_MISSING),
        (Action.RUN, Reason.NEEDS_CHANGED),
    ]
    second = run(release())
    assert (second.ran, second.skipped) == (("fetch",), ("build",))
    assert second.outputs == first.outputs
    assert (here / "fetched").read_text() == "ran\n" * 2


def test_the_state_is_that_of_the_command_line(here: Path) -> None:
    (here / "checkpoint.yml").write_text(
        "job: j\nsteps: [{id: a, run: echo x > a, outputs: a}, {id: b, run: echo y > b, outputs: b}]\n"
    )
    job = Job("j", [Step("a", "echo x > a", outputs="a"), Step("b", "echo y > b", outputs="b")])
    assert run(load_job("checkpoint.yml"), only=["a"]).ran == ("a",)
    assert run(job).skipped == ("a",)
    told = subprocess.run(
        [sys.executable, "-m", "checkpoint_action", "plan"], capture_output=True, text=True, check=True
    )
    assert [line.split()[1] for line in told.stdout.splitlines()] == ["skip", "skip"]


def test_a_failed_step_is_a_result_and_check_makes_an_error_of_it() -> None:
    job = Job("j", [Step("a", "exit 7"), Step("b", "true")])
    result = run(job)
    assert (result.result, result.exit_code, result.failed, result.pending) == ("failure", 1, ("a",), ("b",))
    with pytest.raises(RunFailedError, match=r"job j: step 'a' failed: .*exit code 7") as caught:
        result.check()
    assert caught.value.exit_code == 1
    assert status(job)["a"].exit_code == 7
    assert status(job)["b"].status is Status.PENDING
    assert list(status("j")) == ["a"]


def test_a_budget_that_is_used_up_is_an_incomplete_result() -> None:
    result = run(Job("j", [Step("a", "sleep 100", timeout="1h"), Step("b", "true")], budget=0.5), grace=0.1)
    assert (result.result, result.exit_code, result.pending) == ("incomplete", 75, ("b",))
    with pytest.raises(RunFailedError, match="run it again"):
        result.check()


def test_nothing_is_printed_and_output_goes_where_it_is_asked_to(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pieces: list[bytes] = []
    job = Job("j", [Step("a", 'echo "out $TOKEN"; echo err >&2')], secrets=["TOKEN"])
    run(job, write=pieces.append, env={**os.environ, "TOKEN": "geheim-123"})
    assert b"".join(pieces) == b"out ***\nerr\n"
    assert (here / ".checkpoint-run-j.logs" / "a.log").read_bytes() == b"out ***\nerr\n"
    assert capfd.readouterr() == ("", "")


def test_events_are_told_in_the_calling_thread() -> None:
    told: list[tuple[type[events.Event], threading.Thread]] = []
    independent = Job("j", [Step(name, "true", needs=()) for name in "abc"])
    run(independent, jobs=3, on_event=lambda event: told.append((type(event), threading.current_thread())))
    kinds = [kind for kind, _ in told]
    assert (kinds[0], kinds[-1]) == (events.RunStarted, events.RunEnded)
    assert kinds.count(events.StepEnded) == 3
    assert {thread for _, thread in told} == {threading.current_thread()}


def test_it_works_in_a_thread_and_leaves_signals_alone() -> None:
    names = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = [signal.getsignal(name) for name in names]
    during: list[Any] = []
    results: list[Result] = []

    def look(event: events.Event) -> None:
        if isinstance(event, events.StepStarted):
            during.append([signal.getsignal(name) for name in names])

    thread = threading.Thread(target=lambda: results.append(run(release(), on_event=look)))
    thread.start()
    thread.join(LIMIT)
    assert results[0].result == "success"
    assert during == [before, before]
    run(release(), on_event=look)
    assert [signal.getsignal(name) for name in names] == before


def test_a_stop_from_another_thread_ends_the_step_and_saves_the_state(here: Path) -> None:
    stop = StopRequest()
    job = Job("j", [Step("a", "echo $$ > pid; sleep 100")])
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(run(job, stop=stop)))
    thread.start()
    wait_for(lambda: (here / "pid").exists() and (here / "pid").read_text())
    stop.request()
    thread.join(LIMIT)
    assert (results[0].result, results[0].exit_code) == ("failure", 128 + signal.SIGTERM)
    assert status(job)["a"].status is Status.INTERRUPTED
    assert not alive(int((here / "pid").read_text()))


def test_signals_are_handled_where_that_is_asked_for(here: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    job = Job("j", [Step("a", f"kill -TERM {os.getpid()}; sleep 100")])
    assert run(job, handle_signals=True).exit_code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
    caught: list[BaseException] = []

    def elsewhere() -> None:
        try:
            run(job, handle_signals=True)
        except UsageError as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(LIMIT)
    assert "main thread" in str(caught[0])


class RefusedError(Exception):
    pass


@pytest.mark.parametrize("where", ["write", "on_event", "interrupt"])
def test_what_the_caller_raises_ends_the_run_and_leaves_no_process(here: Path, where: str) -> None:
    job = Job("j", [Step("done", "true"), Step("a", "echo $$ > pid; echo now; sleep 100")])

    def write(_data: bytes) -> None:
        if where == "write":
            raise RefusedError
        if where == "interrupt":
            signal.raise_signal(signal.SIGINT)

    def on_event(event: events.Event) -> None:
        if where == "on_event" and isinstance(event, events.StepStarted) and event.decision.step == "a":
            raise RefusedError

    with pytest.raises((RefusedError, KeyboardInterrupt)):
        run(job, write=write, on_event=on_event)
    if where != "on_event":
        wait_for(lambda: not alive(int((here / "pid").read_text())))
    assert status(job)["done"].status is Status.DONE
    assert status(job)["a"].status in (Status.INTERRUPTED, Status.PENDING)
    retried = run(Job("j", [Step("done", "true"), Step("a", "true")]))
    assert (retried.ran, retried.skipped) == (("a",), ("done",))


PARENT = """
import os, subprocess
from checkpoint_action import Job, Step, run
ended = subprocess.Popen(["sh", "-c", "exit 3"])
os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
living = subprocess.Popen(["sleep", "300"])
result = run(Job("j", [Step("a", "sleep 300", timeout=0.2)]), grace=0.1)
print(result.records["a"].status.value, ended.wait(), living.poll())
living.kill()
living.wait()
"""


def test_the_callers_own_children_are_no_business_of_a_run(here: Path) -> None:
    # In a process of its own: tests of the command line have ours adopt orphans.
    told = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert told.stdout == "timeout 3 None\n"


STRAY = """
from checkpoint_action import Job, Step, run
command = "(setsid sh -c 'echo $$ > pid; exec sleep 300' &); until [ -s pid ]; do sleep 0.01; done; sleep 300"
print(run(Job("j", [Step("a", command, idle_timeout=1)]), grace=0.2).records["a"].status.value)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere what left its session is not found again")
def test_a_timeout_ends_what_has_left_the_session_too(here: Path) -> None:
    told = subprocess.run([sys.executable, "-c", STRAY], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert told.stdout == "timeout\n"
    wait_for(lambda: not alive(int((here / "pid").read_text())))


CALLER = """
import sys
from checkpoint_action import Job, Step, run
slow = "echo $$ > pid; echo ran >> slow; [ -e go ] || sleep 300; echo b > b.out"
job = Job("j", [Step("a", "echo ran >> a; echo a > a.out", outputs="a.out"), Step("b", slow, outputs="b.out")])
print(run(job).exit_code)
"""


def test_a_kill_of_the_calling_process_loses_no_finished_step_and_leaves_nothing_running(here: Path) -> None:
    caller = subprocess.Popen([sys.executable, "-c", CALLER])
    wait_for(lambda: (here / "pid").exists() and (here / "pid").read_text().strip())
    step = int((here / "pid").read_text())
    caller.kill()
    caller.wait()
    wait_for(lambda: not alive(step))
    assert {step: record.status for step, record in status("j").items()} == {
        "a": Status.DONE,
        "b": Status.INTERRUPTED,
    }
    (here / "go").touch()
    again = subprocess.run([sys.executable, "-c", CALLER], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert (again.stdout, again.stderr) == ("0\n", "")
    assert ((here / "a").read_text(), (here / "slow").read_text()) == ("ran\n", "ran\nran\n")
    assert (here / "b.out").read_text() == "b\n"


def test_a_step_that_must_not_run_twice_waits_until_it_is_named(here: Path) -> None:
    text = CALLER.replace('Step("b", slow,', 'Step("b", slow, on_crash="stop",')
    caller = subprocess.Popen([sys.executable, "-c", text])
    wait_for(lambda: (here / "pid").exists() and (here / "pid").read_text().strip())
    caller.kill()
    caller.wait()
    job = Job("j", [Step("a", "echo ran >> a; echo a > a.out", outputs="a.out"), Step("b", "true", on_crash="stop")])
    held = run(job)
    assert (held.exit_code, held.held) == (1, ("b",))
    with pytest.raises(RunFailedError, match="step 'b' waits for a person"):
        held.check()
    with pytest.raises(UsageError, match="the run died in 'b'"):
        run(job, force=True)
    assert run(job, force="b").ran == ("b",)


def test_choosing_steps_is_as_on_the_command_line() -> None:
    job = Job("j", [Step(name, "true", needs=()) for name in "abc"])
    run(job)
    assert run(job, only="b").ran == ("b",)
    assert run(job, first="b").ran == ("b", "c")
    assert run(job, force=["a"]).ran == ("a",)
    assert run(job, force=True).ran == ("a", "b", "c")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"only": ["z"]}, "only: 'z' is the id of no step; the ids are a, b, c"),
        ({"first": "z"}, "first: 'z' is the id"),
        ({"force": ["z"]}, "force: 'z' is the id"),
        ({"only": ["a"], "first": "b"}, "only and first exclude"),
        ({"only": ["a"], "force": True}, "leave force out"),
        ({"only": ["a"], "force": ["b"]}, "force: 'b' is a step that only leaves out"),
        ({"jobs": 0}, "jobs must be"),
        ({"verify": "hope"}, "verify must be"),
    ]
    for words, said in wrong:
        with pytest.raises(UsageError, match=said):
            run(job, **words)


def test_two_runs_of_a_job_at_once_are_refused_or_wait(here: Path) -> None:
    job = Job("j", [Step("a", "touch begun; while ! [ -e go ]; do sleep 0.01; done")])
    thread = threading.Thread(target=run, args=(job,))
    thread.start()
    wait_for((here / "begun").exists)
    with pytest.raises(LockHeldError):
        run(job)
    assert [one.detail for one in plan(job).decisions] == ["it is running right now"]
    assert status(job)["a"].status is Status.RUNNING
    (here / "go").touch()
    assert run(job, wait_lock=LIMIT).skipped == ("a",)
    thread.join(LIMIT)


def test_the_state_may_lie_elsewhere_and_files_trusted_by_their_stamps(here: Path) -> None:
    assert run(release(), state_dir="deep/state", verify="stat").exit_code == 0
    assert (here / "deep/state/.checkpoint-run-release.index").exists()
    assert run(release(), state_dir=here / "deep" / "state", verify="stat").skipped == ("fetch", "build")
    assert all(one.action is Action.SKIP for one in plan(release(), state_dir="deep/state", verify="stat").decisions)
    assert not (here / ".checkpoint-run-release.json").exists()
    (here / ".checkpoint-run-release.json").write_text('{"format": 99}')
    with pytest.raises(StateError, match="format 99"):
        status(release())


def test_another_machine_goes_on_with_what_is_in_a_store(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = (here / "store").as_uri()
    words: dict[str, Any] = {"store": url, "run_id": "night"}
    for name in ("one", "other"):
        (here / name).mkdir()
    monkeypatch.chdir(here / "one")
    assert run(release(), **words).ran == ("fetch", "build")
    monkeypatch.chdir(here / "other")
    kept = run(release(), **words)
    assert (kept.ran, {*kept.restored, *kept.skipped}) == ((), {"fetch", "build"})
    assert (here / "other" / "model.bin").read_text() == "data\n"
    assert kept.outputs == {"build": {"version": "1.2"}}
    with pytest.raises(UsageError, match="are for a store"):
        run(release(), run_id="night")


def test_a_job_file_that_is_not_there_or_not_as_documented_is_an_error(here: Path) -> None:
    with pytest.raises(UsageError, match="there is no job file nothing"):
        load_job("nothing.yml")
    (here / "c.yml").write_text("steps: [{id: a, rum: x}]\n")
    with pytest.raises(UsageError, match=r"c\.yml:1:17: step 'a': unknown key 'rum'"):
        load_job("c.yml")
    with pytest.raises(UsageError, match=r"job name '\.\./x' is not valid"):
        status("../x")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform == "linux":
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    return True


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("error", [OSError, BrokenPipeError, ValueError])
def test_whatever_kind_of_error_comes_of_taking_the_output_it_is_raised(jobs: int, error: type[Exception]) -> None:
    def write(_data: bytes) -> None:
        raise error("nobody takes it")

    with pytest.raises(error, match="nobody takes it"):
        run(Job("j", [Step("a", "echo said"), Step("b", "echo said", needs=())]), jobs=jobs, write=write)
    assert status("j")["a"].status is Status.INTERRUPTED


def test_a_process_that_forks_from_ours_and_lives_on_does_not_hold_the_job() -> None:
    children: list[int] = []

    def on_event(event: events.Event) -> None:
        if isinstance(event, events.StepStarted) and not children:
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(1)
            children.append(child)

    job = Job("j", [Step("a", "true")])
    try:
        assert run(job, on_event=on_event).exit_code == 0
        assert run(job).skipped == ("a",)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
