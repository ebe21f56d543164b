"""One run at a time on a job's state."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import LockError, LockHeldError, StateWriteError
from checkpoint_action.runner import lock as lock_module
from checkpoint_action.runner.lock import JobLock
from tests.runner.jobs import as_nobody

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from checkpoint_action.runner.lock import JobLock
lock = JobLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".checkpoint-run-demo.lock"


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its stdin is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(30)


def no_sleep(_seconds: float) -> None:
    raise AssertionError("it waited")


def test_a_second_run_is_refused_and_told_who_holds_the_job(path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(LockHeldError, match=rf"another run holds this job \(process {holder.pid}\)") as caught:
        JobLock(path).acquire()
    assert caught.value.exit_code == 4
    assert "--wait-lock" in str(caught.value)


def test_a_run_that_waits_gets_the_lock_when_the_other_ends(path: Path, holder: subprocess.Popen[str]) -> None:
    lock = JobLock(path)
    lock.acquire(None, sleep=lambda _seconds: end(holder))
    assert f"process {os.getpid()}" in path.read_text()
    lock.release()


def test_a_wait_ends_when_its_time_is_up(path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(LockHeldError):
        JobLock(path).acquire(0.3)
    assert holder.poll() is None


def test_looking_whether_a_lock_is_held_changes_nothing(path: Path, holder: subprocess.Popen[str]) -> None:
    assert JobLock(path).held()
    end(holder)
    assert not JobLock(path).held()
    assert not JobLock(path.parent / "none").held()
    assert not (path.parent / "none").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_run_leaves_no_lock_whatever_its_file_says(path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait(30)
    path.write_text(f" process {os.getpid()}")  # its number lives on in another process
    lock = JobLock(path)
    lock.acquire(sleep=no_sleep)
    lock.release()


def test_a_released_lock_can_be_taken_again_and_its_file_stays(path: Path) -> None:
    for _ in range(3):
        lock = JobLock(path)
        lock.acquire(sleep=no_sleep)
        lock.release()
        lock.release()
    assert path.exists()


def test_a_lock_file_is_removed_on_request(path: Path) -> None:
    lock = JobLock(path)
    lock.acquire()
    lock.release(remove=True)
    assert not path.exists()


def test_a_file_removed_between_open_and_lock_is_not_taken_for_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lock_module._lock
    tries = 0

    def lock_late(fd: int) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            path.unlink()
        real(fd)

    monkeypatch.setattr(lock_module, "_lock", lock_late)
    first, second = JobLock(path), JobLock(path)
    first.acquire(sleep=no_sleep)
    assert path.exists()
    with pytest.raises(LockHeldError):
        second.acquire()
    first.release()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_a_folder_without_locks_is_named(path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(_fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(lock_module, "_lock", refuse)
    with pytest.raises(LockError) as caught:
        JobLock(path).acquire(sleep=no_sleep)
    text = str(caught.value)
    assert str(path) in text
    assert "--state-dir" in text
    assert os.strerror(code) in text
    assert "\n" not in text
    assert caught.value.exit_code == 5


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateWriteError, match=r"none/lock.*--state-dir"):
        JobLock(tmp_path / "none" / "lock").acquire()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")
def test_a_folder_that_we_may_not_write_is_named(public: Path) -> None:
    with as_nobody(public):
        public.chmod(0o500)
        with pytest.raises(StateWriteError, match="Permission denied"):
            JobLock(public / "lock").acquire()


def test_no_descriptor_is_left_open(path: Path, holder: subprocess.Popen[str]) -> None:
    if sys.platform != "linux":
        pytest.skip("lists /proc/self/fd")
    before = os.listdir("/proc/self/fd")
    for _ in range(5):
        with pytest.raises(LockHeldError):
            JobLock(path).acquire()
    assert os.listdir("/proc/self/fd") == before
    assert holder.poll() is None


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors as POSIX has them")
def test_the_lock_is_not_inherited(path: Path) -> None:
    lock = JobLock(path)
    lock.acquire()
    assert lock._fd is not None
    assert not os.get_inheritable(lock._fd)
    lock.release()


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_a_forked_process_neither_keeps_the_lock_nor_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = JobLock(path)
    lock.acquire()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        lock.release()  # as code does that unwinds in both
        os.write(writer, b"x")
        signal.pause()
        os._exit(1)
    try:
        assert os.read(reader, 1) == b"x"
        assert JobLock(path).held()
        again = os.fork()
        if again == 0:
            signal.pause()
            os._exit(1)
        try:
            lock.release()
            assert not JobLock(path).held()
        finally:
            os.kill(again, signal.SIGKILL)
            os.waitpid(again, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
