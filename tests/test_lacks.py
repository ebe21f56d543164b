"""Too little memory, or no more threads: one line, 5, and the next run goes on; at whatever point it strikes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from checkpoint_action import __main__ as program
from checkpoint_action import cli
from checkpoint_action.error_texts import PAGES
from checkpoint_action.errors import ExhaustedError, Kind, StateError, StoreError, lack_behind
from checkpoint_action.model import Status
from checkpoint_action.runner.journal import StatePaths, load
from runtime import run as action_entry
from tests.console import PROGRAM, Console, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

MEMORY = f"checkpoint-run: error CPR306: {PAGES[Kind.EXHAUSTED].example}\n"
THREADS = "checkpoint-run: error CPR306: no more threads can be started, "
STEPS = ("one", "two", "three", "four")
JOB = """\
job: demo
steps:
  - id: one
    needs: []
    inputs: []
    outputs: [1.txt]
    run: ulimit -S -v unlimited; echo >> "$KEEP/one"; seq 99 > 1.txt
  - id: two
    needs: [one]
    inputs: []
    outputs: [2.txt]
    run: ulimit -S -v unlimited; echo >> "$KEEP/two"; cksum 1.txt > 2.txt
  - id: three
    needs: []
    inputs: []
    outputs: [3.txt]
    run: ulimit -S -v unlimited; echo >> "$KEEP/three"; seq 9 > 3.txt
  - id: four
    needs: [three]
    inputs: []
    outputs: [4.txt]
    run: ulimit -S -v unlimited; echo >> "$KEEP/four"; cksum 3.txt > 4.txt
"""
FEW_THREADS = """\
import os, threading
left = int(os.environ["THREADS"])
start = threading.Thread.start

def few(thread):
    global left
    if left <= 0:
        raise RuntimeError("can't start new thread")
    left -= 1
    start(thread)

threading.Thread.start = few
"""
KIB = 1024
STEP = 512 * KIB
linux = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS does nothing elsewhere")
posix = pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh")


def limited(size: int) -> Callable[[], None]:
    """Sets how much memory a process may map, which its steps may undo."""

    def limit() -> None:
        if sys.platform != "win32":
            import resource  # noqa: PLC0415  # not on Windows

            resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

    return limit


class Room:
    """A job in a folder, and what its steps leave a line in each time that they run."""

    def __init__(self, folder: Path) -> None:
        self.work, self.keep = folder / "work", folder / "keep"
        self.work.mkdir(parents=True)
        self.keep.mkdir()
        (self.work / "checkpoint.yml").write_text(JOB)

    def run(
        self, *words: str, size: int | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *words],
            cwd=self.work,
            env=environment({"KEEP": str(self.keep), **(env or {})}),
            preexec_fn=None if size is None else limited(size),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def ran(self) -> dict[str, int]:
        return {step: Console(self.keep).count(step) for step in STEPS}

    def done(self) -> set[str]:
        records = load(StatePaths(self.work, "demo")).records
        return {step for step, record in records.items() if record.status is Status.DONE}

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.work.glob("*.txt"))}

    def running(self) -> list[psutil.Process]:
        """What still runs of all that was started here."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("KEEP") == str(self.keep):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def judge(self, ended: subprocess.CompletedProcess[str], words: Sequence[str]) -> None:
        """Look at a run that lacked something, and at the same command once it lacks nothing."""
        said = ended.stderr
        assert ended.returncode in (0, 5), (ended.returncode, said)
        assert "Traceback" not in said
        errors = [line for line in said.splitlines() if line.startswith("checkpoint-run: error")]
        assert len(errors) == (1 if ended.returncode else 0), said
        assert all(line.startswith("checkpoint-run: error CPR306: ") for line in errors), said
        assert self.running() == []
        done, before = self.done(), self.ran()
        assert all(before[step] == 1 for step in done), (done, before)
        if ended.returncode == 0:
            assert done == set(STEPS)
        again = self.run(*words)
        assert again.returncode == 0, again.stderr
        after = self.ran()
        assert {step: after[step] for step in done} == dict.fromkeys(done, 1), "what was done ran again"
        assert self.done() == set(STEPS)
        assert sorted(self.files()) == ["1.txt", "2.txt", "3.txt", "4.txt"]
        assert self.files()["1.txt"] == "".join(f"{number}\n" for number in range(1, 100))


@pytest.fixture(scope="module")
def least() -> int:
    """The bytes with which Python comes as far as to our first line."""
    for size in range(8 * STEP, 400 * STEP, STEP):
        command = [sys.executable, "-c", "from checkpoint_action.__main__ import entry; import sys"]
        started = subprocess.run(
            command, env=environment(), preexec_fn=limited(size), capture_output=True, timeout=60, check=False
        )
        if started.returncode == 0:
            return size + STEP
    raise AssertionError("Python does not start")


def sizes_to_try(least: int, words: Sequence[str], folder: Path, count: int) -> list[int]:
    """From what Python just starts with to what is enough."""
    enough = least
    for number in range(30):
        enough = enough * 5 // 4
        if Room(folder / f"enough{number}").run(*words, size=enough).returncode == 0:
            return [least + (enough - least) * part // count for part in range(count + 1)]
    raise AssertionError("there is no end of what it needs")


@linux
@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["-j", "3"], ["--verify", "stat", "--report", "r.html"], ["--store"]], ids=str)
def test_at_each_size_of_memory_a_run_works_or_says_that_it_lacks_it(
    tmp_path: Path, least: int, words: list[str]
) -> None:
    if words == ["--store"]:
        words = ["--store", (tmp_path / "store").as_uri(), "--run-id", "1"]
    codes = set()
    for size in sizes_to_try(least, words, tmp_path, 4):
        room = Room(tmp_path / str(size))
        ended = room.run(*words, size=size)
        codes.add(ended.returncode)
        room.judge(ended, words)
        if words[:1] == ["--store"]:  # what one run has kept is no business of the next
            shutil.rmtree(tmp_path / "store", ignore_errors=True)
    assert codes == {0, 5}


@linux
def test_where_python_just_starts_a_run_says_so(tmp_path: Path, least: int) -> None:
    room = Room(tmp_path)
    ended = room.run(size=least)
    assert (ended.returncode, ended.stdout, ended.stderr) == (5, "", MEMORY)
    room.judge(ended, [])


@linux
@pytest.mark.slow
@pytest.mark.parametrize("words", [["status"], ["plan"], ["graph"], ["reset"], ["--help"], ["doctor"], ["logs", "one"]])
def test_all_verbs_say_so(tmp_path: Path, least: int, words: list[str]) -> None:
    room = Room(tmp_path)
    assert room.run().returncode == 0
    for more in (0, 4):
        ended = room.run(*words, size=least + more * STEP)
        if ended.returncode not in (0, 2):  # of what there is to be said, too
            assert (ended.returncode, ended.stderr) == (5, MEMORY), more
        assert "Traceback" not in ended.stderr
    assert room.done() in (set(STEPS), set())


@posix
@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["-j", "2"], ["--store"]], ids=str)
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_with_few_threads_a_run_works_or_says_that_it_lacks_them(
    tmp_path: Path, words: list[str], threads: int
) -> None:
    if words == ["--store"]:
        words = ["--store", (tmp_path / "store").as_uri(), "--run-id", "1"]
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FEW_THREADS)
    room = Room(tmp_path / "room")
    ended = room.run(*words, env={"PYTHONPATH": str(tmp_path / "site"), "THREADS": str(threads)})
    if threads <= 1:
        assert ended.returncode == 5
        assert ended.stderr.splitlines()[-1].startswith(THREADS)
    room.judge(ended, words)


@posix
def test_the_command_for_the_end_hears_how_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FEW_THREADS)
    room = Room(tmp_path / "room")
    few = {"PYTHONPATH": str(tmp_path / "site"), "THREADS": "1"}
    ended = room.run("--on-finish", 'echo "$CHECKPOINT_EXIT_CODE" > code', env=few)
    assert ended.returncode == 5
    assert (room.work / "code").read_text() == "5\n"


# ---------------------------------------------------------------------------------------------- what counts as a lack


def masked(cause: Exception) -> Exception:
    """An error that came while another one was dealt with."""
    try:
        try:
            raise cause
        finally:
            raise RuntimeError("cannot join thread before it is started")
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("/lib/x.so: failed to map segment from shared object"),
        ImportError("libm.so.6: Cannot allocate memory"),
        masked(MemoryError()),
        masked(masked(MemoryError())),
    ],
    ids=repr,
)
def test_a_lack_of_memory_is_known_however_it_is_told(error: Exception) -> None:
    found = lack_behind(error)
    assert isinstance(found, ExhaustedError)
    assert (str(found), found.exit_code) == (PAGES[Kind.EXHAUSTED].example, 5)
    assert (found.__context__, found.__traceback__) == (None, None), "it holds on to what has no memory"


def test_a_lack_of_threads_is_known() -> None:
    for error in (RuntimeError("can't start new thread"), masked(RuntimeError("can't start new thread"))):
        assert str(lack_behind(error)).startswith("no more threads can be started")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("another"),
        OSError(errno.ENOSPC, "No space left on device"),
        ImportError("no module named x"),
        ImportError("/tmp/x.so: failed to map segment from shared object: Operation not permitted"),
        masked(ValueError("x")),
    ],
    ids=repr,
)
def test_other_errors_are_none(error: Exception) -> None:
    assert lack_behind(error) is None


def test_errors_that_follow_from_each_other_in_a_circle_come_to_an_end() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert lack_behind(one) is None


# ---------------------------------------------------------------------------------------------- the command line


def failing(error: Exception) -> Callable[..., int]:
    def fail(*_words: object) -> int:
        raise error

    return fail


@pytest.mark.parametrize("error", [MemoryError(), masked(MemoryError())], ids=repr)
def test_a_lack_is_one_line_and_5(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception
) -> None:
    monkeypatch.setattr(cli, "parse_arguments", failing(error))
    assert cli.main([]) == 5
    assert capfd.readouterr() == ("", MEMORY)


def test_a_state_that_cannot_be_read_for_lack_of_memory_is_not_to_be_removed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    error = StateError("cannot read it; remove it")
    error.__cause__ = OSError(errno.ENOMEM, "Cannot allocate memory")
    monkeypatch.setattr(cli, "parse_arguments", failing(error))
    assert cli.main([]) == 5
    assert capfd.readouterr().err == MEMORY


def test_what_a_required_store_was_short_of_is_told_as_its_failure(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    error = StoreError("cache: it failed")
    error.__cause__ = MemoryError()
    monkeypatch.setattr(cli, "parse_arguments", failing(error))
    assert cli.main([]) == 1
    assert capfd.readouterr().err == "checkpoint-run: error CPR501: cache: it failed\n"


def test_where_not_even_the_line_can_be_put_together_one_is_ready(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["checkpoint-run", "--version"])
    monkeypatch.setattr(cli, "main", failing(MemoryError()))
    with pytest.raises(SystemExit) as ended:
        program.entry()
    assert ended.value.code == ExhaustedError.exit_code
    assert capfd.readouterr() == ("", MEMORY)


def test_another_fault_before_the_command_line_is_at_work_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["checkpoint-run", "--version"])
    monkeypatch.setattr(cli, "main", failing(ImportError("no module named x")))
    with pytest.raises(ImportError, match="no module named x"):
        program.entry()


# ---------------------------------------------------------------------------------------------- the action


def test_the_line_that_the_action_has_ready_says_the_same() -> None:
    line = f"::error title=checkpoint-run {Kind.EXHAUSTED.value}::{PAGES[Kind.EXHAUSTED].example}\n"
    assert line.encode() == action_entry.NO_MEMORY
    assert ExhaustedError.exit_code == action_entry.EXHAUSTED


@posix
@pytest.mark.parametrize("error", [MemoryError(), masked(RuntimeError("can't start new thread"))], ids=repr)
def test_the_action_tells_a_lack_in_one_line_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception
) -> None:
    from checkpoint_action import action  # noqa: PLC0415  # what it brings, no other test needs

    output = tmp_path / "output"
    output.touch()
    monkeypatch.setattr(action, "read_inputs", failing(error))
    assert action.main({**os.environ, "GITHUB_OUTPUT": str(output)}, {}) == 5
    out, err = capfd.readouterr()
    assert out.startswith("::error title=checkpoint-run CPR306::")
    assert out.count("\n") == 1
    assert err == ""
    assert "failure" in output.read_text()
