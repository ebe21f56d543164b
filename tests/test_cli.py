"""The command line as a whole, through the installed console script: exit codes, views, stops and mistakes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action import __version__, cli
from checkpoint_action.arguments import VERBS
from tests.console import PROGRAM, Console, environment, lines_of, plain, tree

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(90),  # a run that does not end fails the test, not the whole suite
]

REPOSITORY = Path(cli.__file__).resolve().parent.parent
SITE_PACKAGES = str(Path(pytest.__file__).resolve().parent.parent)


@pytest.fixture
def console(tmp_path: Path) -> Console:
    folder = tmp_path / "here"
    folder.mkdir()
    return Console(folder)


def write(console: Console, text: str, name: str = "checkpoint.yml") -> None:
    (console.folder / name).write_bytes(text.encode())


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith("\n") and "Traceback" not in text


# ---------------------------------------------------------------------------------------------- verbs and words


def test_help_and_version_end_well() -> None:
    console = Console(Path.cwd())
    helped = console.run("--help")
    assert helped.returncode == 0
    assert all(verb in helped.stdout for verb in VERBS)
    assert console.run("--version").stdout == f"checkpoint-run {__version__}\n"


def test_the_verbs_are_the_flags_of_the_same_meaning(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo x >>a")
    assert console.run("run", *words).returncode == 0
    assert console.run("plan", *words).stdout == console.run(*words, "--dry-run").stdout == "a  skip     done\n"
    assert console.run("status", *words).stdout == console.run(*words, "--status").stdout
    assert console.run("run", *words, "--dry-run").stdout == "a  skip     done\n"
    assert console.run("reset", "--job", "j").returncode == 0
    assert not list(console.folder.glob(".checkpoint-run-*"))
    assert console.count("a") == 1


def test_the_package_is_the_same_program(console: Console) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "checkpoint_action", "--job", "j", "--step", "a:exit 3"],
        cwd=console.folder,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 1
    assert console.state("j")["a"]["exit_code"] == 3


def test_directory(console: Console) -> None:
    (console.folder / "sub").mkdir()
    write(console, "steps:\n- {id: a, run: pwd >here}\n", "sub/job.yml")
    assert console.run("-C", "sub", "-f", "job.yml").returncode == 0
    assert (console.folder / "sub/here").read_text().strip() == str(console.folder / "sub")
    # The state and the name are those of the folder gone to.
    assert [path.name for path in (console.folder / "sub").glob("*.json")] == [".checkpoint-run-sub.json"]
    missing = console.run("-C", "none", "--job", "j", "--step", "a:true")
    assert (missing.returncode, missing.stderr) == (
        2,
        "checkpoint-run: error CPR110: -C none: No such file or directory\n",
    )


def test_chain_makes_a_changed_step_run_what_follows(console: Console) -> None:
    tail = ("--step", "b:echo x >>b")
    console.run("--chain", "--job", "j", "--step", "a:echo x >>a", *tail)
    again = console.run("--chain", "--job", "j", "--step", "a:echo y >>a", *tail)
    assert "b: runs (needs-changed" in again.stderr
    assert (console.count("a"), console.count("b")) == (2, 2)


@pytest.mark.slow
def test_shell_changes_what_runs_a_step(console: Console) -> None:
    assert console.run("--job", "j", "--step", "a:false | true").returncode == 0
    assert console.run("--job", "k", "--shell", "bash", "--step", "a:false | true").returncode == 1
    python = console.run("--job", "l", "--shell", "python", "--step", "a:print(6 * 7)")
    assert (python.returncode, python.stdout) == (0, "42\n")


# ---------------------------------------------------------------------------------------------- job files


def test_the_job_file_of_the_folder_is_found_and_its_folder_names_the_job(console: Console) -> None:
    write(console, "steps:\n- {id: a, run: echo x >>a}\n", "checkpoint.yaml")
    assert console.run().returncode == 0
    assert console.statuses("here") == {"a": "done"}
    write(console, "job: first\nsteps:\n- {id: a, run: echo x >>a}\n", "checkpoint.yml")
    assert console.run().returncode == 0
    assert console.statuses("first") == {"a": "done"}
    assert console.run("--job", "named").returncode == 0
    assert console.statuses("named") == {"a": "done"}
    assert console.count("a") == 3


@pytest.mark.parametrize("command", ["false | cat", "false\necho on"])
def test_a_job_files_default_shell_sees_failures_in_pipes_and_in_the_middle(console: Console, command: str) -> None:
    write(console, f"job: j\nsteps:\n- id: a\n  run: {json.dumps(command)}\n")
    assert console.run().returncode == 1
    assert console.statuses("j") == {"a": "failed"}


@pytest.mark.slow
def test_a_job_file_with_other_line_ends_is_the_same_job(console: Console) -> None:
    text = "job: j\nsteps:\n- id: a\n  run: |\n    echo one\n    echo two >a\n- {id: b, run: cat a}\n"
    write(console, text)
    unix = console.run()
    write(console, text.replace("\n", "\r\n"))
    assert console.run("plan").stdout == "a  skip     done\nb  skip     done\n"
    windows = console.run("--force")
    assert (windows.returncode, windows.stdout) == (unix.returncode, unix.stdout) == (0, "one\ntwo\n")


def test_flags_are_laid_over_a_job_file(console: Console) -> None:
    write(console, "job: j\nsteps:\n- {id: a, run: echo x >>a; exit 1}\n- {id: b, run: echo hi, needs: []}\n")
    ended = console.run("--retry", "1", "--backoff", "0", "--continue-on-error", "--step-log", "b:b.log")
    assert ended.returncode == 1
    assert console.count("a") == 2
    assert (console.folder / "b.log").read_text() == "hi\n"


# ---------------------------------------------------------------------------------------------- machine-readable


def test_json_of_a_plan(console: Console) -> None:
    words = ("--job", "j", "--step", "a:true", "--step", "b:exit 3", "--json")
    console.run(*words)
    planned = console.run("plan", *words)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert json.loads(planned.stdout) == {
        "job": "j",
        "steps": [
            {"id": "a", "action": "skip", "reason": "done", "detail": ""},
            {"id": "b", "action": "run", "reason": "failed-before", "detail": "it ended with exit code 3"},
        ],
    }


def test_json_of_a_status(console: Console) -> None:
    words = ("--job", "j", "--step", "a:exit 3", "--step", "b:true", "--json")
    console.run(*words)
    shown = json.loads(console.run("status", *words).stdout)
    assert shown == {"job": "j", "steps": [console.state("j")["a"], {"step": "b", "status": "pending"}]}
    assert shown["steps"][0]["exit_code"] == 3


def test_json_of_a_run_is_one_event_a_line_and_nothing_else_on_stdout(console: Console) -> None:
    words = (
        *("--job", "j", "--json", "--retry", "1", "--backoff", "0", "--step", "a:echo out"),
        *("--step", "b:echo x >>b; echo bad; exit 4"),
    )
    ended = console.run(*words)
    assert ended.returncode == 1
    events = lines_of(ended.stdout)
    assert [event["event"] for event in events] == [
        *("run-started", "step-started", "step-ended", "step-started", "step-retried", "step-ended", "run-ended")
    ]
    assert events[0] == {"event": "run-started", "job": "j", "steps": ["a", "b"]}
    assert events[1] == {"event": "step-started", "id": "a", "action": "run", "reason": "never-ran", "detail": ""}
    assert (events[4]["id"], events[4]["wait"], events[4]["tries"]) == ("b", 0, 1)
    ended_b = {"event": "step-ended", "id": "b", "status": "failed", "exit-code": 4, "signal": None, "tries": 2}
    assert events[5].items() >= ended_b.items()
    assert events[5]["error"] == "it ended with exit code 4"
    totals = {"job": "j", "exit-code": 1, "ran": ["a", "b"], "failed": ["b"], "pending": [], "signal": None}
    assert events[6].items() >= totals.items()
    # The steps' own output and the reminder are on stderr.
    assert ended.stderr == (
        "checkpoint-run: job j: note: steps run in the shell exactly as written; quote what must be quoted\n"
        "out\nbad\nbad\n"
    )
    again = lines_of(console.run(*words, "--quiet").stdout)
    assert (again[1]["event"], again[1]["id"], again[1]["reason"]) == ("step-skipped", "a", "done")


# ---------------------------------------------------------------------------------------------- views change nothing


VIEWS = (("plan",), ("status",), ("--dry-run", "--json"), ("--status", "--json"))


def test_a_view_changes_no_byte(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--job", "j", "--step", "a:echo x >a", "--step-artifact", "a:a", "--step", "b:exit 1")
    monkeypatch.chdir(console.folder)
    assert [cli.main((*view, *words)) for view in VIEWS] == [0, 0, 0, 0]
    assert list(console.folder.iterdir()) == []
    console.run(*words)
    before = tree(console.folder)
    assert [cli.main((*view, *words)) for view in VIEWS] == [0, 0, 0, 0]
    assert console.run("plan", *words).returncode == 0
    assert tree(console.folder) == before


# ---------------------------------------------------------------------------------------------- mistakes

JOB_FILE = "job: j\nsteps:\n- {id: a, run: echo x >a}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOB_FILE + "  timout: 5\n", "checkpoint.yml:4:3: "),
        ("job: j\nsteps:\n- id: a\n  run: x\n  timout: 5\n", "checkpoint.yml:5:3: step 'a': unknown key 'timout'; did"),
        (JOB_FILE + "- {id: A, run: x}\n", "checkpoint.yml:4:8: step id 'A' is there twice, first in line 3"),
        ("job: j\nsteps: []\n", "checkpoint.yml:2:8: there are no steps"),
        ("job: j\n", "checkpoint.yml:1:1: the job file has no steps"),
        (JOB_FILE + "---\n" + JOB_FILE, "checkpoint.yml:4:1: not valid YAML: expected a single document"),
        ("", "checkpoint.yml:1:1: the job file is empty"),
        (JOB_FILE + "- {id: b, run: x, needs: [c]}\n", "checkpoint.yml:4:27: step 'b' needs 'c', which is no step"),
        (JOB_FILE + "- {id: b, run: x, needs: b}\n", "checkpoint.yml:4:26: steps need each other in a circle: b -> b"),
    ],
)
def test_a_mistake_in_a_job_file_is_one_line_and_changes_nothing(
    console: Console, text: str, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write(console, text)
    monkeypatch.chdir(console.folder)
    before = tree(console.folder)
    assert cli.main(()) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert one_line(err)
    assert plain(err).startswith(f"checkpoint-run: error: {said}")
    assert tree(console.folder) == before


STEP = ("--step", "a:echo x >a")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            (),
            (
                "no steps; give --step ID:COMMAND or a job file (-f FILE, or checkpoint.yml or checkpoint.yaml here); "
                "'checkpoint-run init' writes a first one"
            ),
        ),
        (("--job", "j"), "no steps; give"),
        (("--job", "j", "--step", "a:x", *STEP), "--step 'a' is there twice; rename one"),
        (("--job", "j", "--step", "A:x", *STEP), "--step 'a' is there twice (as 'A'; upper and lower case count"),
        (("--job", "j", "--step", "build"), "--step 'build': write --step ID:COMMAND"),
        (("--job", "j", "--step", "build:"), "--step 'build:': write --step ID:COMMAND"),
        (("--job", "j", "--step", ":make"), "--step ':make': write --step ID:COMMAND"),
        (("--job", "j", "--step", "a\n\x1b[31mb:x"), r"--step 'a\n\x1b[31mb': the id is not valid"),
        (("--job", "j", "--step"), "--step needs a value: --step ID:COMMAND; see checkpoint-run --help"),
        (("-f", "none.yml"), "there is no job file none.yml; check its name and folder"),
        (("-f", "."), "cannot read the job file .: it is a folder; name the file in it"),
        (("-f", "x.yml", *STEP), "--file and --step exclude each other; put the step into the file"),
        (("-f", "x.yml", "--chain"), "--chain is for --step; write it into x.yml"),
        (("-f", "x.yml", "--shell", "sh"), "--shell is for --step; write it into x.yml"),
        (("--job", "a b", *STEP), "--job 'a b' is not valid; use letters"),
        (("--job", "", *STEP), "--job '' is not valid; use letters"),
        (("--job", "j", "--shell", "cat", *STEP), "--shell: unknown shell 'cat'"),
        (("--job", "j", "--shell", "no-such-program {0}", *STEP), "step 'a': the shell 'no-such-program' is not on"),
        (("--job", "j", "--shell", "'sh {0}", *STEP), "--shell: the shell ''sh {0}' has a quotation mark too few"),
        (
            ("--job", "j", *STEP, "--step-timeout", "aa:5"),
            "--step-timeout 'aa': no step has this id; did you mean 'a'?",
        ),
        (("--job", "j", *STEP, "--step-timeout", "a:x"), "--step-timeout 'a': 'x' is not a duration"),
        (("--job", "j", *STEP, "--step-artifact", "a"), "--step-artifact 'a': write --step-artifact ID:PATH"),
        (("--job", "j", *STEP, "--step-log", "zz:l"), "--step-log 'zz': no step has this id"),
        (("--job", "j", *STEP, "--timeout", "soon"), "--timeout: 'soon' is not a duration; write 90, 90s,"),
        (("--job", "j", *STEP, "--timeout", "-1"), "--timeout: '-1' is not a duration between"),
        (("--job", "j", *STEP, "--retry", "-1"), "--retry: '-1' is not a whole number from 0"),
        (("--job", "j", *STEP, "--retry", "1.5"), "--retry: '1.5' is not a whole number from 0"),
        (("--job", "j", *STEP, "--max-failures", "0"), "--max-failures: '0' is not a whole number from 1"),
        (("--job", "j", *STEP, "--wait-lock", "x"), "--wait-lock: 'x' is not a duration"),
        (("--job", "j", *STEP, "--timout", "5"), "unknown option '--timout'; did you mean '--timeout'?"),
        (("--job", "j", *STEP, "--time", "5"), "unknown option '--time'"),
        (("--job", "j", *STEP, "extra"), "unknown word 'extra'; to choose steps write --only extra"),
        (
            ("--job", "j", "--step", "a:'x'", "status"),
            """a verb comes first, before all options; write checkpoint-run status --job j --step 'a:'"'"'x'"'"''\n""",
        ),
        (
            ("--job", "plan", *STEP, "--timeout", "5", "plan"),
            "a verb comes first, before all options; write checkpoint-run plan --job plan --step",
        ),
        (
            ("--job", "j", "--step", "a:x\ny", "plan"),
            "a verb comes first, before all options; write checkpoint-run plan and then the options",
        ),
        (("help", "statsu"), "help 'statsu': no such verb; did you mean 'status'?; valid are run, plan"),
        (("statsu",), "unknown verb 'statsu'; did you mean 'status'?; valid are run, plan, graph, status"),
        (("--status", "--reset", "--job", "j"), "--status, --reset, --dry-run and the verbs exclude each other"),
        (("--status", "--dry-run", "--job", "j"), "--status, --reset, --dry-run and the verbs exclude each other"),
        (("plan", "--status", "--job", "j"), "--status, --reset, --dry-run and the verbs exclude each other"),
        (("reset", "--dry-run", "--job", "j"), "--status, --reset, --dry-run and the verbs exclude each other"),
        (("status", "--status", "--job", "j"), "--status, --reset, --dry-run and the verbs exclude each other"),
        (("plan", "--job", "j"), "no steps; give"),
        (("status",), "no steps; give"),
        (("reset",), "no steps; give"),
        (("-C", "none", "--job", "j", *STEP), "-C none: No such file or directory"),
        (("-C", "x.yml", "--job", "j", *STEP), "-C x.yml: Not a directory"),
    ],
    ids=lambda value: repr(value)[:70],
)
def test_a_mistake_on_the_command_line_is_one_line_and_changes_nothing(
    console: Console,
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    write(console, JOB_FILE, "x.yml")
    monkeypatch.chdir(console.folder)
    before = tree(console.folder)
    assert cli.main(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert one_line(err)
    assert plain(err).startswith(f"checkpoint-run: error: {said}")
    assert tree(console.folder) == before


@pytest.mark.parametrize("words", [("--job", "j"), ("--job", "j", "--step", "build"), ("-f", "none.yml")])
def test_a_mistake_ends_the_process_with_2(console: Console, words: tuple[str, ...]) -> None:
    refused = console.run(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert one_line(refused.stderr)
    assert list(console.folder.iterdir()) == []


def test_an_unknown_key_ends_the_process_with_2(console: Console) -> None:
    write(console, "job: j\nsteps:\n- id: a\n  rum: touch ran\n")
    before = tree(console.folder)
    refused = console.run()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "checkpoint-run: error CPR203: checkpoint.yml:4:3: step 'a': unknown key 'rum'; did you mean 'run'?\n"
    )
    assert tree(console.folder) == before


def test_a_folder_that_is_gone_is_one_line(console: Console) -> None:
    ended = console.script("mkdir gone && cd gone && rmdir ../gone && $CR --job j --step a:true")
    assert ended.returncode == 2
    assert one_line(ended.stderr)
    assert "the current folder cannot be used: No such file or directory; give -C DIR" in ended.stderr


# ---------------------------------------------------------------------------------------------- state


def newer(console: Console) -> None:
    text = json.dumps({"format": 99, "job": "j", "steps": "in a way we do not know"})
    (console.folder / ".checkpoint-run-j.json").write_text(text)


def unreadable(console: Console) -> None:
    (console.folder / ".checkpoint-run-j.json").mkdir()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (newer, ".checkpoint-run-j.json was written by a newer checkpoint-run (format 99, this one knows 1); upgrade"),
        (unreadable, ".checkpoint-run-j.json is no file; remove it, or choose another --state-dir"),
    ],
    ids=["newer", "unreadable"],
)
def test_a_state_that_cannot_be_used_is_one_line_and_stays_untouched(
    console: Console, make: Callable[[Console], None], said: str
) -> None:
    make(console)
    before = tree(console.folder)
    for words in (("run",), ("run", "--force"), ("plan",), ("status",)):
        refused = console.run(*words, "--job", "j", *STEP)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert one_line(refused.stderr)
        assert plain(refused.stderr).startswith(f"checkpoint-run: error: {said}")
    assert tree(console.folder) == before


@pytest.mark.slow
def test_an_emptied_state_file_is_put_aside_with_one_line_and_costs_nothing(console: Console) -> None:
    words = ("--job", "j", "--step", "a:echo x >>a")
    console.run(*words)
    (console.folder / ".checkpoint-run-j.json").write_bytes(b"")
    second = console.run(*words)
    assert second.returncode == 0
    assert second.stderr.count("warning") == 1
    assert ".checkpoint-run-j.json is damaged" in second.stderr
    assert (console.folder / ".checkpoint-run-j.json.damaged-1").read_bytes() == b""
    third = console.run(*words)
    assert "warning" not in third.stderr
    assert console.count("a") == 1


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/self/none", "x" * 300])
def test_a_state_dir_that_cannot_be_ends_with_5_and_one_line(console: Console, place: str) -> None:
    (console.folder / "file").write_text("")
    before = tree(console.folder)
    ended = console.run("--job", "j", "--state-dir", place, *STEP)
    assert (ended.returncode, ended.stdout) == (5, "")
    assert one_line(ended.stderr)
    assert ended.stderr.startswith(f"checkpoint-run: error CPR405: cannot make the state dir {place}: ")
    assert tree(console.folder) == before


@pytest.mark.parametrize("verb", ["status", "plan", "reset"])
def test_a_view_of_a_state_dir_that_cannot_be_is_one_line(console: Console, verb: str) -> None:
    refused = console.run(verb, "--job", "j", "--state-dir", "x" * 300, *STEP)
    assert refused.returncode == 2
    assert one_line(refused.stderr)


def test_a_state_that_cannot_be_written_ends_with_5_before_anything_runs(console: Console) -> None:
    ended = console.script("ulimit -f 0; trap '' XFSZ; exec $CR --job j --step 'a:mkdir ran'")
    assert ended.returncode == 5
    assert one_line(ended.stderr)
    assert "cannot write the state in .: File too large; choose another --state-dir" in ended.stderr
    assert not (console.folder / "ran").exists()


# ---------------------------------------------------------------------------------------------- one at a time

HOLDS = "a:echo x >>a; echo up >up; cat go"

WAITER = """
import sys, time
real = time.sleep
def sleep(seconds):
    print("waits", flush=True)
    real(seconds)
time.sleep = sleep
from checkpoint_action.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_second_run_is_refused_at_once_or_waits_when_asked(console: Console) -> None:
    up, go = console.fifo("up"), console.fifo("go")
    words = ("--job", "j", "--step", HOLDS)
    with console.start(*words) as first:
        up.read_text()
        refused = console.run(*words)
        assert refused.returncode == 4
        assert one_line(refused.stderr)
        assert f"another run holds this job (process {first.pid})" in refused.stderr
        # The state may be looked at meanwhile; forgetting it is refused; another job is another job.
        assert console.run("status", "--job", "j").stdout.split()[2:4] == ["a", "running"]
        assert console.run("reset", "--job", "j").returncode == 4
        assert console.run("--job", "k", "--step", "a:true").returncode == 0
        assert console.run(*words, "--wait-lock", "0.2").returncode == 4
        with subprocess.Popen(
            [sys.executable, "-c", WAITER, *words, "--wait-lock"],
            cwd=console.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "waits\n"
            assert second.poll() is None
            go.write_text("")
            assert first.wait() == 0
            _, said = second.communicate()
        first.communicate()
    assert second.returncode == 0
    assert "a: skipped (done)" in said
    assert console.count("a") == 1
    assert console.run(*words).returncode == 0


# ---------------------------------------------------------------------------------------------- stops

STOPPABLE = "trap 'echo got >>trapped; exit 0' INT TERM HUP; echo up >up; sleep 600 & wait"


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_us_alone_reaches_the_step_once_and_is_saved(
    console: Console, signum: signal.Signals, code: int
) -> None:
    up = console.fifo("up")
    words = ("--job", "j", "--step", "a:echo x >>a", "--step", f"b:{STOPPABLE}", "--step", "c:echo x >>c")
    with console.start(*words) as process:
        up.read_text()
        process.send_signal(signum)
        _, said = process.communicate()
    assert process.returncode == code
    assert console.count("trapped") == 1
    assert console.statuses("j") == {"a": "done", "b": "interrupted"}
    assert "stopped; what is done is saved, run the same command again to go on" in said
    planned = json.loads(console.run("plan", *words, "--json").stdout)["steps"]
    assert [(step["action"], step["reason"]) for step in planned] == [
        ("skip", "done"),
        ("run", "interrupted-before"),
        ("run", "never-ran"),
    ]
    assert (console.count("a"), console.count("c")) == (1, 0)


def test_a_signal_while_waiting_for_the_next_try_stops_at_once(console: Console) -> None:
    words = ("--job", "j", "--json", "--retry", "1", "--backoff", "1h", "--step", "a:exit 3")
    with console.start(*words) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["event"] == "step-retried":
                break
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 143
    assert console.state("j")["a"]["exit_code"] == 3


def test_nohup_keeps_a_hangup_ignored(console: Console) -> None:
    up, go = console.fifo("up"), console.fifo("go")
    words = ("--job", "j", "--step", "a:echo up >up; cat go; echo x >>a")
    with console.start(*words, prefix=("nohup",)) as process:
        up.read_text()
        process.send_signal(signal.SIGHUP)
        go.write_text("")
        process.communicate()
    assert process.returncode == 0
    assert console.statuses("j") == {"a": "done"}
    assert console.count("a") == 1


# ---------------------------------------------------------------------------------------------- streams


def test_a_step_gets_an_empty_input_even_when_ours_is_open_and_silent(console: Console) -> None:
    read_end, write_end = os.pipe()
    try:
        ended = subprocess.run(
            [PROGRAM, "--job", "j", "--step", "a:cat >f; echo ok"],
            cwd=console.folder,
            env=environment(),
            stdin=read_end,
            capture_output=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(read_end)
        os.close(write_end)
    assert (ended.returncode, ended.stdout) == (0, b"ok\n")
    assert (console.folder / "f").read_bytes() == b""


@pytest.mark.parametrize("redirect", ["", "2>&1", "--json", "--json 2>&1"])
def test_a_reader_that_goes_away_does_not_end_the_run(console: Console, redirect: str) -> None:
    ended = console.script(
        f"$CR --job j --step 'a:seq 100000; seq 100000 >&2' --step 'b:echo x >>b' {redirect} | head -n 1; "
        "echo ${PIPESTATUS[0]}"
    )
    assert ended.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in ended.stderr
    assert "Broken pipe" not in ended.stderr
    assert console.statuses("j") == {"a": "done", "b": "done"}
    assert console.count("b") == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(console: Console, closed: str) -> None:
    # A closed descriptor's number must not go to a file of ours, which would then get the steps' output.
    ended = console.script(f"$CR --job j --step 'a:echo out; echo err >&2' {closed}; echo code $? >code")
    assert "Traceback" not in ended.stderr
    assert (console.folder / "code").read_text() == "code 0\n"
    assert console.statuses("j") == {"a": "done"}
    for ending in ("json", "journal"):
        assert not re.search(r"^(out|err)$", (console.folder / f".checkpoint-run-j.{ending}").read_text(), re.MULTILINE)
    assert re.fullmatch(r" process \d+", (console.folder / ".checkpoint-run-j.lock").read_text())
    viewed = console.script(f"$CR status --job j {closed}; $CR plan --job j {closed}; echo $? >code")
    assert "Traceback" not in viewed.stderr
    assert (console.folder / "code").read_text() == "2\n"


@pytest.mark.skipif(sys.platform != "linux", reason="sets the size of a pipe")
def test_output_to_a_pipe_that_does_not_block_arrives_whole(console: Console) -> None:
    import fcntl  # noqa: PLC0415  # not on Windows

    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(write_end, False)
    with console.start("--job", "j", "--step", "a:seq 100000", stdout=write_end) as process:
        os.close(write_end)
        with os.fdopen(read_end, "rb") as reader:
            data = reader.read()
        process.communicate()
    assert process.returncode == 0
    assert data == "".join(f"{number}\n" for number in range(1, 100001)).encode()


def test_a_terminal_without_unicode_gets_lines_it_can_show(console: Console) -> None:
    words = ("--job", "j", "--step")
    console.run(*words, "a:true")
    shown = console.run("plan", *words, "a:true ü", env={"PYTHONIOENCODING": "ascii"})
    assert shown.stdout == "a  run      command-changed: true -> true ?\n"


def test_what_would_drive_a_terminal_is_shown_by_its_escape(console: Console) -> None:
    console.run("--job", "j", "--step", "a:true")
    shown = console.run("plan", "--job", "j", "--step", "a:true \x1b]0;owned\x07")
    assert shown.stdout == "a  run      command-changed: true → true \\x1b]0;owned\\x07\n"


# ---------------------------------------------------------------------------------------------- what is loaded

LISTS_MODULES = """
import json, sys
sys.path[:0] = [sys.argv[1]]
sys.path.append(sys.argv[2])
from checkpoint_action.cli import main
code = main(sys.argv[4:])
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
with open(sys.argv[3], "w") as file:
    json.dump([code, sorted(sys.modules), sorted(foreign)], file)
"""
FULL_JOB = (
    *(
        "--job",
        "j",
        "--retry",
        "1",
        "--backoff",
        "0",
        "--continue-on-error",
        "--logs-dir",
        "logs",
        "--step",
        "a:echo x >a",
    ),
    *("--step-artifact", "a:a", "--step", "b:exit 1", "--step", "c:sleep 600", "--step-timeout", "c:0.1"),
    *("--step", "d:setsid sleep 600 & wait", "--step-timeout", "d:0.2"),
)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(FULL_JOB, 1, marks=pytest.mark.slow),
        (("--job", "j", "--json", "--step", "a:true"), 0),
        (("plan", "--job", "j", "--step", "a:true"), 0),
        (("status", "--job", "j", "--json"), 0),
        (("reset", "--job", "j"), 0),
        (("reset", "a", "--job", "j", "--step", "a:true"), 0),
        (("accept", "a", "--job", "j", "--step", "a:true"), 0),
        (("--only", "a", "--job", "j", "--step", "a:true"), 0),
        (("--job", "j", "--step", "a"), 2),
    ],
    ids=["run", "json", "plan", "status", "reset", "reset-id", "accept", "only", "mistake"],
)
def test_flags_and_local_state_need_the_standard_library_alone(
    console: Console, words: tuple[str, ...], code: int
) -> None:
    # No site: what is outside the standard library is importable only by the path given, and would be listed.
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LISTS_MODULES, str(REPOSITORY), SITE_PACKAGES, "modules.json", *words],
        cwd=console.folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    got, modules, foreign = json.loads((console.folder / "modules.json").read_text())
    assert got == code
    assert "checkpoint_action.cli" in modules
    assert foreign in (["checkpoint_action"], ["__main__", "checkpoint_action"])
    assert not {"yaml", "urllib3", "psutil", "backports", "zstandard", "compression.zstd", "ssl", "http.client"} & {
        *modules
    }
    assert not [name for name in modules if name.startswith("checkpoint_action.toolkit")]


# ---------------------------------------------------------------------------------------------- bugs


def broken(_argv: object) -> None:
    raise RuntimeError("first line\nsecond line")


def test_a_bug_ends_with_70_one_line_and_a_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "parse_arguments", broken)
    monkeypatch.setattr(tempfile, "mkstemp", partial(tempfile.mkstemp, dir=tmp_path))
    assert cli.main(["--job", "s3cret"]) == 70
    out, err = capfd.readouterr()
    (log,) = tmp_path.iterdir()
    assert out == ""
    assert one_line(err)
    assert err == f"checkpoint-run: error CPR901: this is a bug: second line; please report it with the file {log}\n"
    text = log.read_text()
    assert text.startswith(f"checkpoint-run {__version__}, Python ")
    assert "Traceback" in text
    assert "in broken" in text
    # Arguments may hold what is nobody's business.
    assert "s3cret" not in text


def test_a_bug_is_told_whole_where_no_log_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "parse_arguments", broken)
    monkeypatch.setattr(tempfile, "mkstemp", partial(tempfile.mkstemp, dir=tmp_path / "none"))
    assert cli.main([]) == 70
    err = capfd.readouterr().err
    assert err.splitlines()[0] == (
        "checkpoint-run: error CPR901: this is a bug: second line; please report it with what follows"
    )
    assert "in broken" in err


def test_ctrl_c_before_a_job_runs_is_130_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_argv: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse_arguments", interrupted)
    assert cli.main([]) == 130
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------------------------------------- the whole table


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--job", "j", "--step", "a:true"), 0),
        (("--job", "j", "--step", "a:exit 77"), 1),
        (("--job", "j", "--step", "a:kill -TERM $$"), 1),
        (("--job", "j", "--step", "a:no-such-program-anywhere"), 1),
        (("--job", "j", "--step", "a:true", "--step-artifact", "a:none"), 1),
        (("--job", "j", "--timeout", "0.1", "--step", "a:sleep 600"), 1),
        (("--job", "j"), 2),
        (("--job", "j", "--state-dir", "/dev/null", "--step", "a:true"), 5),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_each_end_has_its_documented_exit_code(console: Console, words: tuple[str, ...], code: int) -> None:
    assert console.run(*words).returncode == code


def test_the_readme_lists_every_exit_code() -> None:
    text = (REPOSITORY / "README.md").read_text("utf-8")
    listed = re.findall(r"`([0-9]+(?:\+n)?)`", text[text.index("Exit codes:") :].split("\n\n")[0])
    assert {"0", "1", "2", "4", "5", "70", "128+n"} <= set(listed) <= {"0", "1", "2", "4", "5", "70", "75", "128+n"}
    assert len(listed) == len(set(listed))
