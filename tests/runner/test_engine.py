"""A job from its first step to its last: what runs, in which order, and what is recorded of it."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import StateWriteError, StoreError
from checkpoint_action.model import AUTO, Job, Reason, Retry, Status, Step
from checkpoint_action.runner import events, hashing
from checkpoint_action.runner import uploads as uploads_module
from checkpoint_action.runner.appending import AppendedFile
from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.runner.plan import Planner
from checkpoint_action.runner.process import Command, End, Limits, Outcome
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.runner.selection import Selection
from checkpoint_action.runner.stop import StoppedError, StopRequest
from tests.runner.jobs import job, step
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

posix = pytest.mark.skipif(sys.platform == "win32", reason="commands of sh")


@dataclass
class Commands:
    """Stands in for the process runner: what each step's next tries do; by default they end well.

    :ivar ran: ids of the steps whose commands were started.
    :ivar begins: told of each that starts.
    """

    ends: dict[str, list[Any]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    begins: Callable[[str], None] = lambda _name: None

    def __call__(
        self,
        command: Command,
        limits: Limits,
        write: Callable[[bytes], None],
        stop: StopRequest,
        *,
        started: Callable[[], None],
    ) -> Outcome:
        name = command.env["CHECKPOINT_STEP"]
        self.ran.append(name)
        self.begins(name)
        started()
        todo = self.ends.get(name, [])
        end = todo.pop(0) if todo else 0
        if callable(end):
            end = end(write, stop)
        if isinstance(end, Outcome):
            return end
        return Outcome(End.EXITED, end or 0, None, 2.0)


class World:
    """One job's folder, and runs of it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "work"
        self.root.mkdir()
        self.state = root / "state"
        self.state.mkdir()
        self.paths = StatePaths(self.state, "demo")
        self.commands = Commands()
        self.told: list[events.Event] = []
        self.output = b""
        self.stop = StopRequest()
        self.checkpoints: Checkpoints | None = None

    def _write(self, data: bytes) -> None:
        self.output += data

    def step(self, name: str, **changes: Any) -> Step:
        return step(name, self.root, **changes)

    def chain(self, *names: str, **changes: Any) -> list[Step]:
        return [
            self.step(name, needs=tuple(names[number - 1 : number]), **changes) for number, name in enumerate(names)
        ]

    def run(
        self, *steps: Step, real: bool = False, forced: bool = False, jobs: int = 1, **of_job: Any
    ) -> events.RunEnded:
        """One run, as a new process would make it."""
        self.told.clear()
        self.commands.ran.clear()
        self.stop = StopRequest()
        journal = Journal(self.paths, load(self.paths))
        if self.checkpoints is not None:
            journal.merge(self.checkpoints.learn())
        journal.open()
        more: dict[str, Any] = {} if real else {"run": self.commands}
        engine = Engine(
            job(self.root, *steps, **of_job),
            journal,
            dict(os.environ),
            listener=self.told.append,
            write=self._write,
            stop=self.stop,
            options=RunOptions(selection=Selection(everything=forced), jobs=jobs),
            checkpoints=self.checkpoints,
            **more,
        )
        try:
            return engine.run()
        finally:
            journal.close()

    def status(self) -> dict[str, Status]:
        return {name: record.status for name, record in load(self.paths).records.items()}

    def kinds(self) -> list[str]:
        """What was told, in short."""
        rows = []
        for event in self.told:
            name = type(event).__name__
            one: Any = event
            if isinstance(event, events.StepBlocked):
                name += f" {event.step} by {event.need}"
            elif isinstance(event, events.StepStarted | events.StepSkipped | events.StepRestored):
                name += f" {one.decision.step} {one.decision.reason.value}"
            elif isinstance(event, events.StepEnded):
                name += f" {event.record.step} {event.record.status.value}"
            rows.append(name)
        return rows


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_steps_run_in_order_once_and_are_skipped_the_next_time(world: World) -> None:
    steps = world.chain("a", "b", "c")
    ended = world.run(*steps)
    assert (ended.exit_code, ended.ran, ended.pending) == (0, ("a", "b", "c"), ())
    assert world.kinds() == [
        "RunStarted",
        *(word for name in "abc" for word in (f"StepStarted {name} never-ran", f"StepEnded {name} done")),
        "RunEnded",
    ]
    ended = world.run(*steps)
    assert (ended.exit_code, ended.ran, ended.skipped, ended.saved) == (0, (), ("a", "b", "c"), 6.0)
    assert world.commands.ran == []


def test_a_later_failure_keeps_earlier_work(world: World) -> None:
    steps = world.chain("a", "b", "c", "d")
    world.commands.ends = {"c": [7]}
    ended = world.run(*steps)
    assert (ended.exit_code, ended.ran, ended.failed, ended.pending) == (1, ("a", "b", "c"), ("c",), ("d",))
    assert world.status() == {"a": Status.DONE, "b": Status.DONE, "c": Status.FAILED}
    assert world.run(*steps).ran == ("c", "d")
    assert world.kinds()[1:4] == ["StepSkipped a done", "StepSkipped b done", "StepStarted c failed-before"]


def test_steps_that_need_a_failed_one_are_blocked_and_others_go_on(world: World) -> None:
    steps = [
        world.step("a"),
        world.step("b", needs=("a",)),
        world.step("c", needs=("b",)),
        world.step("free"),
    ]
    world.commands.ends = {"a": [1]}
    ended = world.run(*steps, continue_on_error=True)
    assert (ended.exit_code, ended.ran, ended.pending) == (1, ("a", "free"), ("b", "c"))
    assert [kind for kind in world.kinds() if "Blocked" in kind] == ["StepBlocked b by a", "StepBlocked c by b"]
    assert world.status() == {"a": Status.FAILED, "free": Status.DONE}


def test_what_is_done_already_is_still_blocked_behind_a_step_that_fails_now(world: World) -> None:
    steps = world.chain("a", "b", "c")
    world.run(*steps)
    steps[0] = world.step("a", command="changed")
    steps[2] = world.step("c", command="changed", needs=("b",))
    world.commands.ends = {"a": [1]}
    ended = world.run(*steps, continue_on_error=True)
    assert ended.ran == ("a",)
    assert ended.pending == ("b", "c")


def test_without_continue_on_error_the_first_failure_stops_the_job(world: World) -> None:
    world.commands.ends = {"a": [1]}
    ended = world.run(world.step("a"), world.step("b"))
    assert (ended.ran, ended.pending) == (("a",), ("b",))


@pytest.mark.parametrize(("limit", "ran"), [(1, "a"), (2, "ab"), (3, "abc"), (None, "abcd")])
def test_so_many_failures_stop_the_job(world: World, limit: int | None, ran: str) -> None:
    world.commands.ends = {name: [1] for name in "abcd"}
    ended = world.run(*(world.step(name) for name in "abcd"), continue_on_error=True, max_failures=limit)
    assert ended.ran == tuple(ran)
    assert ended.exit_code == 1


def test_a_missing_output_fails_the_step_with_a_code_of_its_own(world: World) -> None:
    (world.root / "a.txt").write_text("")
    one = world.step("a", outputs=("a.txt", "b.txt"))
    assert world.run(one).exit_code == 1
    record = load(world.paths).records["a"]
    assert (record.status, record.exit_code) == (Status.FAILED, -2)
    assert "b.txt" in record.error
    world.run(one)
    assert world.kinds()[1] == "StepStarted a failed-before"


def test_outputs_are_recorded_and_looked_at_again(world: World) -> None:
    def write(*_: object) -> int:
        (world.root / "out").write_text("out")
        return 0

    one = world.step("a", outputs=("out",))
    world.commands.ends = {"a": [write, write]}
    world.run(one)
    assert world.run(one).skipped == ("a",)
    (world.root / "out").unlink()
    assert world.run(one).ran == ("a",)
    assert "StepStarted a output-missing" in world.kinds()


def test_a_step_that_ran_again_to_the_same_outputs_stops_the_wave(world: World) -> None:
    def write(*_: object) -> int:
        (world.root / "out").write_text("out")
        return 0

    world.commands.ends = {"a": [write, write]}
    first, second = world.step("a", outputs=("out",)), world.step("b", needs=("a",))
    world.run(first, second)
    (world.root / "out").unlink()
    ended = world.run(first, second)
    assert (ended.ran, ended.skipped) == (("a",), ("b",))


def test_tries_are_counted_and_the_last_one_is_recorded(world: World) -> None:
    world.commands.ends = {"a": [1, 2, 0]}
    ended = world.run(world.step("a", retry=Retry(max=5, backoff=0)))
    assert ended.exit_code == 0
    record = load(world.paths).records["a"]
    assert (record.status, record.tries, record.exit_code) == (Status.DONE, 3, 0)
    retried = [event for event in world.told if isinstance(event, events.StepRetried)]
    assert [(event.failed.tries, event.failed.exit_code) for event in retried] == [(1, 1), (2, 2)]


def test_a_step_is_recorded_as_running_before_it_starts_and_as_ended_before_the_next(world: World) -> None:
    seen: list[dict[str, Status]] = []

    def look(*_: object) -> int:
        seen.append(world.status())
        return 0

    world.commands.ends = {"a": [look], "b": [look]}
    world.run(*world.chain("a", "b"))
    assert seen == [{"a": Status.RUNNING}, {"a": Status.DONE, "b": Status.RUNNING}]


def test_a_stop_leaves_the_step_interrupted_and_the_rest_pending(world: World) -> None:
    def stopped(_write: object, stop: StopRequest) -> Outcome:
        stop.request(signal.SIGTERM)
        return Outcome(End.STOPPED, None, 15, 1.0)

    world.commands.ends = {"b": [stopped]}
    steps = world.chain("a", "b", "c")
    ended = world.run(*steps)
    assert (ended.exit_code, ended.signal, ended.pending) == (143, 15, ("c",))
    assert world.status() == {"a": Status.DONE, "b": Status.INTERRUPTED}
    assert world.run(*steps).ran == ("b", "c")
    assert "StepStarted b interrupted-before" in world.kinds()


def test_a_stop_after_the_last_step_changes_nothing(world: World) -> None:
    def late(_write: object, stop: StopRequest) -> int:
        stop.request(signal.SIGINT)
        return 0

    world.commands.ends = {"a": [late]}
    assert world.run(world.step("a")).exit_code == 0


def stop_when_read(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a stop be requested just as a file of this name is being read."""
    digest = hashing.file_digest

    def read(path: str, *how: Any) -> str:
        if path.endswith(name):
            world.stop.request(signal.SIGINT)
        return digest(path, *how)

    monkeypatch.setattr(hashing, "file_digest", read)


def test_a_stop_while_inputs_are_read_ends_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.root / "in").write_text("x")
    steps = world.chain("a", "b", inputs=("in",))
    assert world.run(steps[0]).exit_code == 0
    with monkeypatch.context() as patch:
        stop_when_read(world, patch, "in")
        ended = world.run(*steps)
    assert (ended.exit_code, ended.signal, ended.pending) == (130, 2, ("a", "b"))
    assert world.kinds() == ["RunStarted", "RunEnded"]
    assert world.run(*steps).ran == ("b",)


@posix
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stop_while_outputs_are_read_interrupts_their_step(
    world: World, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    stop_when_read(world, monkeypatch, "out")
    steps = [
        world.step("a", command="echo > out", outputs=("out",)),
        world.step("b", needs=("a",)),
    ]
    ended = world.run(*steps, real=True, jobs=jobs)
    assert (ended.exit_code, ended.ran, ended.stopped, ended.pending) == (130, ("a",), ("a",), ("b",))
    assert world.status() == {"a": Status.INTERRUPTED}


def test_forced_and_always_steps_run_though_they_are_done(world: World) -> None:
    steps = [world.step("a"), world.step("b", always=True)]
    world.run(*steps)
    assert world.run(*steps).ran == ("b",)
    assert world.run(*steps, forced=True).ran == ("a", "b")


def test_a_record_of_an_older_run_survives_runs_of_other_steps(world: World) -> None:
    world.run(world.step("a"))
    world.run(world.step("b"))
    assert world.status() == {"a": Status.DONE, "b": Status.DONE}


# The state cannot be written.


@pytest.mark.parametrize("transition", ["running", "done"])
def test_a_state_that_cannot_be_written_stops_the_run_and_names_the_step(
    world: World, monkeypatch: pytest.MonkeyPatch, transition: str
) -> None:
    real = AppendedFile.append

    def append(file: AppendedFile, data: bytes, *, sync: bool = True) -> None:
        if b'"step":"b"' in data and f'"status":"{transition}"'.encode() in data:
            raise OSError(28, "No space left on device")
        real(file, data, sync=sync)

    monkeypatch.setattr(AppendedFile, "append", append)
    with pytest.raises(StateWriteError, match=f"step 'b': its {transition} could not be recorded") as caught:
        world.run(*world.chain("a", "b", "c"))
    assert caught.value.exit_code == 5
    assert world.commands.ran == (["a"] if transition == "running" else ["a", "b"])
    assert world.status()["a"] is Status.DONE
    assert world.status().get("b") is not Status.DONE
    monkeypatch.undo()
    assert world.run(*world.chain("a", "b", "c")).ran == ("b", "c")


# How often the disk is waited for.


def synced(world: World, monkeypatch: pytest.MonkeyPatch, *steps: Step, **more: Any) -> list[str]:
    """Events, syncs of the journal and commands that start, in order."""
    rows: list[str] = []
    world.commands.begins = rows.append
    real = AppendedFile.sync

    def sync(file: AppendedFile, end: int | None = None) -> None:
        real(file, end)
        rows.append("sync")

    monkeypatch.setattr(AppendedFile, "sync", sync)
    world.told = _Told(rows)
    world.run(*steps, **more)
    return rows


class _Told(list[events.Event]):
    """Takes note of some events among the syncs."""

    def __init__(self, rows: list[str]) -> None:
        super().__init__()
        self._rows = rows

    def append(self, event: events.Event) -> None:
        super().append(event)
        if isinstance(event, events.StepStarted | events.StepEnded | events.RunEnded):
            self._rows.append(type(event).__name__)


def test_a_step_is_told_of_once_it_is_on_the_disk_and_the_next_start_goes_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = synced(world, monkeypatch, *world.chain("a", "b"))
    first, then = ["a", "sync", "StepStarted"], ["b", "sync", "StepEnded", "StepStarted"]
    assert found == [*first, *then, "sync", "StepEnded", "RunEnded"]


def test_a_step_starts_once_that_is_on_the_disk_where_something_else_is_recorded_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run(world.step("a"))
    found = synced(world, monkeypatch, world.step("a"), forced=True)
    assert found == ["sync", "StepStarted", "a", "sync", "StepEnded", "RunEnded"]


def test_a_step_that_must_not_run_twice_starts_once_that_is_on_the_disk(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = synced(world, monkeypatch, world.step("a", on_crash="stop"))
    assert found == ["sync", "StepStarted", "a", "sync", "StepEnded", "RunEnded"]


def test_where_files_are_looked_at_before_the_next_start_the_end_is_on_the_disk_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / "in").touch()
    found = synced(world, monkeypatch, world.step("a"), world.step("b", inputs=("in",)))
    assert found[3:6] == ["sync", "StepEnded", "b"]


@pytest.mark.parametrize("jobs", [1, 3])
def test_nothing_is_told_before_all_that_is_recorded_is_on_the_disk(
    world: World, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    unsynced: set[AppendedFile] = set()
    append, sync = AppendedFile.append, AppendedFile.sync

    def appending(file: AppendedFile, data: bytes, *, sync: bool = True) -> None:
        unsynced.add(file)
        append(file, data, sync=sync)

    def syncing(file: AppendedFile, end: int | None = None) -> None:
        sync(file, end)
        unsynced.discard(file)

    class Told(list[events.Event]):
        def append(self, event: events.Event) -> None:
            super().append(event)
            assert not unsynced, event

    monkeypatch.setattr(AppendedFile, "append", appending)
    monkeypatch.setattr(AppendedFile, "sync", syncing)
    world.told = Told()
    world.commands.ends = {"s3": [1]}
    ended = world.run(*(world.step(f"s{number}") for number in range(9)), jobs=jobs, continue_on_error=True)
    assert (len(ended.ran), ended.failed) == (9, ("s3",))
    kinds = [kind.split()[0] for kind in world.kinds()]
    assert (kinds.count("StepStarted"), kinds.count("StepEnded")) == (9, 9)


def test_a_step_is_told_of_before_the_files_of_the_next_one_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / "in").touch()
    seen: list[list[str]] = []
    parts = Planner.parts

    def looking(planner: Planner, one: Step) -> dict[str, str]:
        if one.id == "b":
            seen.append(world.kinds()[1:])
        return parts(planner, one)

    monkeypatch.setattr(Planner, "parts", looking)
    world.commands.ends = {"a": [lambda _write, stop: stop.wait(0.2)]}
    world.run(world.step("a"), world.step("b", inputs=("in",)), jobs=2)
    assert seen[0] == ["StepStarted a never-ran"]


def test_where_the_disk_fails_the_step_that_has_started_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_file: AppendedFile, _end: int | None = None) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(AppendedFile, "sync", fail)
    begin = time.monotonic()
    with pytest.raises(StateWriteError, match="did not get into"):
        world.run(world.step("a", command="sleep 600; touch went-on"), real=True)
    assert time.monotonic() - begin < 300
    assert not (world.root / "went-on").exists()


# Real commands.


@posix
def test_a_log_is_truncated_for_each_try_and_the_terminal_gets_all(world: World) -> None:
    log = world.root / "logs" / "deep" / "a.log"
    command = "echo try $CHECKPOINT_TRY; exit $((2 - CHECKPOINT_TRY))"
    one = world.step("a", command=command, log=log, retry=Retry(1, backoff=0))
    assert world.run(one, real=True).exit_code == 0
    assert log.read_bytes() == b"try 2\n"
    assert world.output == b"try 1\ntry 2\n"
    assert load(world.paths).records["a"].log == "logs/deep/a.log"


@posix
def test_a_log_holds_the_exact_bytes(world: World) -> None:
    log = world.root / "a.log"
    ended = world.run(world.step("a", command=r"printf 'a\377\227\262\n'; echo more >&2; exit 3", log=log), real=True)
    assert log.read_bytes() == world.output == b"a\xff\x97\xb2\nmore\n"
    assert ended.exit_code == 1
    assert load(world.paths).records["a"].exit_code == 3


@posix
def test_a_log_that_cannot_be_written_costs_a_warning(world: World) -> None:
    (world.root / "file").write_text("")
    ended = world.run(world.step("a", command="echo hello", log=world.root / "file" / "a.log"), real=True)
    assert ended.exit_code == 0
    assert world.output == b"hello\n"
    assert sum(isinstance(event, events.Warned) for event in world.told) == 1


@posix
@pytest.mark.parametrize("read", [False, True])
def test_a_log_that_is_a_pipe_costs_a_warning_and_no_wait(world: World, read: bool) -> None:
    log = world.root / "a.log"
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK) if read else None
    try:
        ended = world.run(world.step("a", command="echo hello", log=log), real=True)
    finally:
        if reader is not None:
            os.close(reader)
    assert (ended.exit_code, world.output) == (0, b"hello\n")
    assert [event.message for event in world.told if isinstance(event, events.Warned)] == [
        f"step 'a': cannot write its log {log}: " + ("it is no regular file" if read else os.strerror(errno.ENXIO))
    ]


@posix
def test_a_log_may_be_the_null_device(world: World) -> None:
    log = world.root / "a.log"
    log.symlink_to("/dev/null")
    assert world.run(world.step("a", command="echo hello", log=log), real=True).exit_code == 0
    assert not any(isinstance(event, events.Warned) for event in world.told)


@posix
def test_a_log_is_written_in_blocking_mode(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    write = os.write

    def note(found: int, data: bytes) -> int:
        modes.append(os.get_blocking(found))
        return write(found, data)

    one = world.step("a", log=world.root / "a.log")
    world.commands.ends = {"a": [lambda output, _stop: output(b"x") or 0]}
    monkeypatch.setattr(os, "write", note)
    world.run(one)
    assert modes
    assert all(modes)


@posix
def test_a_step_killed_by_a_signal_has_failed_with_the_signal_and_no_code(world: World) -> None:
    assert world.run(world.step("a", command="kill -9 $$"), real=True).exit_code == 1
    record = load(world.paths).records["a"]
    assert (record.status, record.exit_code, record.signal) == (Status.FAILED, None, 9)


@posix
def test_a_time_out_is_a_status_of_its_own(world: World) -> None:
    world.run(world.step("a", command="exec sleep 300", timeout=0.2), real=True)
    record = load(world.paths).records["a"]
    assert record.status is Status.TIMEOUT
    assert record.error == "it took longer than its 0.2 s"


@posix
def test_variables_reach_the_command(world: World) -> None:
    one = world.step("a", command="echo $CHECKPOINT_JOB $CHECKPOINT_STEP $CHECKPOINT_TRY $V", env={"V": "v"})
    world.run(one, real=True)
    assert world.output == b"demo a 1 v\n"


@posix
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="lists /proc/self/fd")
def test_neither_lock_nor_journal_nor_log_leak_into_a_step(world: World) -> None:
    one = world.step("a", command="ls -l /proc/self/fd | grep -c state; ls /proc/self/fd", log=world.root / "a.log")
    world.run(one, real=True)
    assert world.output.split() == [b"0", b"0", b"1", b"2", b"3"]


@posix
@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
def test_a_wall_clock_that_jumps_does_not_matter(world: World, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    now = 1_700_000_000.0

    def wall() -> float:
        nonlocal now
        now += jump
        return now

    monkeypatch.setattr(time, "time", wall)
    one = world.step("a", command="[ $CHECKPOINT_TRY = 2 ]", timeout=60.0, retry=Retry(1, backoff=0.01))
    ended = world.run(one, real=True)
    record = load(world.paths).records["a"]
    assert (ended.exit_code, record.tries) == (0, 2)
    assert 0 <= record.duration < 60
    assert 0 <= ended.seconds < 60


# With a store.


@dataclass
class Elsewhere:
    """Machines that share a store."""

    folder: Path
    store: MemoryStore = field(default_factory=MemoryStore)
    warnings: list[str] = field(default_factory=list)
    count: int = 0

    def machine(self) -> World:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        world = World(folder)
        world.checkpoints = self.checkpoints(world)
        return world

    def checkpoints(self, world: World) -> Checkpoints:
        """Those of another run on the same machine."""
        self.count += 1
        archives = world.root.parent / f"archives-{self.count}"
        archives.mkdir()
        return Checkpoints(
            self.store,
            KeyScheme("run1", "demo", "1", "1"),
            archives,
            Workspace.at(world.root, Excludes(())),
            warn=self.warnings.append,
        )


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    monkeypatch.setattr(uploads_module, "_APART", 0.0)
    return Elsewhere(tmp_path)


def auto(world: World) -> list[Step]:
    """Two steps that change one file."""
    return [
        world.step("a", command="echo a > f", outputs=AUTO),
        world.step("b", command="echo b >> f; [ ! -e fail ]", needs=("a",), outputs=AUTO),
    ]


@posix
def test_a_fresh_machine_restores_what_is_done_and_runs_the_rest(elsewhere: Elsewhere) -> None:
    first = elsewhere.machine()
    (first.root / "fail").write_text("")
    assert first.run(*auto(first), real=True).failed == ("b",)
    second = elsewhere.machine()
    ended = second.run(*auto(second), real=True)
    assert (ended.restored, ended.ran, ended.exit_code) == (("a",), ("b",), 0)
    assert (second.root / "f").read_text() == "a\nb\n"
    third = elsewhere.machine()
    assert third.run(*auto(third), real=True).restored == ("a", "b")
    assert (third.root / "f").read_text() == "a\nb\n"
    told = [kind for kind in third.kinds() if kind.startswith("StepRestored")]
    assert told == ["StepRestored a restored", "StepRestored b restored"]
    assert elsewhere.warnings == []


@posix
def test_a_stop_while_the_workspace_is_looked_at_ends_the_run(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = elsewhere.machine()
    (world.root / "here").write_text("x")
    for name, status in (("here", {}), ("f", {"a": Status.RUNNING})):
        with monkeypatch.context() as patch:
            stop_when_read(world, patch, f"/{name}")
            ended = world.run(*auto(world), real=True)
        assert (ended.exit_code, ended.ran, ended.pending) == (130, (), ("a", "b"))
        assert world.status() == status
        world.checkpoints = None if world.checkpoints is None else elsewhere.checkpoints(world)
    assert world.run(*auto(world), real=True).ran == ("a", "b")
    assert "StepStarted a interrupted-before" in world.kinds()


@posix
def test_a_step_that_leaves_whatever_it_changes_runs_while_no_other_does(elsewhere: Elsewhere) -> None:
    world = elsewhere.machine()
    busy = "mkdir busy; sleep 0.2; echo > {0}; rmdir busy"
    steps = [
        world.step("a", command="sleep 0.2; test ! -e busy; echo > a", outputs=("a",)),
        world.step("b", command=busy.format("b"), outputs=AUTO),
        world.step("c", command=busy.format("c"), outputs=AUTO),
        world.step("d", command="test ! -e busy", outputs=()),
    ]
    ended = world.run(*steps, real=True, jobs=4)
    assert (ended.exit_code, ended.failed) == (0, ())
    layers = {
        step: [entry.path for entry in record.layer.entries] for step, record in load(world.paths).records.items()
    }
    assert layers == {"a": ["a"], "b": ["b"], "c": ["c"], "d": []}


@posix
@pytest.mark.parametrize("error", [StoreError("gone"), StoppedError()])
def test_a_stop_while_a_step_is_restored_ends_the_run(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    first = elsewhere.machine()
    assert first.run(*auto(first), real=True).exit_code == 0
    second = elsewhere.machine()

    def restore(*_: object) -> None:
        second.stop.request(signal.SIGTERM)
        raise error

    monkeypatch.setattr(Checkpoints, "restore", restore)
    ended = second.run(*auto(second), real=True)
    assert (ended.exit_code, ended.ran, ended.pending) == (143, (), ("a", "b"))
    assert second.status()["a"] is Status.DONE


@posix
def test_a_step_whose_archive_is_gone_runs(elsewhere: Elsewhere) -> None:
    first = elsewhere.machine()
    (first.root / "fail").write_text("")
    first.run(*auto(first), real=True)
    (first.root / "fail").unlink()
    between = elsewhere.machine()
    between.run(*auto(between), real=True)  # so that each step has an archive of its own
    second = elsewhere.machine()
    del elsewhere.store.entries[next(iter(elsewhere.store.entries))]
    ended = second.run(*auto(second), real=True)
    assert (ended.exit_code, ended.ran, ended.restored) == (0, ("a",), ("b",))
    assert "StepStarted a archive-missing" in second.kinds()
    assert (second.root / "f").read_text() == "a\nb\n"


@posix
def test_a_store_that_is_down_costs_one_warning(elsewhere: Elsewhere) -> None:
    elsewhere.store.refuse = dict.fromkeys(["find", "save", "fetch"], StoreError("memory: 503"))
    world = elsewhere.machine()
    assert world.run(*auto(world), real=True).exit_code == 0
    assert len(elsewhere.warnings) == 1


def test_reasons_told_are_of_the_closed_list(world: World) -> None:
    world.run(*world.chain("a", "b"))
    started = [event for event in world.told if isinstance(event, events.StepStarted)]
    assert {event.decision.reason for event in started} <= set(Reason)
    assert isinstance(world.told[0], events.RunStarted)
    assert isinstance(world.told[0].job, Job)
