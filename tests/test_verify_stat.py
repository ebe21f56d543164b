"""`--verify stat`: what has not changed is not read, and no change is missed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.digest_index import read_index, write_index
from tests.console import Console, environment, tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are shell scripts")

INDEX = ".checkpoint-run-demo.index"
JOB = """\
job: demo
shell: sh
steps:
  - {id: make, inputs: ["src/**"], run: "cat src/* > out; echo ran >> made", outputs: [out]}
  - {id: use, inputs: [src/one], run: "cat out > copy", outputs: [copy]}
"""
OPENED = """
import json, os, sys
from checkpoint_action.cli import main

opened = []
here = os.path.join(os.getcwd(), "")

def note(event, words):
    if event == "open" and isinstance(words[0], str):
        path = os.path.join(here, words[0])
        if path.startswith(here) and ".checkpoint-run-" not in path:
            opened.append(path[len(here):])

sys.addaudithook(note)
code = main(sys.argv[1:])
print(json.dumps([code, sorted(opened)]), file=sys.stderr)
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "checkpoint.yml").write_text(JOB)
    (tmp_path / "src").mkdir()
    for name in ("one", "two"):
        (tmp_path / "src" / name).write_text(name)
    return Console(tmp_path)


def opened(console: Console, *words: str) -> list[str]:
    """The files of the folder, apart from our own, that the program itself opens; each as often as it does."""
    done = subprocess.run(
        [sys.executable, "-c", OPENED, *words],
        cwd=console.folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    assert "checkpoint.yml" in names  # so what else it opened would have been seen as well
    return [name for name in names if name != "checkpoint.yml" and (console.folder / name).is_file()]


def plan(console: Console, *words: str) -> dict[str, str]:
    """What would be done with each step, and why: the reasons by id."""
    done = console.run("plan", "--json", *words)
    assert done.returncode == 0, done.stderr
    return {step["id"]: step["reason"] for step in json.loads(done.stdout)["steps"]}


DONE = {"make": "done", "use": "done"}


def test_nothing_is_read_when_nothing_has_changed(console: Console) -> None:
    assert console.run("--verify", "stat").returncode == 0
    assert opened(console, "plan", "--verify", "stat") == []
    assert plan(console, "--verify", "stat") == DONE
    assert opened(console, "--verify", "stat", "--no-logs") == []
    assert console.count("made") == 1


@pytest.mark.slow
def test_full_reads_everything_and_each_file_once(console: Console) -> None:
    console.run("--verify", "stat")
    time.sleep(2.2)  # until no file counts as changed just now
    everything = ["copy", "out", "src/one", "src/two"]
    assert opened(console, "plan") == everything
    assert opened(console, "plan", "--verify", "full") == everything
    assert opened(console, "--verify", "full") == everything


def test_only_what_has_changed_is_read(console: Console) -> None:
    console.run("--verify", "stat")
    (console.folder / "src" / "two").write_text("TWO")
    assert set(opened(console, "plan", "--verify", "stat")) == {"src/two"}


def test_an_edit_of_the_same_size_is_noticed(console: Console) -> None:
    console.run("--verify", "stat")
    (console.folder / "src" / "two").write_text("TWO")
    assert plan(console, "--verify", "stat")["make"] == "inputs-changed"
    (console.folder / "src" / "two").write_text("two")
    (console.folder / "copy").write_text("XXXXXX")
    assert plan(console, "--verify", "stat") == {"make": "done", "use": "output-changed"}


def test_an_edit_that_puts_the_time_back_is_noticed(console: Console) -> None:
    console.run("--verify", "stat")
    file = console.folder / "src" / "two"
    before = file.stat()
    file.write_text("TWO")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert plan(console, "--verify", "stat")["make"] == "inputs-changed"


def test_a_file_in_the_place_of_another_is_noticed(console: Console) -> None:
    console.run("--verify", "stat")
    (console.folder / "other").write_text("TWO")
    (console.folder / "other").replace(console.folder / "src" / "two")
    assert plan(console, "--verify", "stat")["make"] == "inputs-changed"


@pytest.mark.slow
def test_an_edit_right_after_a_run_or_in_it_is_never_missed(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: demo\nshell: sh\nsteps:\n"
        '  - {id: make, inputs: [src/two], run: "cat src/two > out; printf XXX > src/three", outputs: [out]}\n'
        '  - {id: use, inputs: [src/three], needs: [], run: "cp src/three seen; printf YYY > src/three"}\n'
    )
    file = console.folder / "src" / "two"
    for number in range(15):
        file.write_text(f"{2 * number:03d}")
        assert console.run("--verify", "stat").returncode == 0
        file.write_text(f"{2 * number + 1:03d}")
        planned = plan(console, "--verify", "stat")
        assert planned["make"] == "inputs-changed"
        assert planned == plan(console, "--verify", "full")
        assert console.run("--verify", "stat").returncode == 0
        assert (console.folder / "out").read_text() == f"{2 * number + 1:03d}"


def lie(console: Console) -> None:
    """Have the index tell something else of each file than what is in it."""
    path = console.folder / INDEX
    known = read_index(path)
    assert len(known) == 4
    write_index(path, {name: said[:-64] + "0" * 64 for name, said in known.items()})


def test_full_believes_no_index(console: Console) -> None:
    console.run("--verify", "stat")
    lie(console)
    assert plan(console, "--verify", "stat")["make"] == "inputs-changed"
    assert plan(console, "--verify", "full") == DONE
    assert plan(console) == DONE
    assert console.run().returncode == 0
    assert console.count("made") == 1


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 22, 30, 100, -1])
def test_a_damaged_index_is_as_none_and_made_anew(console: Console, at: int) -> None:
    console.run("--verify", "stat")
    lie(console)
    index = console.folder / INDEX
    data = bytearray(index.read_bytes())
    data[at] ^= 1
    index.write_bytes(data)
    assert plan(console, "--verify", "stat") == DONE
    assert index.read_bytes() == data
    done = console.run("--verify", "stat")
    assert (done.returncode, "index" in done.stderr) == (0, False)
    assert opened(console, "plan", "--verify", "stat") == []


def test_only_a_run_that_is_told_to_writes_it(console: Console) -> None:
    assert console.run().returncode == 0
    assert not (console.folder / INDEX).exists()
    console.run("--verify", "stat")
    assert stat.S_IMODE((console.folder / INDEX).stat().st_mode) == 0o600
    (console.folder / "src" / "two").write_text("TWO")
    before = tree(console.folder)
    for words in (["plan"], ["--dry-run"], ["status"], ["plan", "--json"]):
        assert console.run(*words, "--verify", "stat").returncode == 0
    assert tree(console.folder) == before
    console.run()
    assert tree(console.folder)[INDEX] == before[INDEX]


def test_a_run_that_fails_keeps_what_it_knows(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(JOB.replace("cat out > copy", "exit 3"))
    assert console.run("--verify", "stat").returncode == 1
    assert set(opened(console, "plan", "--verify", "stat")) == set()
    assert {os.path.basename(path) for path in read_index(console.folder / INDEX)} == {"one", "two", "out"}


def test_a_run_that_is_stopped_keeps_what_it_knows(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(JOB.replace("cat out > copy", "echo > begun; exec sleep 60"))
    console.fifo("begun")
    process = console.start("--verify", "stat")
    (console.folder / "begun").read_text()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert {os.path.basename(path) for path in read_index(console.folder / INDEX)} == {"one", "two", "out"}


def test_what_a_step_restarted_from_elsewhere_is_not_lost(console: Console) -> None:
    console.run("--verify", "stat")
    console.run("--verify", "stat", "--only", "use")
    assert opened(console, "plan", "--verify", "stat") == []


def test_reset_and_force_forget_it(console: Console) -> None:
    console.run("--verify", "stat")
    lie(console)
    assert console.run("--force", "--verify", "stat").returncode == 0
    assert plan(console, "--verify", "stat") == DONE
    assert console.run("reset").returncode == 0
    assert not (console.folder / INDEX).exists()


def test_it_is_no_place_for_a_log(console: Console) -> None:
    done = console.run("--step-log", f"make:{INDEX}")
    assert (done.returncode, "is a file of the job's state" in done.stderr) == (2, True)


def test_any_other_word_is_refused(console: Console) -> None:
    done = console.run("--verify", "mtime")
    assert done.returncode == 2
    assert "full" in done.stderr
    assert "stat" in done.stderr


def test_an_index_that_cannot_be_written_costs_a_line_and_nothing_else(console: Console) -> None:
    (console.folder / INDEX).mkdir()
    (console.folder / INDEX / "x").touch()
    done = console.run("--verify", "stat")
    assert done.returncode == 0
    assert "warning: cannot write" in done.stderr
    assert plan(console, "--verify", "stat") == DONE
