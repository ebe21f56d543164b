"""What a run keeps for `plan`: given again while nothing has changed, and never another answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.recall import recalled as reply_to
from tests.console import Console, environment, tree
from tests.done_job import ANEW, KEPT, STAT, inside, project, said

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept there"),
]


def recalled(words: tuple[str, ...], env: Mapping[str, str]) -> str | None:
    """What is recalled of a plan."""
    reply = reply_to(words, env)
    assert reply is None or (reply.stream, reply.lock) == (1, None)
    return None if reply is None else reply.text


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return project(tmp_path)


def test_the_answer_is_given_again_without_loading_what_decides(console: Console) -> None:
    for words in (STAT, (*STAT, "--json")):
        script = (
            "import sys, atexit\n"
            "from checkpoint_action.__main__ import entry\n"
            "atexit.register(lambda: print('yaml' in sys.modules, 'argparse' in sys.modules, file=sys.stderr))\n"
            f"sys.argv[1:] = {list(words)!r}\n"
            "entry()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=console.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "False False\n")
        assert done.stdout == console.run(*words, "--quiet").stdout
    assert [step["action"] for step in json.loads(done.stdout)["steps"]] == ["skip"] * 3


@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("plan", "--json"),
        ("plan", "--verify", "full"),
        ("plan", "--json", "--verify=stat"),
        (*STAT, "--file", "checkpoint.yml"),
        (*STAT, "-f", "checkpoint.yml", "--state-dir", "."),
    ],
)
def test_other_words_for_the_same_question_get_the_answer(console: Console, words: tuple[str, ...]) -> None:
    with inside(console.folder):
        assert recalled(words, environment()) == said(*words, "--quiet")


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("graph",),
        ("plan", "--verify"),
        ("plan", "--verify="),
        ("plan", "--verify", "some"),
        (*STAT, "--verify", "stat"),
        ("--verify", "stat", "plan"),
        (*STAT, "--only", "make"),
        (*STAT, "--state-dir", "src"),
        (*STAT, "--job", "other"),
        (*STAT, "--job", "demo"),
        (*STAT, "-f", "other.yml"),
        (*STAT, "-f", "checkpoint.yml", "-f", "checkpoint.yml"),
        (*STAT, "word"),
        (*STAT, "--file"),
    ],
)
def test_any_other_question_is_decided_on(console: Console, words: tuple[str, ...]) -> None:
    with inside(console.folder):
        assert recalled(words, environment()) is None


def test_only_a_run_writes_it_and_reset_removes_it(tmp_path: Path) -> None:
    console = project(tmp_path)
    assert (tmp_path / KEPT).stat().st_mode & 0o777 == 0o600
    (tmp_path / KEPT).unlink()
    before = tree(tmp_path)
    assert console.run(*STAT).returncode == 0
    assert console.run("plan").returncode == 0
    assert tree(tmp_path).keys() == before.keys()
    console.run("--verify", "stat")
    assert (tmp_path / KEPT).exists()
    assert console.run("reset").returncode == 0
    assert not (tmp_path / KEPT).exists()


def test_what_stat_is_trusted_with_comes_from_a_run_that_trusts_it(console: Console) -> None:
    (console.folder / KEPT).unlink()
    assert console.run("--no-logs").returncode == 0
    with inside(console.folder):
        assert recalled(("plan",), environment()) == said("plan", "--quiet")
        assert recalled(STAT, environment()) is None


def test_a_run_that_does_nothing_leaves_it_as_it_is(console: Console) -> None:
    before = (console.folder / KEPT).stat()
    assert console.run("--verify", "stat", "--no-logs").returncode == 0
    assert (console.folder / KEPT).stat().st_ino == before.st_ino


def test_a_change_is_seen_and_the_next_run_keeps_the_answer_anew(console: Console) -> None:
    (console.folder / "one").write_text("ONE      ")
    assert "use   run      inputs-changed" in console.run(*STAT).stdout
    assert console.run("--verify", "stat", "--no-logs").returncode == 0
    with inside(console.folder):
        assert recalled(STAT, environment()) == said(*ANEW)


@pytest.mark.parametrize(
    "steps",
    [
        "- {id: a, run: 'true', always: true}",
        "- {id: a, inputs: [../*/one], run: 'true'}",
        "- {id: a, inputs: [missing], run: 'true'}",
        "- {id: a, inputs: [link], run: 'true'}",
        "- {id: a, inputs: ['linked/**'], run: 'true'}",
        "- {id: a, inputs: ['made*'], run: 'true'}\n- {id: b, run: 'echo >> one', inputs: [one], needs: []}",
    ],
)
def test_nothing_is_kept_of_a_job_that_is_not_done_or_depends_on_more(tmp_path: Path, steps: str) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("1")
    (tmp_path / "link").symlink_to("one")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "checkpoint.yml").write_text(f"job: demo\nshell: sh\nsteps:\n{steps}\n")
    assert Console(tmp_path).run("--verify", "stat").returncode == 0
    assert not (tmp_path / KEPT).exists()


def test_a_run_that_is_on_is_told_of(console: Console) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (console.folder / ".checkpoint-run-demo.lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = console.run(*STAT)
    assert "a run of this job is going on" in done.stderr


def test_a_variable_of_ours_may_say_anything(console: Console) -> None:
    with inside(console.folder):
        assert recalled(STAT, environment()) is not None
        assert recalled(STAT, {**environment(), "CHECKPOINT_STORE": "file:///nowhere"}) is None
        assert recalled(STAT, {**environment(), "MARK": ""}) is None
        assert recalled(STAT, {**environment(), "GITHUB_RUN_ID": "1"}) is None


def test_an_answer_nobody_can_take_is_an_error_as_ever(console: Console) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with full.open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "checkpoint_action", *STAT],
            cwd=console.folder,
            env=environment(),
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert "cannot write the answer" in done.stderr
    closed = console.script('"$CR" plan --verify stat >&-; echo $?')
    assert closed.stdout == "0\n"


@pytest.mark.parametrize("step", [1, 7])
def test_a_damaged_file_is_as_none(console: Console, step: int) -> None:
    path = console.folder / KEPT
    whole = path.read_bytes()
    with inside(console.folder):
        right = recalled(STAT, environment())
        for at in range(0, len(whole), max(1, len(whole) * step // 60)):
            for damaged in (
                whole[:at],
                whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
                whole[:at] + whole[at + step :],
            ):
                path.write_bytes(damaged)
                assert recalled(STAT, environment()) is None
        path.write_bytes(whole)
        assert recalled(STAT, environment()) == right
        path.unlink()
        path.mkdir()
        assert recalled(STAT, environment()) is None
        path.rmdir()
        os.mkfifo(path)
        assert recalled(STAT, environment()) is None
