"""Each of the original flags, through the installed console script."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.console import Console, lines_of, tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(90),  # a run that does not end fails the test, not the whole suite
]

REMINDER = "checkpoint-run: job j: note: steps run in the shell exactly as written; quote what must be quoted"


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def test_job(console: Console) -> None:
    first = console.run("--job", "j", "--step", "a:echo x >>a")
    other = console.run("--job", "other.job-2", "--step", "a:echo x >>a")
    again = console.run("--job=j", "--step", "a:echo x >>a")
    assert [first.returncode, other.returncode, again.returncode] == [0, 0, 0]
    # Two jobs keep two states: the second ran the step although the first had.
    assert console.count("a") == 2
    names = sorted(path.name for path in console.folder.glob(".checkpoint-run-*.json"))
    assert names == [".checkpoint-run-j.json", ".checkpoint-run-other.job-2.json"]
    document = json.loads((console.folder / ".checkpoint-run-j.json").read_text())
    assert (document["format"], document["job"]) == (1, "j")
    assert "j: 1 done" in first.stderr
    assert "j: 1 skipped" in again.stderr


def test_job_must_be_given_and_be_a_name(console: Console) -> None:
    before = tree(console.folder)
    missing = console.run("--step", "a:echo x >a")
    wrong = console.run("--job", "../up", "--step", "a:echo x >a")
    assert (missing.returncode, wrong.returncode) == (2, 2)
    assert missing.stderr == (
        "checkpoint-run: error CPR105: --job is missing; give the job a name, for example --job build\n"
    )
    assert wrong.stderr.startswith("checkpoint-run: error CPR107: --job '../up' is not valid; use letters,")
    assert tree(console.folder) == before


def test_state_dir(console: Console) -> None:
    words = ("--job", "j", "--state-dir", "deep/state", "--step", "a:echo x >>a")
    assert console.run(*words).returncode == 0
    assert console.run(*words).returncode == 0
    # Steps still run in the current folder; only the state lies elsewhere, in a folder made for it.
    assert console.count("a") == 1
    assert sorted(path.name for path in console.folder.iterdir()) == ["a", "deep"]
    assert console.state("j", "deep/state")["a"]["status"] == "done"
    assert console.run("--job", "j", "--step", "a:echo x >>a").returncode == 0
    assert console.count("a") == 2


def test_step(console: Console) -> None:
    words = (
        *("--job", "j", "--step", "one:echo 1:$((1 + 1)) | tee -a order", "--step", "two:echo two >>order"),
        *("--step", "three:echo three >>order; echo problem >&2"),
    )
    first = console.run(*words)
    assert first.returncode == 0
    # In the order given, each by the shell exactly as written.
    assert (console.folder / "order").read_text() == "1:2\ntwo\nthree\n"
    assert first.stdout == "1:2\nproblem\n"
    assert console.statuses("j") == {"one": "done", "two": "done", "three": "done"}
    record = console.state("j")["one"]
    assert record["command"] == "echo 1:$((1 + 1)) | tee -a order"
    assert (record["exit_code"], record["tries"]) == (0, 1)
    assert record["duration"] >= 0
    # One reminder that the shell gets the text as it is.
    assert first.stderr.count("steps run in the shell exactly as written") == 1
    assert first.stderr.splitlines()[0] == REMINDER
    second = console.run(*words)
    assert second.returncode == 0
    assert (console.folder / "order").read_text() == "1:2\ntwo\nthree\n"
    assert second.stdout == ""
    assert second.stderr.count("skipped (done)") == 3


def test_step_changed_command_runs_that_step_only(console: Console) -> None:
    console.run("--job", "j", "--step", "a:echo x >>a", "--step", "b:echo x >>b")
    changed = console.run("--job", "j", "--step", "a:echo y >>a", "--step", "b:echo x >>b")
    assert changed.returncode == 0
    assert "a: runs (command-changed: echo x >>a → echo y >>a)" in changed.stderr
    assert (console.count("a"), console.count("b")) == (2, 1)


def test_step_failure_stops_the_job_and_the_next_run_goes_on_from_there(console: Console) -> None:
    words = (
        *("--job", "j", "--step", "a:echo x >>a", "--step", "b:echo x >>b; test -e fixed || exit 7"),
        *("--step", "c:echo x >>c"),
    )
    failed = console.run(*words)
    assert failed.returncode == 1
    assert console.statuses("j") == {"a": "done", "b": "failed"}
    assert console.state("j")["b"]["exit_code"] == 7
    assert "b: failed after" in failed.stderr
    assert "exit code 7" in failed.stderr
    assert console.count("c") == 0
    (console.folder / "fixed").touch()
    assert console.run(*words).returncode == 0
    assert [console.count(name) for name in "abc"] == [1, 2, 1]


def test_step_killed_by_a_signal_is_failed_with_the_signal_apart(console: Console) -> None:
    assert console.run("--job", "j", "--step", "a:kill -9 $$").returncode == 1
    record = console.state("j")["a"]
    assert (record["status"], record["signal"], record.get("exit_code")) == ("failed", 9, None)
    assert "failed-before" in console.run("--job", "j", "--step", "a:kill -9 $$").stderr


def test_step_of_bytes_that_are_no_utf8_reaches_the_shell_as_it_is(console: Console) -> None:
    done = console.run("--job", "j", "--step", b"a:printf '\xff\xfe' >raw")
    assert done.returncode == 0
    assert (console.folder / "raw").read_bytes() == b"\xff\xfe"
    assert "skipped" in console.run("--job", "j", "--step", b"a:printf '\xff\xfe' >raw").stderr


def test_status(console: Console) -> None:
    words = ("--job", "j", "--step", "good:true", "--step", "bad:exit 3", "--step", "later:true")
    assert console.run("--job", "j", "--status").stdout == "job j: nothing recorded\n"
    console.run(*words)
    before = tree(console.folder)
    shown = console.run(*words, "--status")
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[0] == ["job", "j"]
    assert [row[:2] for row in rows[1:]] == [["good", "done"], ["bad", "failed"], ["later", "pending"]]
    assert rows[2][-3:] == ["exit", "code", "3"]
    # Without the steps: what the state knows. As JSON: the records.
    assert [line.split()[0] for line in console.run("--job", "j", "--status").stdout.splitlines()[1:]] == [
        "good",
        "bad",
    ]
    records = json.loads(console.run("--job", "j", "--status", "--json").stdout)
    assert records == {"job": "j", "steps": list(console.state("j").values())}
    assert tree(console.folder) == before


@pytest.mark.slow
def test_reset(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo x >>a")
    assert console.run("--job", "j", "--reset").stdout == "checkpoint-run: job j: nothing was recorded\n"
    assert list(console.folder.iterdir()) == []
    console.run(*words)
    console.run("--job", "kept", "--step", "a:true")
    reset = console.run("--job", "j", "--reset")
    assert (reset.returncode, reset.stdout) == (0, "checkpoint-run: job j: what was recorded is forgotten\n")
    assert sorted(path.name for path in console.folder.glob(".checkpoint-run-j*")) == []
    assert console.statuses("kept") == {"a": "done"}
    assert console.count("a") == 1
    assert console.run(*words).returncode == 0
    assert console.count("a") == 2


def test_dry_run(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo x >>a", "--step", "b:exit 4")
    fresh = console.run(*words, "--dry-run")
    assert (fresh.returncode, fresh.stderr) == (0, "")
    assert [line.split() for line in fresh.stdout.splitlines()] == [
        ["a", "run", "never-ran"],
        ["b", "run", "never-ran"],
    ]
    assert list(console.folder.iterdir()) == []
    console.run(*words)
    before = tree(console.folder)
    told = console.run(*words, "--dry-run")
    assert [line.split(maxsplit=2) for line in told.stdout.splitlines()] == [
        ["a", "skip", "done"],
        ["b", "run", "failed-before: it ended with exit code 4"],
    ]
    assert tree(console.folder) == before
    # What it said is what happens.
    assert console.run(*words).returncode == 1
    assert console.count("a") == 1


def gone(pid: int) -> bool:
    """Whether a process ends (or has ended)."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return True
    if process.status() == psutil.STATUS_ZOMBIE:
        return True
    _, alive = psutil.wait_procs([process], timeout=10)
    return not alive


@pytest.mark.slow
def test_timeout(console: Console) -> None:
    begin = time.monotonic()
    ended = console.run(
        *("--job", "j", "--timeout", "1", "--continue-on-error", "--step", "ok:echo fine >ok"),
        *("--step", "slow:trap 'exit 0' TERM; sleep 600 & echo $! >child; wait"),
        *("--step", "also:sleep 600"),
    )
    assert ended.returncode == 1
    assert time.monotonic() - begin >= 2
    assert console.statuses("j") == {"ok": "done", "slow": "timeout", "also": "timeout"}
    assert console.state("j")["slow"]["duration"] >= 1
    assert ended.stderr.count("it took longer than its 1 s") == 2
    assert gone(int((console.folder / "child").read_text()))
    again = console.run("--job", "j", "--step", "also:sleep 600", "--dry-run")
    assert again.stdout.split()[:3] == ["also", "run", "timed-out-before:"]


@pytest.mark.slow
def test_timeout_ends_also_what_left_group_and_session(console: Console) -> None:
    console.fifo("up")
    leave = 'import os, signal; os.setsid(); open("up", "w").write(str(os.getpid())); signal.pause()'
    step = f"a:({shlex.quote(sys.executable)} -I -S -c {shlex.quote(leave)} &); cat up >pid; sleep 600"
    assert console.run("--job", "j", "--timeout", "1.5", "--step", step).returncode == 1
    assert console.statuses("j") == {"a": "timeout"}
    assert gone(int((console.folder / "pid").read_text()))


@pytest.mark.slow
def test_step_timeout(console: Console) -> None:
    ended = console.run(
        *("--job", "j", "--timeout", "0.2", "--step-timeout", "long:10m", "--step", "long:sleep 0.5; echo x >long"),
        *("--step", "short:sleep 600"),
    )
    assert ended.returncode == 1
    assert console.statuses("j") == {"long": "done", "short": "timeout"}
    assert console.count("long") == 1
    alone = console.run(
        *("--job", "k", "--step-timeout", "short:0.2", "--step", "long:sleep 0.5", "--step", "short:sleep 600")
    )
    assert alone.returncode == 1
    assert console.statuses("k") == {"long": "done", "short": "timeout"}


def test_continue_on_error(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo x >>a; exit 1", "--step", "b:echo x >>b", "--step", "c:exit 2")
    stopped = console.run(*words)
    assert stopped.returncode == 1
    assert console.statuses("j") == {"a": "failed"}
    went_on = console.run(*words, "--continue-on-error")
    assert went_on.returncode == 1
    assert console.statuses("j") == {"a": "failed", "b": "done", "c": "failed"}
    assert (console.count("a"), console.count("b")) == (2, 1)
    assert "failed: a, c" in went_on.stderr


def test_max_failures(console: Console) -> None:
    words = ("--job", "j", *(word for name in "abcd" for word in ("--step", f"{name}:echo x >>{name}; exit 1")))
    ended = console.run(*words, "--continue-on-error", "--max-failures", "2")
    assert ended.returncode == 1
    assert console.statuses("j") == {"a": "failed", "b": "failed"}
    assert [console.count(name) for name in "abcd"] == [1, 1, 0, 0]
    assert "2 failed, 2 left" in ended.stderr
    shown = console.run(*words, "--status").stdout
    assert [line.split()[1] for line in shown.splitlines()[1:]] == ["failed", "failed", "pending", "pending"]
    wrong = console.run(*words, "--max-failures", "0")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "'0' is not a whole number from 1" in wrong.stderr


@pytest.mark.slow
def test_step_artifact(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo x >>ran; echo content >'out[1].txt'", "--step-artifact", "a:out[1].txt")
    artifact = console.folder / "out[1].txt"
    assert console.run(*words).returncode == 0
    entry = console.state("j")["a"]["layer"]["entries"][0]
    assert entry["path"] == "out[1].txt"
    assert entry["sha256"] == hashlib.sha256(b"content\n").hexdigest()
    assert "skipped (done)" in console.run(*words).stderr
    # A newer time is no other content.
    os.utime(artifact)
    assert "skipped (done)" in console.run(*words).stderr
    artifact.write_text("other\n")
    assert "a: runs (output-changed: out[1].txt: sha256 " in console.run(*words).stderr
    artifact.unlink()
    assert "a: runs (output-missing: out[1].txt)" in console.run(*words).stderr
    assert artifact.read_text() == "content\n"
    assert console.count("ran") == 3


def test_step_artifact_missing_is_a_failure_with_code_minus_2(console: Console) -> None:
    words = (
        *("--job", "j", "--step", "a:echo x >>ran; touch one", "--step-artifact", "a:one"),
        *("--step-artifact", "a:two"),
    )
    failed = console.run(*words)
    assert failed.returncode == 1
    record = console.state("j")["a"]
    assert (record["status"], record["exit_code"]) == ("failed", -2)
    assert record["error"] == "it ended without its declared output two"
    assert "without its declared output two" in failed.stderr
    # Also when the file turns up later: what failed is never skipped.
    (console.folder / "two").touch()
    assert console.run(*words).returncode == 0
    assert console.count("ran") == 2


def test_retry(console: Console) -> None:
    words = ("--backoff", "0", "--job", "j", "--step", "a:echo x >>ran; test $(wc -l <ran) -ge 3")
    ended = console.run(*words, "--retry", "2")
    assert ended.returncode == 0
    record = console.state("j")["a"]
    assert (record["status"], record["exit_code"], record["tries"]) == ("done", 0, 3)
    assert ended.stderr.count("next try in") == 2
    assert re.search(r"a: done in .+, 3 tries$", ended.stderr, re.MULTILINE)


def test_retry_keeps_the_last_try_only_and_no_more_than_n_extra(console: Console) -> None:
    ended = console.run("--retry", "2", "--backoff", "0", "--job", "j", "--step", "a:echo x >>n; exit $(wc -l <n)")
    assert ended.returncode == 1
    assert console.count("n") == 3
    record = console.state("j")["a"]
    assert (record["status"], record["exit_code"], record["tries"]) == ("failed", 3, 3)
    # The next run has all its tries again.
    console.run("--retry", "2", "--backoff", "0", "--job", "j", "--step", "a:echo x >>n; exit $(wc -l <n)")
    assert console.count("n") == 6


@pytest.mark.slow
def test_retry_also_after_a_timeout_and_a_missing_artifact(console: Console) -> None:
    ended = console.run(
        *("--retry", "1", "--backoff", "0", "--job", "j", "--step-timeout", "t:1.5", "--step-artifact", "m:made"),
        *("--step", "t:echo x >>t; test $(wc -l <t) -ge 2 || sleep 600"),
        *("--step", "m:echo x >>m; test $(wc -l <m) -lt 2 || touch made"),
    )
    assert ended.returncode == 0
    assert {step: record["tries"] for step, record in console.state("j").items()} == {"t": 2, "m": 2}
    assert (console.count("t"), console.count("m")) == (2, 2)


@pytest.mark.slow
def test_backoff(console: Console) -> None:
    stamp = f"{shlex.quote(sys.executable)} -S -c 'import time; print(time.monotonic())' >>times; exit 1"
    ended = console.run("--json", "--retry", "3", "--backoff", "0.1", "--job", "j", "--step", f"a:{stamp}")
    waits = [event["wait"] for event in lines_of(ended.stdout) if event["event"] == "step-retried"]
    assert waits == pytest.approx([0.1, 0.2, 0.4])
    times = [float(line) for line in (console.folder / "times").read_text().splitlines()]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == 3
    assert all(gap >= wait for gap, wait in zip(gaps, waits, strict=True))


@pytest.mark.slow
def test_backoff_is_one_second_unless_given_and_has_a_cap(console: Console) -> None:
    plain = console.run("--json", "--retry", "1", "--job", "j", "--step", "a:exit 1")
    capped = console.run(
        *("--json", "--retry", "3", "--backoff", "0.1", "--backoff-max", "0.15", "--job", "j", "--step", "a:exit 1")
    )
    waits = [
        [event["wait"] for event in lines_of(ended.stdout) if event["event"] == "step-retried"]
        for ended in (plain, capped)
    ]
    assert waits == [[1.0], [0.1, 0.15, 0.15]]


def test_step_log(console: Console) -> None:
    words = (
        *("--retry", "1", "--backoff", "0", "--job", "j", "--step-log", "a:logs/deep/a.txt"),
        *(
            "--step",
            "a:echo x >>n; echo out $(wc -l <n); echo err >&2; printf '\\377\\000end'; test -s n2 || ! echo >n2",
        ),
        *("--step", "b:echo other"),
    )
    ended = console.run(*words)
    assert ended.returncode == 0
    # Only the last try, byte for byte, stdout and stderr; and all of it on the terminal as well.
    assert (console.folder / "logs/deep/a.txt").read_bytes() == b"out 2\nerr\n\xff\x00end"
    assert ended.stdout == "out 1\nerr\n\udcff\x00endout 2\nerr\n\udcff\x00endother\n"
    assert console.folder / console.state("j")["a"]["log"] == console.folder / "logs/deep/a.txt"
    skipped = console.run(*words)
    assert re.search(r"a: skipped .*; its log: \S*logs/deep/a\.txt$", skipped.stderr, re.MULTILINE)
    assert (console.folder / "logs/deep/a.txt").read_bytes().startswith(b"out 2")


def test_step_log_alone_with_quiet(console: Console) -> None:
    ended = console.run("--quiet", "--job", "j", "--step-log", "a:a.log", "--step", "a:echo out; echo err >&2")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert (console.folder / "a.log").read_text() == "out\nerr\n"
    failed = console.run("--quiet", "--job", "j", "--step-log", "a:a.log", "--step", "a:echo out; exit 3")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "a: failed after" in failed.stderr


def test_step_log_that_cannot_be_written_is_a_warning(console: Console) -> None:
    (console.folder / "file").touch()
    ended = console.run("--job", "j", "--step-log", "a:file/a.log", "--step", "a:echo out")
    assert (ended.returncode, ended.stdout) == (0, "out\n")
    assert "warning: step 'a': cannot write its log" in ended.stderr


def test_logs_dir(console: Console) -> None:
    ended = console.run(
        *(
            "--job",
            "j",
            "--logs-dir",
            "logs",
            "--step-log",
            "b:own.log",
            "--step",
            "a:echo one",
            "--step",
            "b:echo two",
        ),
        *("--step", "c:echo three; exit 1"),
    )
    assert ended.returncode == 1
    assert ended.stdout == "one\ntwo\nthree\n"
    logs = {path.name: path.read_text() for path in (console.folder / "logs").iterdir()}
    assert logs == {"a.log": "one\n", "c.log": "three\n"}
    assert (console.folder / "own.log").read_text() == "two\n"


@pytest.mark.slow
def test_force(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo x >>a", "--step", "b:echo x >>b")
    console.run(*words, "--step", "old:true")
    assert list(console.statuses("j")) == ["a", "b", "old"]
    forced = console.run(*words, "--force")
    assert forced.returncode == 0
    assert (console.count("a"), console.count("b")) == (2, 2)
    assert forced.stderr.count("runs (forced)") == 2
    # Fresh state: what was recorded of other steps is gone too.
    assert list(console.statuses("j")) == ["a", "b"]
    before = tree(console.folder)
    assert console.run(*words, "--force", "--dry-run").stdout.split() == ["a", "run", "forced", "b", "run", "forced"]
    assert tree(console.folder) == before
    assert "2 skipped" in console.run(*words).stderr
