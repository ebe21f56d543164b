"""SIGKILL of the tool at each state transition of a run, exactly there; then the same command again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

import psutil
import pytest

from checkpoint_action import cli
from checkpoint_action.runner import durable
from checkpoint_action.runner.appending import AppendedFile
from checkpoint_action.runner.journal import Journal, StatePaths, load
from tests.console import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from checkpoint_action.model import Record

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL; Windows ends a step with its runner by itself"),
]

REPOSITORY = Path(__file__).resolve().parents[2]
STEPS = ("a", "b", "c")
CRASH = "TEST_CRASH"  # variable that says where to crash; also the mark of all that a run has started
HOLD = "hold"  # while this file is there, a step stays in its middle
SNAPSHOT, JOURNAL = ".json", ".journal"
OPENING, CLOSING = 1, 2  # the two folds of a run


# ---- in the process that crashes ------------------------------------------------------------------------------------


def crash() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def crash_around(name: str, when: str, step: str) -> None:
    """Crash before or after :class:`Journal` records a step's start or finish."""
    original: Callable[..., None] = getattr(Journal, name)

    def patched(self: Journal, record: Record, **sync: bool) -> None:
        if record.step == step and when == "before":
            crash()
        original(self, record, **sync)
        if record.step == step:
            crash()

    setattr(Journal, name, patched)


def crash_in_line(status: str, step: str, cut: str) -> None:
    """Crash when only a part of a journal line has been written; a start is two lines in one write.

    :param cut: how many bytes; negative: so many fewer than all; ``half``; ``twin``: of a start, all of its first
        line and a part of its second.
    """
    original = AppendedFile.append

    def patched(self: AppendedFile, data: bytes, *, sync: bool = True) -> None:
        if f'"step":"{step}","status":"{status}"'.encode() not in data:
            original(self, data, sync=sync)
            return
        size = {"half": len(data) // 4, "twin": len(data) * 3 // 4}.get(cut)
        if size is None:
            size = int(cut) if int(cut) > 0 else len(data) + int(cut)
        original(self, data[:size])
        crash()

    AppendedFile.append = patched  # type: ignore[method-assign]


def crash_in_fold(ending: str, where: str, fold: int) -> None:
    """Crash while one of the two files is replaced.

    :param where: ``writing`` its temporary file, ``before`` or ``after`` the rename.
    :param fold: the how many-th replacement of this file.
    """
    original_rename, original_write = Path.replace, durable._write_all
    count = 0

    def rename(self: Path, target: Path) -> Path:
        nonlocal count
        count += str(target).endswith(ending)
        if str(target).endswith(ending) and count == fold and where == "before":
            crash()
        renamed = original_rename(self, target)
        if str(target).endswith(ending) and count == fold:
            crash()
        return renamed

    def write_all(file: IO[bytes], pieces: Iterable[bytes]) -> None:
        name = os.readlink(f"/proc/self/fd/{file.fileno()}")
        if name.endswith(f"{ending}.tmp") and count + 1 == fold:
            data = b"".join(pieces)
            os.write(file.fileno(), data[: len(data) // 2])
            crash()
        original_write(file, pieces)

    Path.replace = rename  # type: ignore[method-assign, assignment]
    if where == "writing":
        durable._write_all = write_all


def crash_in_forget() -> None:
    """Crash when the first of the two files has been removed."""
    original = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        original(self, missing_ok)
        if str(self).endswith(SNAPSHOT):
            crash()

    Path.unlink = unlink  # type: ignore[method-assign]


def crash_when_half_written(step: str) -> None:
    """Crash in the middle of a step."""

    def watch() -> None:
        while text(Path(f"out.{step}")) != "half":
            time.sleep(0.005)
        crash()

    threading.Thread(target=watch, daemon=True).start()


CRASHES: dict[str, Callable[..., None]] = {
    "start": lambda when, step: crash_around("start", when, step),
    "finish": lambda when, step: crash_around("finish", when, step),
    "middle": crash_when_half_written,
    "line": crash_in_line,
    "fold": lambda ending, where, number: crash_in_fold(ending, where, int(number)),
    "forget": crash_in_forget,
}


def crashing_main() -> None:
    """The tool, with a crash where the environment asks for one."""
    kind, *words = os.environ[CRASH].split(" ")
    CRASHES[kind](*words)
    sys.exit(cli.main(sys.argv[1:]))


# ---- in the test ----------------------------------------------------------------------------------------------------


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def command(*extra: str, touch: str = "") -> list[str]:
    """A job of three steps, each of which writes half of its output, and then all of it from the one before.

    :param touch: a step whose command is another, but does the same.
    """
    words = ["--job", "three", "--quiet", *extra]
    for before, step in zip(("", *STEPS), STEPS, strict=False):
        script = (
            f"echo started >> started.{step}; printf half > out.{step}; while [ -e {HOLD}.{step} ]; do sleep 0.05; "
            f"done; (cat {f'out.{before}' if before else '/dev/null'}; echo full {step}) > whole.{step}; "
            f"mv whole.{step} out.{step}"
        )
        words += ["--step", f"{step}:{script}{' # changed' if step == touch else ''}"]
        words += ["--step-artifact", f"{step}:out.{step}"]
    return words


def run(folder: Path, words: list[str]) -> None:
    """Run the job to its end."""
    ended = subprocess.run(
        [sys.executable, "-m", "checkpoint_action", *words],
        cwd=folder,
        env=environment({"PYTHONPATH": str(REPOSITORY)}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def run_and_crash(folder: Path, where: str, words: list[str], module: str = __name__) -> None:
    """Run the tool to its crash, and wait until nothing of it is left.

    :param module: whose ``crashing_main`` it is.
    """
    boot = f"from {module} import crashing_main; crashing_main()"
    ended = subprocess.run(
        [sys.executable, "-c", boot, *words],
        cwd=folder,
        env=environment({"PYTHONPATH": str(REPOSITORY), CRASH: where}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGKILL, "")
    end = time.monotonic() + 30
    while left := [process.pid for process in psutil.process_iter() if is_of(process, folder)]:
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.02)


def is_of(process: psutil.Process, folder: Path) -> bool:
    """Whether a process is a step, or a part of one, of a run that has crashed."""
    with suppress(psutil.Error):
        return CRASH in process.environ() and Path(process.cwd()) == folder and process.status() != "zombie"
    return False


def starts(folder: Path) -> dict[str, int]:
    return {step: len(text(folder / f"started.{step}").splitlines()) for step in STEPS}


def results(folder: Path) -> dict[str, str]:
    return {step: text(folder / f"out.{step}") for step in STEPS}


def recorded(folder: Path) -> dict[str, str]:
    """Status of each step, as the next run will read it, without a warning."""
    loaded = load(StatePaths(folder, "three"))
    assert loaded.warnings == ()
    return {step: record.status.value for step, record in loaded.records.items()}


RESULTS = {"a": "full a\n", "b": "full a\nfull b\n", "c": "full a\nfull b\nfull c\n"}


@dataclass(frozen=True, slots=True)
class Point:
    """Where a run crashes.

    :param where: for :func:`crashing_main`.
    :param step: the step that is dealt with then, if any.
    :param ran: whether its command was started before the crash.
    :param status: what the next run takes for its status; empty: nothing is recorded of it.
    """

    where: str
    step: str
    ran: bool
    status: str

    def __str__(self) -> str:
        return self.where.replace(" ", "-")


def points(step: str) -> list[Point]:
    """The transitions of one step, in their order."""
    return [
        Point(f"start before {step}", step, ran=False, status=""),
        Point(f"line running {step} 1", step, ran=False, status=""),
        Point(f"line running {step} half", step, ran=False, status=""),
        Point(f"line running {step} twin", step, ran=False, status="running"),
        Point(f"line running {step} -1", step, ran=False, status="running"),
        Point(f"start after {step}", step, ran=False, status="running"),
        Point(f"middle {step}", step, ran=True, status="running"),
        Point(f"finish before {step}", step, ran=True, status="running"),
        Point(f"line done {step} 1", step, ran=True, status="running"),
        Point(f"line done {step} half", step, ran=True, status="running"),
        Point(f"line done {step} -2", step, ran=True, status="running"),
        Point(f"line done {step} -1", step, ran=True, status="done"),  # only the line's end is missing
        Point(f"finish after {step}", step, ran=True, status="done"),
    ]


ALL = [point for step in STEPS for point in points(step)]


@pytest.mark.parametrize("point", ALL, ids=str)
def test_crash_at_a_transition_of_a_step(tmp_path: Path, point: Point) -> None:
    before = STEPS[: STEPS.index(point.step)]
    hold = tmp_path / f"{HOLD}.{point.step}"
    if point.where.startswith("middle"):
        hold.touch()
    run_and_crash(tmp_path, point.where, command())
    hold.unlink(missing_ok=True)
    assert starts(tmp_path) == dict.fromkeys(STEPS, 0) | dict.fromkeys(before, 1) | {point.step: int(point.ran)}
    if point.where.startswith("middle"):
        assert text(tmp_path / f"out.{point.step}") == "half"
    now = {point.step: point.status} if point.status else {}
    assert recorded(tmp_path) == dict.fromkeys(before, "done") | now
    run(tmp_path, command())
    again = point.ran and point.status != "done"
    assert starts(tmp_path) == dict.fromkeys(STEPS, 1) | {point.step: 1 + again}
    assert results(tmp_path) == RESULTS
    assert recorded(tmp_path) == dict.fromkeys(STEPS, "done")
    run(tmp_path, command())  # and now nothing is left to do
    assert starts(tmp_path) == dict.fromkeys(STEPS, 1) | {point.step: 1 + again}


@pytest.mark.parametrize("point", points("b"), ids=str)
def test_crash_when_the_step_was_done_before(tmp_path: Path, point: Point) -> None:
    run(tmp_path, command())
    hold = tmp_path / f"{HOLD}.b"
    if point.where.startswith("middle"):
        hold.touch()
    run_and_crash(tmp_path, point.where, command(touch="b"))
    hold.unlink(missing_ok=True)
    assert starts(tmp_path) == {"a": 1, "b": 1 + point.ran, "c": 1}
    assert recorded(tmp_path) == {"a": "done", "b": point.status or "done", "c": "done"}
    # The old command again: its record fits, but must not be taken for what is there now.
    run(tmp_path, command())
    assert starts(tmp_path) == {"a": 1, "b": 1 + point.ran + bool(point.status), "c": 1}
    assert results(tmp_path) == RESULTS
    assert recorded(tmp_path) == dict.fromkeys(STEPS, "done")


@pytest.mark.skipif(sys.platform != "linux", reason="finds the name of an open file in /proc")
@pytest.mark.parametrize("fold", [OPENING, CLOSING], ids=["opening", "closing"])
@pytest.mark.parametrize("where", ["writing", "before", "after"])
@pytest.mark.parametrize("ending", [SNAPSHOT, JOURNAL])
def test_crash_while_the_journal_is_folded(tmp_path: Path, ending: str, where: str, fold: int) -> None:
    ran = int(fold == CLOSING)
    run_and_crash(tmp_path, f"fold {ending} {where} {fold}", command())
    assert starts(tmp_path) == dict.fromkeys(STEPS, ran)
    assert recorded(tmp_path) == (dict.fromkeys(STEPS, "done") if ran else {})
    run(tmp_path, command())
    assert starts(tmp_path) == dict.fromkeys(STEPS, 1)
    assert results(tmp_path) == RESULTS
    assert recorded(tmp_path) == dict.fromkeys(STEPS, "done")


@pytest.mark.skipif(sys.platform != "linux", reason="finds the name of an open file in /proc")
@pytest.mark.parametrize("where", ["writing", "before", "after"])
@pytest.mark.parametrize("ending", [SNAPSHOT, JOURNAL])
def test_crash_while_the_journal_of_a_crashed_run_is_folded(tmp_path: Path, ending: str, where: str) -> None:
    run_and_crash(tmp_path, "finish before b", command())
    run_and_crash(tmp_path, f"fold {ending} {where} {OPENING}", command())
    assert starts(tmp_path) == {"a": 1, "b": 1, "c": 0}
    assert recorded(tmp_path) == {"a": "done", "b": "running"}
    run(tmp_path, command())
    assert starts(tmp_path) == {"a": 1, "b": 2, "c": 1}
    assert results(tmp_path) == RESULTS


def test_crash_in_the_middle_of_forgetting(tmp_path: Path) -> None:
    run(tmp_path, command())
    run_and_crash(tmp_path, "forget", command("--force"))
    assert starts(tmp_path) == dict.fromkeys(STEPS, 1)
    run(tmp_path, command())
    assert results(tmp_path) == RESULTS
    assert recorded(tmp_path) == dict.fromkeys(STEPS, "done")


def test_every_step_crashes_at_every_transition_in_turn(tmp_path: Path) -> None:
    """One job through all of it: each run crashes one transition further on."""
    for point in ALL:
        if not point.where.startswith("middle") and recorded(tmp_path).get(point.step) != "done":
            done = {step for step, status in recorded(tmp_path).items() if status == "done"}
            count = starts(tmp_path)
            run_and_crash(tmp_path, point.where, command())
            assert all(starts(tmp_path)[step] == count[step] for step in done)
    run(tmp_path, command())
    assert results(tmp_path) == RESULTS
    assert recorded(tmp_path) == dict.fromkeys(STEPS, "done")
