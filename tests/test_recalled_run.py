"""A run of a job of which all is done says so without deciding anew, while nothing has changed; else it decides."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkpoint_action.report.plain import duration
from checkpoint_action.runner.basis import MOST_READ
from checkpoint_action.runner.recall import Reply, recalled, write_reply
from tests.console import Console, environment, tree
from tests.done_job import KEPT, inside

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept there"),
]

ANEW = "--no-pty"  # means nothing here, and is decided on
JOB = """\
job: demo
shell: sh
secrets: [TOKEN]
steps:
  - {id: make, inputs: ["src/**"], run: "mkdir -p out; cat src/* > out/all; sleep 0.1", outputs: [out/all]}
  - {id: use, run: "test -s out/all"}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").write_text("a")
    (tmp_path / "checkpoint.yml").write_text(JOB)
    console = Console(tmp_path)
    assert console.run().returncode == 0
    return console


def reply_of(console: Console, *words: str, **env: str) -> Reply | None:
    """What is recalled in a folder; the job is not held afterwards."""
    with inside(console.folder):
        reply = recalled(words, environment(env), duration)
    if reply is not None and reply.lock is not None:
        os.close(reply.lock)
    return reply


def timeless(text: str) -> str:
    """What a run says, whatever time it took."""
    return re.sub(r" in \d[\w. ]*", " in TIME", text)


def loads_what_decides(console: Console, *words: str) -> tuple[bool, subprocess.CompletedProcess[str]]:
    """Run the program as its script does, and see whether it has loaded what decides."""
    script = (
        "import sys, atexit\n"
        "from checkpoint_action.__main__ import entry\n"
        "atexit.register(lambda: print('argparse' in sys.modules, 'yaml' in sys.modules, 're' in sys.modules))\n"
        f"sys.argv[1:] = {list(words)!r}\n"
        "entry()\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}"],
        cwd=console.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    *said, last = done.stdout.splitlines()
    assert said == []
    return "True" in last, done


@pytest.mark.parametrize("words", [(), ("run",), ("--verify", "full"), ("-f", "checkpoint.yml"), ("--state-dir", ".")])
def test_it_says_what_deciding_anew_says_without_loading_what_decides(console: Console, words: tuple[str, ...]) -> None:
    before = tree(console.folder)
    loaded, done = loads_what_decides(console, *words)
    assert not loaded
    whole = console.run(*words, ANEW)
    assert (done.returncode, timeless(done.stderr)) == (whole.returncode, timeless(whole.stderr))
    assert timeless(done.stderr).splitlines()[-1].startswith("checkpoint-run: job demo: 2 skipped in TIME; saved ")
    after = tree(console.folder)
    kept = set(before) - {".", ".checkpoint-run-demo.lock"}
    assert {name: before[name] for name in kept} == {name: after[name] for name in kept}
    assert before.keys() == after.keys()


def test_quietly_it_says_nothing(console: Console) -> None:
    for words in (("-q",), ("--quiet", "--no-logs")):
        loaded, done = loads_what_decides(console, *words)
        assert (loaded, done.returncode, done.stderr) == (False, 0, "")


def test_it_holds_the_job_and_says_who_does(console: Console) -> None:
    with inside(console.folder):
        reply = recalled((), environment(), duration)
        assert reply is not None
        busy = console.run()
        assert busy.returncode == 4
        assert f"another run holds this job (process {os.getpid()})" in busy.stderr
        assert recalled((), environment(), duration) is None
        assert reply.lock is not None
        os.close(reply.lock)


@pytest.mark.parametrize(
    "change",
    [
        "echo b > src/b",
        "mv src/a src/b",
        "chmod 600 src/a",
        "touch -r src/a t; printf b > src/a; touch -r t src/a; rm t",
        "echo >> out/all",
        "rm out/all",
        "mv out/all all; ln -s ../all out/all",
        "chmod 700 out/all",
        "mkdir src/b",
        "echo >> checkpoint.yml",
        "rm -r .checkpoint-run-demo.logs",
        "mkdir .checkpoint-run-demo.run",
        "mkdir .checkpoint-run-demo.progress",
        "rm .checkpoint-run-demo.lock",
        "rm .checkpoint-run-demo.plan",
        "echo >> .checkpoint-run-demo.plan",
        "echo >> .checkpoint-run-demo.json",
        "echo >> .checkpoint-run-demo.journal",
        "git init -q",
    ],
)
def test_whatever_has_changed_is_decided_on(console: Console, change: str) -> None:
    assert reply_of(console) is not None
    subprocess.run(["sh", "-c", change], cwd=console.folder, check=True)
    assert reply_of(console) is None
    loaded, done = loads_what_decides(console)
    assert loaded
    assert done.returncode == 0, done.stderr
    assert reply_of(console) is not None  # kept anew


@pytest.mark.parametrize("change", ["rm src/a", "ln -s a src/b", "rm -r src", "mv src other; ln -s other src"])
def test_what_is_never_kept_is_decided_on(console: Console, change: str) -> None:
    assert reply_of(console) is not None
    subprocess.run(["sh", "-c", change], cwd=console.folder, check=True)
    assert reply_of(console) is None
    console.run()
    assert reply_of(console) is None


@pytest.mark.parametrize(
    "env",
    [
        {"CHECKPOINT_STORE": "file:///nowhere"},
        {"GITHUB_RUN_ID": "1"},
        {"TOKEN": "other\nout/all\ndemo"},
        {"PATH": "/nowhere"},
    ],
)
def test_an_environment_that_may_say_something_else_is_decided_in(console: Console, env: dict[str, str]) -> None:
    assert reply_of(console) is not None
    assert reply_of(console, **env) is None
    assert reply_of(console, TOKEN="unseen", OTHER="demo") is not None


def test_a_secret_in_what_is_said_is_hidden(console: Console) -> None:
    done = console.run(env={"TOKEN": "demo"})
    assert done.returncode == 0
    assert "job ***: 2 skipped" in done.stderr


def test_a_shell_that_is_gone_is_told(console: Console) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "checkpoint_action"],
        cwd=console.folder,
        env=environment({"PATH": "/nowhere"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "the shell 'sh' is not on PATH" in done.stderr


def test_on_a_terminal_a_run_is_drawn_as_ever(console: Console) -> None:
    ours, theirs = os.openpty()
    try:
        process = console.start(
            stdout=subprocess.DEVNULL, stderr=theirs, env=environment({"TERM": "xterm", "CI": "", "NO_COLOR": ""})
        )
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 1 << 16):
                seen += piece
        except OSError:  # the end of a terminal
            pass
        assert process.wait() == 0
    finally:
        os.close(ours)
    assert b"\x1b[" in seen


def test_a_reader_that_is_gone_and_a_full_disk_are_no_fault_of_a_run(console: Console) -> None:
    assert console.script('"$CR" 2>&-; echo $?').stdout == "0\n"
    assert console.script('{ "$CR"; echo $? > code; } 2>&1 | true; cat code').stdout.strip() == "0"
    if Path("/dev/full").exists():
        assert console.script('"$CR" 2>/dev/full; echo $?').stdout == "0\n"


@pytest.mark.parametrize("words", [("-v",), ("--jobs", "2"), ("--timeout", "5m"), ("--json",), (ANEW,)])
def test_a_run_in_other_words_keeps_nothing(console: Console, words: tuple[str, ...]) -> None:
    (console.folder / KEPT).unlink()
    assert console.run(*words).returncode == 0
    assert not (console.folder / KEPT).exists()
    assert reply_of(console, *words) is None


def test_what_takes_long_to_read_is_decided_on_with_all_that_takes(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text(
        f"job: demo\nshell: sh\nsteps:\n  - {{id: a, run: 'truncate -s {MOST_READ + 1} large', outputs: [large]}}\n"
    )
    console = Console(tmp_path)
    assert console.run().returncode == 0
    assert not (tmp_path / KEPT).exists()
    assert console.run("--verify", "stat").returncode == 0
    assert reply_of(console) is None
    assert reply_of(console, "--verify", "stat") is not None


def test_a_job_file_that_a_step_changes_is_decided_on(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text(
        "job: demo\nshell: sh\nsteps:\n  - {id: a, run: 'echo \"  - {id: b, run: touch b}\" >> checkpoint.yml'}\n"
    )
    console = Console(tmp_path)
    assert console.run().returncode == 0
    assert reply_of(console) is None
    assert "b: done" in console.run().stderr
    assert reply_of(console) is not None


def test_an_input_that_a_later_step_edits_is_never_taken_for_done(tmp_path: Path) -> None:
    (tmp_path / "counted").write_text("0")
    (tmp_path / "checkpoint.yml").write_text(
        "job: demo\nshell: sh\nsteps:\n"
        "  - {id: a, inputs: [counted], run: 'echo a >> ran'}\n"
        "  - {id: b, run: 'echo >> counted', outputs: [counted]}\n"
    )
    console = Console(tmp_path)
    for number in range(1, 4):
        assert console.run().returncode == 0
        assert console.count("ran") == number
        assert reply_of(console) is None


def test_the_other_job_file_and_another_name_are_known_too(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yaml").write_text(JOB.replace("src/*", "checkpoint.yaml").replace("src/**", "*.yaml"))
    console = Console(tmp_path)
    assert console.run().returncode == 0
    assert reply_of(console) is not None
    assert console.run("--job", "other").returncode == 0
    assert reply_of(console, "--job", "other") is not None
    assert reply_of(console, "--job", "demo") is None  # asked in other words, and so decided on
    (tmp_path / "checkpoint.yml").write_text(JOB)
    assert reply_of(console) is None


def test_a_reply_is_not_written_where_letters_look_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert not write_reply(Reply("text", 2))
