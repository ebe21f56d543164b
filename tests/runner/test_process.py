"""Real commands: watched, limited in time, and ended with all that they started."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import shlex
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from checkpoint_action.runner.descendants import MARKER, adopt_orphans
from checkpoint_action.runner.process import Command, End, Limits, Outcome, run_command
from checkpoint_action.runner.stop import StopRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sh, signals and sessions")
linux = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")

PATIENCE = 60.0
PYTHON = shlex.quote(sys.executable)

TRAPPING = (
    "trap 'echo int; sleep 0.3; exit 130' INT; trap 'echo term; exit 143' TERM; echo up; while :; do sleep 0.05; done"
)
IGNORING = "trap '' INT TERM; echo up; while :; do sleep 0.05; done"


class Shell:
    """Runs texts in ``sh`` and gathers what they print.

    :ivar output: all of it so far.
    :ivar on_output: called after each piece.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stop = StopRequest()
        self.output = b""
        self.on_output: Callable[[], object] = lambda: None
        self.marks = 0
        self.ahead = 0.0

    def _write(self, data: bytes) -> None:
        self.output += data
        self.on_output()

    def run(self, text: str, timeout: float | None = PATIENCE, grace: float = 10.0) -> Outcome:
        self.marks += 1
        env = {**os.environ, MARKER: f"mark-{id(self)}-{self.marks}"}
        command = Command(("sh", "-c", text), self.folder, env)
        return run_command(
            command,
            Limits(timeout=timeout, grace=grace),
            self._write,
            self.stop,
            clock=lambda: time.monotonic() + self.ahead,
        )

    def let_time_pass(self) -> None:
        """Have every time limit reached now."""
        self.ahead += 2 * PATIENCE

    def when_printed(self, text: bytes, action: Callable[[], object]) -> None:
        """Do something once, as soon as a text was printed."""
        done = False

        def look() -> None:
            nonlocal done
            if not done and text in self.output:
                done = True
                action()

        self.on_output = look

    def lines(self) -> list[str]:
        return self.output.decode().splitlines()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def adopting() -> Iterator[None]:
    """Let this process adopt orphans, as a run does, for one test."""
    assert adopt_orphans()
    yield
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)


def lives(pid: int) -> bool:
    """Whether a process lives and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        if sys.platform == "linux":
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    return stat[stat.rindex(b")") + 2 :][:1] not in b"ZX"


def end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [0, 1, 2, 75, 126, 255])
def test_the_exit_code_is_the_shells(shell: Shell, code: int) -> None:
    outcome = shell.run(f"exit {code}")
    assert (outcome.end, outcome.exit_code, outcome.signal, outcome.notes) == (End.EXITED, code, None, ())
    assert outcome.duration >= 0


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_that_ends_the_shell_is_told_apart_from_a_code(shell: Shell, signum: int) -> None:
    outcome = shell.run(f"kill -{signum:d} $$")
    assert (outcome.end, outcome.exit_code, outcome.signal) == (End.EXITED, None, signum)


def test_a_program_that_is_not_there_is_an_outcome(tmp_path: Path) -> None:
    command = Command(("no-such-program",), tmp_path, os.environ)
    outcome = run_command(command, Limits(), print, StopRequest())
    assert (outcome.end, outcome.exit_code) == (End.NOT_STARTED, None)
    assert outcome.notes[0].startswith("cannot start no-such-program: ")


def test_a_folder_or_an_argument_that_cannot_be_is_an_outcome(tmp_path: Path) -> None:
    for command in (
        Command(("true",), tmp_path / "none", os.environ),
        Command(("true", "a\0b"), tmp_path, os.environ),
        Command(("true",), tmp_path, {"A": "\0"}),
    ):
        assert run_command(command, Limits(), print, StopRequest()).end is End.NOT_STARTED


def test_output_is_handed_on_byte_for_byte_with_both_streams_in_order(shell: Shell) -> None:
    outcome = shell.run(r"printf 'a\377\227\262\n'; printf 'err\r\000\n' >&2; printf end; exit 3")
    assert shell.output == b"a\xff\x97\xb2\nerr\r\0\nend"
    assert outcome.exit_code == 3


def test_bad_bytes_pass_in_the_c_locale_too(shell: Shell) -> None:
    shell.run(r"export LC_ALL=C; printf '\377\n'; printf 'after\n'")
    assert shell.output == b"\xff\nafter\n"


def test_a_line_of_five_megabytes_arrives_whole(shell: Shell) -> None:
    pieces: list[bytes] = []
    text = f"{PYTHON} -c \"print('x' * 5_000_000, end='')\"; echo END"
    command = Command(("sh", "-c", text), shell.folder, os.environ)
    run_command(command, Limits(timeout=PATIENCE), pieces.append, shell.stop)
    assert b"".join(pieces) == b"x" * 5_000_000 + b"END\n"
    assert max(map(len, pieces)) <= 1 << 20


def test_output_comes_while_the_command_runs(shell: Shell) -> None:
    (shell.folder / "go").unlink(missing_ok=True)
    shell.when_printed(b"first", (shell.folder / "go").touch)
    outcome = shell.run("echo first; while [ ! -e go ]; do sleep 0.05; done; echo second")
    assert outcome.exit_code == 0
    assert shell.lines() == ["first", "second"]


def test_stdin_is_empty(shell: Shell) -> None:
    assert shell.run("cat; read line || echo none").exit_code == 0
    assert shell.output == b"none\n"


@linux
def test_no_descriptor_of_ours_is_handed_on(shell: Shell, tmp_path: Path) -> None:
    with (tmp_path / "mine").open("w") as _mine:
        code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
        shell.run(f'exec {PYTHON} -c "{code}"')
    assert shell.output == b"[0, 1, 2, 3]\n"  # 3 is the folder that is being listed


@linux
def test_no_descriptor_is_left_open(shell: Shell) -> None:
    shell.run("true")
    gc.collect()  # descriptors of earlier tests that nobody has any more
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(5):
        shell.run("true")
        shell.run("sleep 60", timeout=0.05, grace=0)
    run_command(Command(("no-such-program",), shell.folder, {}), Limits(), print, shell.stop)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_the_command_leads_a_session_of_its_own(shell: Shell) -> None:
    shell.run(f"exec {PYTHON} -c 'import os; print(os.getsid(0) == os.getpid() == os.getpgrp())'")
    assert shell.output == b"True\n"


def test_a_background_child_that_holds_the_output_does_not_keep_the_step(shell: Shell) -> None:
    begin = time.monotonic()
    outcome = shell.run("sleep 300 & echo $!; exit 4")
    pid = int(shell.output)
    try:
        assert (outcome.end, outcome.exit_code) == (End.EXITED, 4)
        assert time.monotonic() - begin < PATIENCE
        assert lives(pid)
        assert outcome.notes == (f"a background process still runs and was left alone (process {pid})",)
    finally:
        end(pid)


def test_what_a_background_child_prints_before_the_shell_ends_is_kept(shell: Shell) -> None:
    shell.run("(echo early; touch done; sleep 300) & while [ ! -e done ]; do sleep 0.02; done; echo $!")
    early, pid = shell.lines()
    end(int(pid))
    assert early == "early"


# Too long.


def test_a_command_that_takes_too_long_is_ended(shell: Shell) -> None:
    outcome = shell.run("exec sleep 300", timeout=0.3)
    assert (outcome.end, outcome.exit_code, outcome.signal) == (End.TIMEOUT, None, signal.SIGTERM)
    assert 0.3 <= outcome.duration < PATIENCE
    assert outcome.notes == ()


def test_a_command_that_takes_too_long_may_clean_up_within_its_grace(shell: Shell) -> None:
    shell.when_printed(b"up", shell.let_time_pass)
    outcome = shell.run("trap 'echo cleaned; exit 9' TERM; echo up; while :; do sleep 0.05; done")
    assert shell.lines()[-1] == "cleaned"  # after the shell's own word on what it waited for
    assert (outcome.end, outcome.exit_code) == (End.TIMEOUT, 9)


def test_a_command_that_does_not_listen_is_killed_after_its_grace(shell: Shell) -> None:
    shell.when_printed(b"up", shell.let_time_pass)
    begin = time.monotonic()
    outcome = shell.run(IGNORING, grace=0.3)
    assert (outcome.end, outcome.signal) == (End.TIMEOUT, signal.SIGKILL)
    assert 0.3 <= time.monotonic() - begin < PATIENCE


def test_a_grandchild_that_holds_the_output_goes_too(shell: Shell) -> None:
    shell.when_printed(b"\n", shell.let_time_pass)
    outcome = shell.run("sleep 300 & echo $!; wait")
    assert outcome.end is End.TIMEOUT
    assert not lives(int(shell.output))


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
how = sys.argv[1]
if how != "child":
    if os.fork():
        if how == "daemon":
            os._exit(0)
        os.wait()
    os.setsid()
    if how == "daemon" and os.fork():
        os._exit(0)
    if how == "quiet":
        for number in range(3):
            os.close(number)
            os.open("/dev/null", os.O_RDWR)
with open(sys.argv[2] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[2] + ".new", sys.argv[2])
time.sleep(300)
"""


@linux
@pytest.mark.parametrize("how", ["child", "session", "daemon", "quiet"])
def test_no_stubborn_descendant_survives_a_time_out(shell: Shell, adopting: None, how: str) -> None:
    (shell.folder / "stubborn.py").write_text(STUBBORN)
    shell.when_printed(b"up", shell.let_time_pass)
    outcome = shell.run(
        f"{PYTHON} stubborn.py {how} pid & while [ ! -e pid ]; do sleep 0.05; done; echo up; sleep 300", grace=0.3
    )
    assert shell.output == b"up\n"
    assert outcome.end is End.TIMEOUT
    assert not lives(int((shell.folder / "pid").read_text()))
    assert outcome.notes == ()


@linux
def test_a_daemon_goes_too_when_the_shell_ends_at_the_first_signal(shell: Shell, adopting: None) -> None:
    (shell.folder / "stubborn.py").write_text(STUBBORN)
    shell.when_printed(b"up", lambda: shell.stop.request(signal.SIGINT))
    wait = "while [ ! -e pid ]; do sleep 0.05; done"
    shell.run(f"{PYTHON} stubborn.py daemon pid & {wait}; echo up; exec sleep 300", grace=0.3)
    assert not lives(int((shell.folder / "pid").read_text()))


@linux
def test_a_stopped_process_is_ended_too(shell: Shell) -> None:
    shell.when_printed(b"\n", shell.let_time_pass)
    outcome = shell.run("sleep 300 & kill -STOP $!; echo $!; wait", grace=0.2)
    assert outcome.end is End.TIMEOUT
    assert not lives(int(shell.lines()[0]))


@linux
def test_the_daemon_of_an_earlier_step_is_left_alone(shell: Shell, adopting: None) -> None:
    (shell.folder / "stubborn.py").write_text(STUBBORN)
    shell.run(f"{PYTHON} stubborn.py daemon pid >/dev/null 2>&1; while [ ! -e pid ]; do sleep 0.05; done")
    pid = int((shell.folder / "pid").read_text())
    try:
        assert lives(pid)
        assert shell.run("sleep 300", timeout=0.2, grace=0.2).end is End.TIMEOUT
        assert lives(pid)
    finally:
        end(pid)


def test_a_kill_that_fails_is_told_and_hides_no_result(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.killpg

    def refuse(group: int, signum: int) -> None:
        if signum == signal.SIGTERM:
            raise PermissionError(1, "Operation not permitted")
        real(group, signum)

    monkeypatch.setattr(os, "killpg", refuse)
    outcome = shell.run("exec sleep 300", timeout=0.2, grace=0.2)
    assert (outcome.end, outcome.signal) == (End.TIMEOUT, signal.SIGKILL)
    assert len(outcome.notes) == 1
    assert outcome.notes[0].startswith("cannot send SIGTERM to process group ")


# Stopped from outside.


def test_a_stop_reaches_the_command_once_and_leaves_it_time(shell: Shell) -> None:
    shell.when_printed(b"up", lambda: shell.stop.request(signal.SIGINT))
    outcome = shell.run(TRAPPING)
    assert (outcome.end, outcome.exit_code) == (End.STOPPED, 130)
    assert shell.lines().count("int") == 1
    assert "term" not in shell.lines()


def test_the_signal_that_came_is_the_signal_that_is_sent(shell: Shell) -> None:
    shell.when_printed(b"up", lambda: shell.stop.request(signal.SIGTERM))
    outcome = shell.run(TRAPPING)
    assert (outcome.end, outcome.exit_code) == (End.STOPPED, 143)
    assert shell.lines()[-1] == "term"
    assert "int" not in shell.lines()


def test_a_second_request_hurries(shell: Shell) -> None:
    def twice() -> None:
        shell.stop.request(signal.SIGINT)
        threading.Timer(0.2, shell.stop.request, [signal.SIGINT]).start()

    shell.when_printed(b"up", twice)
    outcome = shell.run(IGNORING, grace=600)
    assert (outcome.end, outcome.signal) == (End.STOPPED, signal.SIGKILL)
    assert outcome.duration < PATIENCE


def test_a_third_request_kills_at_once(shell: Shell) -> None:
    begin = 0.0

    def thrice() -> None:
        nonlocal begin
        begin = time.monotonic()
        shell.stop.request(signal.SIGINT)
        for delay in (0.1, 0.2):
            threading.Timer(delay, shell.stop.request, [signal.SIGINT]).start()

    shell.when_printed(b"up", thrice)
    outcome = shell.run(IGNORING, grace=600)
    assert (outcome.end, outcome.signal) == (End.STOPPED, signal.SIGKILL)
    assert begin


def test_a_request_before_the_start_ends_the_command_soon(shell: Shell) -> None:
    shell.stop.request(signal.SIGTERM)
    outcome = shell.run("sleep 300", grace=5)
    assert outcome.end is End.STOPPED
    assert outcome.duration < PATIENCE


def test_output_printed_while_being_ended_is_kept(shell: Shell) -> None:
    shell.when_printed(b"up", lambda: shell.stop.request(signal.SIGINT))
    shell.run(f"trap '{PYTHON} -c \"print(9 * 100000)\"; exit 1' INT; echo up; while :; do sleep 0.05; done")
    assert shell.lines() == ["up", "900000"]


# Time.


@dataclass
class JumpingClock:
    """A wall clock that jumps a day at each look."""

    now: float = 1_700_000_000.0
    step: float = 86_400.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("step", [86_400.0, -86_400.0])
def test_a_wall_clock_that_jumps_ends_nothing_and_keeps_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    monkeypatch.setattr(time, "time", JumpingClock(step=step))
    outcome = shell.run("sleep 0.3; echo done", timeout=60)
    assert (outcome.end, shell.output) == (End.EXITED, b"done\n")
    assert 0.3 <= outcome.duration < PATIENCE
    assert shell.run("sleep 300", timeout=0.2).end is End.TIMEOUT


@pytest.mark.slow
def test_a_terminal_that_is_slow_loses_nothing(shell: Shell) -> None:
    shell.on_output = lambda: time.sleep(0.4)
    outcome = shell.run("head -c 900000 /dev/zero; exit 3")
    assert len(shell.output) == 900_000
    assert (outcome.end, outcome.exit_code, outcome.notes) == (End.EXITED, 3, ())


def test_where_the_output_cannot_be_handed_on_nothing_of_the_command_runs_on(shell: Shell) -> None:
    class RefusedError(Exception):
        pass

    def refuse() -> None:
        raise RefusedError

    shell.on_output = refuse
    with pytest.raises(RefusedError):
        shell.run("sleep 300 & echo $$ $!; wait")
    for pid in map(int, shell.output.split()):
        end = time.monotonic() + PATIENCE
        while Path(f"/proc/{pid}").exists() if sys.platform == "linux" else _lives(pid):
            assert time.monotonic() < end
            time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@linux
def test_a_command_that_cannot_be_watched_is_ended(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_given: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(os, "pidfd_open", none)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError, match="new thread"):
        shell.run("touch begun; sleep 4331")
    assert not [one for one in psutil.process_iter() if "4331" in _words_of(one)]


def _words_of(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return list(process.cmdline())
    return []
