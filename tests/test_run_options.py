"""The run options beyond the original flags, through the installed console script."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.console import PROGRAM, Console, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells and terminals")


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def until(condition: object, what: str, seconds: float = 60) -> None:
    """Wait for an event."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def sleeping(seconds: int) -> list[psutil.Process]:
    """Living processes `sleep SECONDS`."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline() == ["sleep", str(seconds)] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def events(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_artifact_declared_after_the_step_was_done_runs_it_again(console: Console) -> None:
    assert console.run("--job", "j", "--step", "x:true").returncode == 0
    again = console.run("--job", "j", "--step", "x:true", "--step-artifact", "x:missing")
    assert again.returncode == 1
    assert "x: runs (output-changed: missing: not declared → declared)" in again.stderr
    assert console.state("j")["x"]["exit_code"] == -2


def test_a_missing_working_directory_is_named_once(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nworking-directory: nowhere\nsteps: [{id: a, run: 'true'}]\n"
    )
    ended = console.run()
    assert ended.returncode == 1
    assert ended.stderr.count("its working directory ") == 1
    assert "nowhere is not there" in ended.stderr
    assert "bash" not in ended.stderr


@pytest.mark.parametrize("flag", ["--timeout", "--idle-timeout", "--budget"])
def test_a_limit_of_nothing_is_refused(console: Console, flag: str) -> None:
    refused = console.run("--job", "j", "--step", "a:true", flag, "0")
    assert refused.returncode == 2
    assert "'0' leaves no time at all" in refused.stderr


def test_idle_timeout_ends_a_step_that_says_nothing(console: Console) -> None:
    ended = console.run("--job", "j", "--idle-timeout", "0.5", "--step", "a:echo x; sleep 60")
    assert ended.returncode == 1
    record = console.state("j")["a"]
    assert record["status"] == "timeout"
    assert record["error"] == "it gave no output for its 0.5 s"


def test_idle_timeout_leaves_a_step_that_talks_alone(console: Console) -> None:
    talk = "a:for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done"
    assert console.run("--job", "j", "--idle-timeout", "1.2", "--step", talk).returncode == 0


def test_budget_stops_the_run_with_75_and_the_next_run_goes_on(console: Console) -> None:
    words = ("--job", "j", "--budget", "2", "--step", "a:echo x >>ran-a")
    slow = ("--step", "b:test -e allowed || sleep 60; echo x >>ran-b")
    stopped = console.run(*words, *slow)
    assert stopped.returncode == 75, stopped.stderr
    assert "the budget is used up" in stopped.stderr
    assert "failed" not in stopped.stderr
    assert console.state("j")["b"]["status"] == "interrupted"
    (console.folder / "allowed").touch()
    assert console.run(*words, *slow).returncode == 0
    assert (console.count("ran-a"), console.count("ran-b")) == (1, 1)


def test_budget_starts_no_step_that_comes_too_late(console: Console) -> None:
    stopped = console.run("--job", "j", "--budget", "1", "--step", "a:sleep 0.93", "--step", "b:touch late", "--json")
    assert stopped.returncode == 75
    last = events(stopped.stdout)[-1]
    assert (last["incomplete"], last["exit-code"]) == (True, 75)
    assert not (console.folder / "late").exists()


def test_a_failure_is_never_told_as_a_used_up_budget(console: Console) -> None:
    words = ("--job", "j", "--budget", "3", "--continue-on-error", "--step", "a:exit 3", "--step", "b:sleep 60")
    ended = console.run(*words)
    assert ended.returncode == 1
    assert console.state("j")["b"]["status"] == "interrupted"


def test_jobs_runs_independent_steps_at_once_and_keeps_their_output_together(console: Console) -> None:
    meet = "touch here-{0}; while ! test -e here-{1}; do sleep 0.02; done; echo {0}1; sleep 0.2; echo {0}2"
    words = ("--job", "j", "-j", "2", "--step", f"a:{meet.format('a', 'b')}", "--step", f"b:{meet.format('b', 'a')}")
    ended = console.run(*words)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout in ("a1\na2\nb1\nb2\n", "b1\nb2\na1\na2\n")


def test_jobs_starts_nothing_more_after_a_failure_but_lets_running_steps_end(console: Console) -> None:
    words = (
        "--job",
        "j",
        "-j",
        "2",
        "--step",
        "a:while ! test -e failed; do sleep 0.02; done; sleep 0.3; touch a-ended",
    )
    ended = console.run(*words, "--step", "b:touch failed; exit 1", "--step", "c:touch c-ran")
    assert ended.returncode == 1
    assert (console.folder / "a-ended").exists()
    assert not (console.folder / "c-ran").exists()
    assert console.state("j")["a"]["status"] == "done"


def test_jobs_keeps_to_max_failures(console: Console) -> None:
    words = ["--job", "j", "-j", "2", "--continue-on-error", "--max-failures", "2"]
    for number in range(6):
        words += ["--step", f"s{number}:echo x >>ran; exit 1"]
    assert console.run(*words).returncode == 1
    # Two failures stop it; at most one more can have been running beside the second.
    assert 2 <= console.count("ran") <= 3


def test_jobs_waits_for_what_a_step_needs(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nsteps:\n"
        "- {id: a, needs: [], run: 'sleep 0.3; echo a >>order'}\n"
        "- {id: b, needs: [], run: 'echo b >>order'}\n"
        "- {id: c, needs: [a, b], run: 'echo c >>order'}\n"
    )
    assert console.run("-j", "3").returncode == 0
    assert (console.folder / "order").read_text() == "b\na\nc\n"


def test_a_signal_ends_all_parallel_steps(console: Console) -> None:
    words = ["--job", "j", "-j", "3"]
    for name in "abc":
        words += ["--step", f"{name}:touch up-{name}; sleep 4321"]
    running = console.start(*words)
    until(lambda: all((console.folder / f"up-{name}").exists() for name in "abc"), "they start")
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 143, errors
    assert not sleeping(4321)
    assert {record["status"] for record in console.state("j").values()} == {"interrupted"}


def test_a_step_ends_when_the_tool_alone_is_killed(console: Console) -> None:
    running = console.start("--job", "j", "--step", "a:setsid sleep 4322 & touch up; sleep 4323")
    until((console.folder / "up").exists, "it starts")
    running.kill()
    running.communicate(timeout=30)
    until(lambda: not sleeping(4322) and not sleeping(4323), "the guardian ends them")
    # No clean-up is needed, and what was half done runs again.
    again = console.run("--job", "j", "--step", "a:touch ran-again")
    assert again.returncode == 0
    assert (console.folder / "ran-again").exists()


def test_a_killed_run_leaves_no_script_behind(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text("job: j\nsteps: [{id: a, run: 'touch up; sleep 4325'}]\n")
    temporary = console.folder / "tmp"
    temporary.mkdir()
    running = console.start(env={**environment(), "TMPDIR": str(temporary)})
    until((console.folder / "up").exists, "it starts")
    assert list(temporary.iterdir())
    running.kill()
    running.communicate(timeout=30)
    until(lambda: not list(temporary.iterdir()), "the guardian clears up")


def test_a_child_without_the_mark_in_a_session_of_its_own_goes_too_when_the_tool_is_killed(console: Console) -> None:
    running = console.start("--job", "j", "--step", "a:touch up; env -i setsid sleep 4326; sleep 4326")
    until(lambda: (console.folder / "up").exists() and bool(sleeping(4326)), "it starts")
    running.kill()
    running.communicate(timeout=30)
    until(lambda: not sleeping(4326), "the guardian ends it")


def test_a_killed_guardian_is_replaced(console: Console) -> None:
    step = "b:touch up; sleep 4327"
    running = console.start("--job", "j", "--step", "a:while ! test -e go; do sleep 0.05; done", "--step", step)
    until((console.folder / ".checkpoint-run-j.logs/a.log").exists, "it starts")
    first = guardians_of(running.pid)
    assert len(first) == 1
    first[0].kill()
    until(lambda: guardians_of(running.pid) not in ([], first), "there is another while the step runs")
    (console.folder / "go").touch()
    until((console.folder / "up").exists, "the next step starts")
    running.kill()
    running.communicate(timeout=30)
    until(lambda: not sleeping(4327), "the second guardian ends it")


def guardians_of(pid: int) -> list[psutil.Process]:
    """The processes that watch over a run."""
    found = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.Error):  # it is gone, or no more than a remnant
            if "guard" in str(child.cmdline()):
                found.append(child)
    return found


def test_a_retry_that_does_not_fit_the_budget_is_said_and_not_announced(console: Console) -> None:
    words = ("--job", "j", "--budget", "3", "--retry", "5", "--backoff", "2", "--step", "a:echo x >>ran; exit 1")
    ended = console.run(*words)
    assert ended.returncode == 1
    assert "next try in 4.0 s" not in ended.stderr
    assert "the budget leaves no time for another try" in ended.stderr


def test_waiting_for_the_network_keeps_to_the_budget_and_tells_the_failure(console: Console) -> None:
    words = ("--job", "j", "--budget", "2", "--retry", "2", "--backoff", "0.1", "--wait-online", "127.0.0.1:9")
    ended = console.run(*words, "--step", "a:echo x >>ran; exit 3")
    assert ended.returncode == 1
    assert console.count("ran") == 1
    assert console.state("j")["a"]["exit_code"] == 3


def test_ctrl_c_leaves_an_interactive_step_time_to_clean_up(console: Console) -> None:
    script = (
        "import time\ntry:\n  open('up','w').close()\n  time.sleep(60)\nexcept KeyboardInterrupt:\n  time.sleep(0.5)\n"
    )
    (console.folder / "clean.py").write_text(script + "  open('cleaned','w').close()\n")
    (console.folder / "checkpoint.yml").write_text(
        f"job: j\nsteps: [{{id: a, interactive: true, run: '{sys.executable} clean.py; true'}}]\n"
    )
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(console.folder)
        os.execv(PROGRAM, [str(PROGRAM)])
    try:
        until((console.folder / "up").exists, "it starts")
        os.write(ours, b"\x03")
        until((console.folder / "cleaned").exists, "it cleans up")
        with suppress(OSError):
            while os.read(ours, 4096):
                pass
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    finally:
        os.close(ours)


def test_a_background_process_is_left_alone_or_killed_as_asked(console: Console) -> None:
    job = "job: j\nsteps:\n- id: a\n  leftovers: {}\n  run: sleep 4324 & echo $! >pid\n"
    (console.folder / "checkpoint.yml").write_text(job.format("leave"))
    left = console.run()
    assert left.returncode == 0
    assert "a background process still runs and was left alone" in left.stderr
    pid = int((console.folder / "pid").read_text())
    assert psutil.pid_exists(pid)
    os.kill(pid, signal.SIGKILL)
    (console.folder / "checkpoint.yml").write_text(job.format("kill"))
    assert console.run("--force").returncode == 0
    until(lambda: not sleeping(4324), "it is ended")


def test_retry_on_tries_again_only_what_is_listed(console: Console) -> None:
    words = ("--job", "j", "--backoff", "0", "--retry", "3", "--retry-on", "timeout,7")
    assert console.run(*words, "--step", "a:echo x >>ran; exit 3").returncode == 1
    assert console.count("ran") == 1
    assert console.run(*words, "--step", "b:echo x >>ran7; exit 7").returncode == 1
    assert console.count("ran7") == 4
    refused = console.run(*words[:-1], "timout", "--step", "a:true")
    assert refused.returncode == 2
    assert "did you mean 'timeout'?" in refused.stderr


def test_wait_online_waits_for_the_network_before_the_next_try(console: Console) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        # Bound and not listening: connections are refused until the network "comes back".
        step = "a:echo x >>ran; test $(wc -l <ran) -ge 2"
        words = ("--job", "j", "--retry", "1", "--backoff", "0", "--wait-online", f"127.0.0.1:{port}", "--step", step)
        running = console.start(*words)
        lines: list[str] = []
        assert running.stderr is not None
        reader = threading.Thread(target=lambda: lines.extend(running.stderr or ()))
        reader.start()
        until(lambda: any("waiting for 127.0.0.1" in line for line in lines), "it tells that it waits")
        assert console.count("ran") == 1
        held.listen()
        assert running.wait(30) == 0
        reader.join(10)
        running.stdout and running.stdout.close()
        running.stderr.close()
    assert console.count("ran") == 2


def test_nobody_is_told_of_waiting_for_a_server_that_answers(console: Console) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        step = "a:echo x >>ran; test $(wc -l <ran) -ge 3"
        ended = console.run("--job", "j", "--retry", "2", "--backoff", "0", "--wait-online", address, "--step", step)
    assert ended.returncode == 0
    assert console.count("ran") == 3
    assert "waiting" not in ended.stderr


def test_logs_prints_the_last_output_of_a_step(console: Console) -> None:
    console.run("--job", "j", "--step", "a:printf 'one\\r\\377two'", "--quiet")
    shown = subprocess.run([PROGRAM, "logs", "a", "--job", "j"], cwd=console.folder, check=True, stdout=subprocess.PIPE)
    assert shown.stdout == b"one\r\xfftwo"
    unknown = console.run("logs", "aa", "--job", "j")
    assert unknown.returncode == 2
    assert "did you mean 'a'?" in unknown.stderr


def test_logs_follow_shows_output_as_it_comes_and_ends_with_the_step(console: Console) -> None:
    running = console.start("--job", "j", "--step", "a:echo first; while ! test -e go; do sleep 0.05; done; echo last")
    until((console.folder / ".checkpoint-run-j.logs/a.log").exists, "it starts")
    follow = console.start("logs", "a", "--follow", "--job", "j")
    assert follow.stdout is not None
    assert follow.stdout.readline() == "first\n"
    (console.folder / "go").touch()
    assert follow.communicate(timeout=30)[0] == "last\n"
    assert follow.returncode == 0
    running.communicate(timeout=30)


def test_a_skipped_step_tells_where_its_log_is(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo hello")
    console.run(*words)
    assert "its log: .checkpoint-run-j.logs/a.log" in console.run(*words).stderr


def test_no_logs_keeps_none(console: Console) -> None:
    console.run("--job", "j", "--step", "a:echo hello", "--no-logs")
    assert not (console.folder / ".checkpoint-run-j.logs").exists()


def test_secrets_do_not_show_in_logs_even_when_they_come_in_pieces(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nsecrets: [TOKEN]\nsteps:\n- id: a\n  run: printf 'x%s' \"$TOKEN\"; "
        "printf '%.3s' \"$TOKEN\"; sleep 0.1; printf '%s' \"${TOKEN#???}\"; printf y\n"
    )
    ended = console.run(env={"TOKEN": "hunter2hunter2"})
    assert ended.stdout == "x***y"  # in "…2hunter2hunter…" there is one that overlaps both
    assert (console.folder / ".checkpoint-run-j.logs/a.log").read_text() == "x***y"
    assert "hunter2" not in (console.folder / ".checkpoint-run-j.json").read_text()


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both sides of a terminal that changes no byte."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def read_all(ours: int, process: object, seconds: float = 30) -> bytes:
    """What comes out of the terminal until the process has ended."""
    data = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.2)[0]:
            data += os.read(ours, 65536)
        elif process.poll() is not None:  # type: ignore[attr-defined]
            return data
    raise AssertionError(data)


def test_a_step_sees_a_terminal_where_there_is_one(console: Console, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    step = "a:test -t 1 && test -t 2 && printf 'bar 1\\rbar 2\\n'"
    running = console.start("--job", "j", "--step", step, stdout=theirs, stderr=theirs, stdin=theirs)
    assert b"bar 1\rbar 2\r\n" in read_all(ours, running)
    assert running.returncode == 0
    # The log has what the step wrote, without what a terminal makes of it.
    assert (console.folder / ".checkpoint-run-j.logs/a.log").read_bytes() == b"bar 1\rbar 2\n"


def test_no_pty_gives_a_step_a_pipe(console: Console, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    running = console.start("--job", "j", "--no-pty", "--step", "a:test ! -t 1", stdout=theirs, stderr=theirs)
    read_all(ours, running)
    assert running.returncode == 0


def test_an_interactive_step_reads_our_input(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nsteps:\n- {id: a, interactive: true, run: 'read x; echo got $x'}\n- {id: b, run: 'cat; echo empty'}\n"
    )
    running = console.start(stdin=subprocess.PIPE)
    out, _ = running.communicate("hello\nmore\n", timeout=30)
    assert running.returncode == 0
    assert out == "got hello\nempty\n"


@pytest.mark.parametrize(("choice", "code"), [("stop", 129), ("continue", 0)])
def test_on_hangup(console: Console, choice: str, code: int) -> None:
    step = "a:touch up; while ! test -e go; do sleep 0.05; done; echo done >end"
    running = console.start("--job", "j", "--on-hangup", choice, "--step", step)
    until((console.folder / "up").exists, "it starts")
    running.send_signal(signal.SIGHUP)
    if choice == "continue":
        (console.folder / "go").touch()
    running.communicate(timeout=30)
    assert running.returncode == code
    assert (console.folder / "end").exists() == (choice == "continue")
    assert console.state("j")["a"]["status"] == ("done" if choice == "continue" else "interrupted")


def test_a_run_outlives_its_terminal_when_asked_to(console: Console) -> None:
    ours, theirs = pty.openpty()
    step = "a:touch up; while ! test -e go; do sleep 0.05; done; echo after"
    running = console.start(
        "--job", "j", "--on-hangup", "continue", "--step", step, stdout=theirs, stderr=theirs, stdin=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    until((console.folder / "up").exists, "it starts")
    os.close(ours)  # the connection drops
    (console.folder / "go").touch()
    assert running.wait(30) == 0
    assert (console.folder / ".checkpoint-run-j.logs/a.log").read_text() == "after\n"


def test_a_signal_reaches_a_run_whose_output_nobody_reads(console: Console) -> None:
    read_end, write_end = os.pipe()
    try:
        step = "a:touch up; yes | head -c 3000000; sleep 60"
        running = console.start("--job", "j", "--step", step, stdout=write_end)
        until((console.folder / "up").exists, "it starts")
        time.sleep(0.5)  # until the pipe is full, which nothing tells
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)
        assert running.returncode == 143
    finally:
        os.close(read_end)
        os.close(write_end)
    assert console.state("j")["a"]["status"] == "interrupted"


def test_a_step_that_ended_in_time_while_we_were_stopped_is_done(console: Console) -> None:
    running = console.start("--job", "j", "--timeout", "2", "--step", "a:touch up; sleep 0.7; touch ended")
    until((console.folder / "up").exists, "it starts")
    running.send_signal(signal.SIGSTOP)
    until((console.folder / "ended").exists, "the step ends")
    time.sleep(2)  # over its limit
    running.send_signal(signal.SIGCONT)
    running.communicate(timeout=30)
    assert running.returncode == 0
    assert console.state("j")["a"]["status"] == "done"


def test_state_that_a_step_removes_is_written_anew(console: Console) -> None:
    words = (
        "--job",
        "j",
        "--step",
        "a:true",
        "--step",
        "b:rm -rf .checkpoint-run-j.*",
        "--step",
        "c:touch up; sleep 60",
    )
    running = console.start(*words)
    until((console.folder / "up").exists, "c starts")
    second = console.run(*words)
    assert second.returncode == 4, "the lock holds although its file was removed"
    running.kill()
    running.communicate(timeout=30)
    statuses = {step: record["status"] for step, record in console.recorded("j").items()}
    assert statuses == {"a": "done", "b": "done", "c": "running"}


def test_state_of_another_job_is_refused(console: Console) -> None:
    console.run("--job", "one", "--step", "a:true")
    (console.folder / ".checkpoint-run-one.json").rename(console.folder / ".checkpoint-run-two.json")
    refused = console.run("--job", "two", "--step", "a:true")
    assert refused.returncode == 2
    assert "holds the state of the job 'one'" in refused.stderr
    (console.folder / ".checkpoint-run-two.json").unlink()
    (console.folder / ".checkpoint-run-one.journal").rename(console.folder / ".checkpoint-run-two.journal")
    assert console.run("--job", "two", "--step", "a:true").returncode == 2


def test_a_state_dir_elsewhere_keeps_two_folders_apart(console: Console, tmp_path: Path) -> None:
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        assert console.run("-C", name, "--state-dir", "../S", "--job", "j", "--step", "a:touch x").returncode == 0
        assert (tmp_path / name / "x").exists()


@pytest.mark.parametrize("file", [".json", ".journal"])
def test_a_pipe_in_the_place_of_a_state_file_is_refused(console: Console, file: str) -> None:
    os.mkfifo(console.folder / f".checkpoint-run-j{file}")
    refused = console.run("--job", "j", "--step", "a:true")
    assert refused.returncode == 2
    assert "is no file" in refused.stderr


def test_a_lock_that_is_a_link_writes_nothing_behind_it(console: Console) -> None:
    (console.folder / "precious").write_text("precious")
    (console.folder / ".checkpoint-run-j.lock").symlink_to("precious")
    assert console.run("--job", "j", "--step", "a:true").returncode == 5
    assert (console.folder / "precious").read_text() == "precious"


def test_a_log_may_not_be_a_file_of_the_state(console: Console) -> None:
    refused = console.run("--job", "j", "--step", "a:true", "--step-log", "a:.checkpoint-run-j.journal")
    assert refused.returncode == 2
    assert "is a file of the job's state" in refused.stderr


def test_a_very_long_time_limit_is_no_trouble(console: Console) -> None:
    assert console.run("--job", "j", "--timeout", "87000h", "--step", "a:true").returncode == 0


def test_an_input_that_matches_nothing_is_told(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text("job: j\nsteps: [{id: a, run: 'true', inputs: ['scr/**']}]\n")
    assert "step 'a': its input scr/** matches no file" in console.run().stderr


def test_status_tells_a_dead_run_from_a_living_one(console: Console) -> None:
    running = console.start("--job", "j", "--step", "a:touch up; sleep 60")
    until((console.folder / "up").exists, "it starts")
    assert "a  running" in console.run("--job", "j", "--status").stdout
    assert "a run of this job is going on" in console.run("plan", "--job", "j", "--step", "a:true").stderr
    running.kill()
    running.communicate(timeout=30)
    assert "a  interrupted" in console.run("--job", "j", "--status").stdout


def test_from_runs_the_named_step_and_all_after_it(console: Console) -> None:
    words = ["--job", "j"]
    for name in "abc":
        words += ["--step", f"{name}:echo x >>ran-{name}"]
    assert console.run(*words).returncode == 0
    planned = console.run("plan", *words, "--from", "b", "--json")
    assert [(step["action"], step["reason"]) for step in json.loads(planned.stdout)["steps"]] == [
        ("skip", "done"),
        ("run", "selected"),
        ("run", "selected"),
    ]
    assert console.run(*words, "--from", "b").returncode == 0
    assert [console.count(f"ran-{name}") for name in "abc"] == [1, 2, 2]
    unknown = console.run(*words, "--from", "bb")
    assert unknown.returncode == 2
    assert "--from 'bb': no step has this id" in unknown.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only there orphans come to us")
def test_orphans_that_end_are_reaped_while_the_step_runs(console: Console) -> None:
    running = console.start("--job", "j", "--step", "a:for i in $(seq 50); do (true &); done; touch up; sleep 60")
    until((console.folder / "up").exists, "it starts")

    def zombies() -> int:
        found = 0
        for child in psutil.Process(running.pid).children():
            with suppress(psutil.NoSuchProcess):  # reaped between the two looks
                found += child.status() == psutil.STATUS_ZOMBIE
        return found

    until(lambda: zombies() == 0, "they are reaped")
    running.terminate()
    running.communicate(timeout=30)
    assert running.returncode == 143
