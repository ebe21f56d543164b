"""What an unfinished try leaves is there for the next one, and is never taken for an output."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, lines_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are for sh"),
]


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def job_file(console: Console, text: str) -> None:
    (console.folder / "checkpoint.yml").write_text("job: job\n" + text)


COUNTING = """\
steps:
- id: count
  partial: [part]
  outputs: [whole]
  retry: {retry}
  run: |
    echo line >> part
    echo kept >> "$CHECKPOINT_DIR/kept"
    cat "$CHECKPOINT_DIR/kept" | wc -l >> seen
    test "$(cat part | wc -l)" -ge 3
    mv part whole
"""


def test_tries_of_one_run_go_on_from_each_other(console: Console) -> None:
    job_file(console, COUNTING.replace("{retry}", "{max: 2, backoff: 0}"))
    assert console.run().returncode == 0
    assert (console.folder / "whole").read_text() == "line\n" * 3
    assert (console.folder / "seen").read_text().split() == ["1", "2", "3"]


def test_runs_go_on_from_each_other_and_a_done_step_keeps_no_folder(console: Console) -> None:
    job_file(console, COUNTING.replace("{retry}", "0"))
    assert [console.run().returncode for _ in range(3)] == [1, 1, 0]
    assert (console.folder / "seen").read_text().split() == ["1", "2", "3"]
    assert not (console.folder / ".checkpoint-run-job.progress").exists()


@pytest.mark.parametrize("ending", ["fail", "timeout", "interrupt", "kill"])
def test_the_folder_survives_every_way_a_try_can_end(console: Console, ending: str) -> None:
    console.fifo("ready")
    hang = {"fail": "exit 1", "timeout": "sleep 100"}.get(ending, "echo > ready; sleep 100")
    job_file(
        console,
        f"""\
steps:
- id: a
  timeout: {"1" if ending == "timeout" else "1h"}
  run: |
    test ! -e "$CHECKPOINT_DIR/here" || exit 0
    touch "$CHECKPOINT_DIR/here"
    {hang}
""",
    )
    process = console.start()
    if ending in {"interrupt", "kill"}:
        (console.folder / "ready").read_text()
        process.send_signal(signal.SIGINT if ending == "interrupt" else signal.SIGKILL)
    process.communicate(timeout=300)
    assert process.returncode != 0
    assert console.run().returncode == 0


def test_a_partial_path_is_no_output(console: Console) -> None:
    job_file(console, "steps:\n- {id: a, partial: [part], run: 'echo half > part'}\n")
    assert console.run().returncode == 0
    (console.folder / "part").unlink()
    assert json.loads(console.run("plan", "--json").stdout)["steps"][0]["action"] == "skip"


def test_each_step_has_a_folder_of_its_own(console: Console) -> None:
    words = ["--job=j", "--continue-on-error"]
    for name in ("a", "A.b", "nul", "con.txt"):
        words += ["--step", f'{name}:basename "$CHECKPOINT_DIR" >> names; touch "$CHECKPOINT_DIR/x"; exit 1']
    assert console.run(*words).returncode == 1
    assert len(set((console.folder / "names").read_text().split())) == 4


def test_a_step_with_a_job_of_other_steps_keeps_its_folder(console: Console) -> None:
    fails = 'a:ls "$CHECKPOINT_DIR"; touch "$CHECKPOINT_DIR/x"; exit 1'
    assert console.run("--job=j", "--step", fails).returncode == 1
    assert console.run("--job=j", "--step", "b:true").returncode == 0
    assert "x\n" in console.run("--job=j", "--step", fails).stdout


@pytest.mark.parametrize("words", [["reset"], ["--force"]])
def test_a_fresh_start_is_one_without_progress(console: Console, words: list[str]) -> None:
    fails = 'a:ls "$CHECKPOINT_DIR"; touch "$CHECKPOINT_DIR/x"; exit 1'
    assert console.run("--job=j", "--step", fails).returncode == 1
    if words == ["reset"]:
        console.run("reset", "--job=j")
        words = []
    assert "x\n" not in console.run("--job=j", *words, "--step", fails).stdout


def test_save_makes_progress_durable_and_says_what(console: Console) -> None:
    job_file(
        console,
        """\
steps:
- id: a
  partial: [part]
  run: |
    echo 12345 > part
    echo 123 > "$CHECKPOINT_DIR/x"
    checkpoint-run save 2> said
""",
    )
    done = console.run()
    assert done.returncode == 0, done.stderr
    assert (console.folder / "said").read_text() == "checkpoint-run: 2 paths with 10 bytes are on this disk\n"


@pytest.mark.skipif(sys.platform != "linux", reason="strace")
def test_save_syncs_each_file_before_it_answers(console: Console) -> None:
    job_file(
        console,
        "steps:\n- {id: a, partial: [part/], run: 'mkdir part; echo 1 > part/x; checkpoint-run save; echo after'}\n",
    )
    trace = console.folder / "trace"
    process = console.start(prefix=("strace", "-f", "-y", "-e", "trace=fsync,write", "-o", str(trace)))
    process.communicate(timeout=300)
    assert process.returncode == 0
    lines = trace.read_text().splitlines()
    synced = [number for number, line in enumerate(lines) if "fsync(" in line and "/part/x>" in line]
    after = [number for number, line in enumerate(lines) if "write(1" in line and '"after\\n"' in line]
    assert synced
    assert after
    assert synced[0] < after[0]


def test_save_with_nothing_to_save_says_so(console: Console) -> None:
    done = console.run("--job=j", "--step", "a:checkpoint-run save")
    assert done.returncode == 0
    assert "there is nothing to save" in done.stdout + done.stderr


def test_save_outside_a_step_is_a_mistake(console: Console) -> None:
    done = console.run("save")
    assert done.returncode == 2
    assert done.stderr == "checkpoint-run: error CPR113: save is for a running step: call it from the step's command\n"


def test_save_after_the_run_is_over_is_a_mistake_and_does_not_wait(console: Console) -> None:
    assert console.run("--job=j", "--step", 'a:echo "$CHECKPOINT_SAVE" > where').returncode == 0
    done = console.run("save", env={"CHECKPOINT_SAVE": (console.folder / "where").read_text().strip()})
    assert done.returncode == 2
    assert "the run that started this step is over" in done.stderr


def test_save_from_a_background_process_of_an_ended_step_is_refused(console: Console) -> None:
    console.fifo("go")
    words = ["--job=j", "--step", "a:(read x < go; checkpoint-run save > said 2>&1; echo > go) > /dev/null 2>&1 &"]
    done = console.run(*words, "--step", "b:echo > go; read x < go; cat said")
    assert done.returncode == 0
    assert "the step that asks for this is over" in done.stdout


def test_steps_that_run_at_once_save_each_their_own(console: Console) -> None:
    words = ["--job=j", "-j", "4", "--json"]
    for number in range(4):
        words += [
            "--step",
            f'{number}:printf {"x" * (number + 1)} > "$CHECKPOINT_DIR/x"; checkpoint-run save 2> said.{number}',
        ]
    assert lines_of(console.run(*words).stdout)[-1]["exit-code"] == 0
    for number in range(4):
        assert f"1 paths with {number + 1} bytes" in (console.folder / f"said.{number}").read_text()
