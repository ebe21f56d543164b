"""Digests are right, and never remembered beyond what they were computed from."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.model import Entry
from checkpoint_action.runner import hashing, reading
from checkpoint_action.runner.hashing import ContentDigests, file_digest, text_digest
from checkpoint_action.runner.scan import UNREADABLE, entries_of, entry_of
from checkpoint_action.runner.stop import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OLD = 1_600_000_000_000_000_000


@pytest.mark.parametrize("size", [0, 1, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1_000_000])
def test_a_file_digest_is_the_sha256_of_its_bytes(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "f").write_bytes(data)
    assert file_digest(str(tmp_path / "f")) == hashlib.sha256(data).hexdigest()


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        file_digest(str(tmp_path / "f"))


@given(st.binary(max_size=30))
def test_a_text_of_any_bytes_has_the_digest_of_those_bytes(data: bytes) -> None:
    assert text_digest(data.decode("utf-8", "surrogateescape")) == hashlib.sha256(data).hexdigest()


def test_a_file_that_grows_is_not_chased(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a" * 300_000)
    seen = file.lstat()

    def grow() -> bool:
        with file.open("ab") as more:
            more.write(b"b" * 300_000)
        return False

    assert ContentDigests(grow).digest(str(file), seen) == text_digest("a" * 300_000)


def test_of_a_file_that_shrank_what_is_left_counts(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("abc")
    seen = file.lstat()
    file.write_text("a")
    assert ContentDigests().digest(str(file), seen) == text_digest("a")


def test_a_digest_ends_at_the_next_piece_once_it_is_cancelled(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(bytes(4 << 20))
    asked = iter([False, False, True])
    with pytest.raises(StoppedError):
        ContentDigests(lambda: next(asked)).digest(str(file), file.lstat())


class Reads:
    """Counts the files that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(hashing, "file_digest", self)

    def __call__(self, path: str, *how: Any) -> str:
        self.count += 1
        return file_digest(path, *how)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the clock show a later time, as if files had been written before."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + int(seconds * 1e9))


def test_a_settled_file_is_read_once(tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_text("a")
    later(monkeypatch, 10)
    digests = ContentDigests()
    assert {digests.digest(str(file), file.lstat()) for _ in range(5)} == {text_digest("a")}
    assert reads.count == 1


def test_a_file_written_just_now_is_read_each_time(tmp_path: Path, reads: Reads) -> None:
    file = tmp_path / "f"
    digests = ContentDigests()
    for number in range(20):
        file.write_text(str(number % 10))
        assert digests.digest(str(file), file.lstat()) == text_digest(str(number % 10))
    assert reads.count == 20


def test_new_content_of_the_same_size_and_time_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_text("a")
    os.utime(file, ns=(OLD, OLD))
    later(monkeypatch, 10)
    digests = ContentDigests()
    assert digests.digest(str(file), file.lstat()) == text_digest("a")
    before = file.lstat().st_ctime_ns
    while file.lstat().st_ctime_ns == before:  # the clock of the file system is coarse
        file.write_text("b")
        os.utime(file, ns=(OLD, OLD))
    assert digests.digest(str(file), file.lstat()) == text_digest("b")


def test_an_old_time_does_not_hide_that_a_file_was_changed_just_now(tmp_path: Path, reads: Reads) -> None:
    file = tmp_path / "f"
    file.write_text("a")
    os.utime(file, ns=(OLD, OLD))
    digests = ContentDigests()
    digests.digest(str(file), file.lstat())
    digests.digest(str(file), file.lstat())
    assert reads.count == 2


def test_a_file_put_in_the_place_of_another_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("f", "g"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, ns=(OLD, OLD))
    later(monkeypatch, 10)
    digests = ContentDigests()
    file = tmp_path / "f"
    assert digests.digest(str(file), file.lstat()) == text_digest("f")
    (tmp_path / "g").replace(file)
    assert digests.digest(str(file), file.lstat()) == text_digest("g")


# Many files.


def entries(folder: Path, digests: ContentDigests | None = None) -> list[tuple[str, Entry | OSError | None]]:
    places = [(str(path), path.name) for path in sorted(folder.iterdir())]
    return list(entries_of(places, digests or ContentDigests()))


def reading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "reading"]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads for files from a few bytes on, whatever the machine has."""
    monkeypatch.setattr(reading, "usable_cores", lambda: 2)
    monkeypatch.setattr(hashing, "_WORTH_A_THREAD", 10)


class Slow:
    """Readings that begin and do not end before they are let.

    :ivar quick: names of files that are read at once.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *quick: str) -> None:
        self.begun: list[str] = []
        self.quick = quick
        self.let = threading.Event()
        monkeypatch.setattr(hashing, "file_digest", self)

    def __call__(self, path: str, _size: int, cancelled: Callable[[], bool]) -> str:
        name = os.path.basename(path)
        self.begun.append(name)
        while name not in self.quick and not self.let.wait(0.01):
            if cancelled():
                raise StoppedError
        return "0" * 64


@pytest.mark.usefixtures("two_cores")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 30), max_size=40))
def test_many_paths_are_told_in_their_order_as_one_by_one(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, size in enumerate(sizes):
            (folder / f"{number:02d}").write_bytes(os.urandom(size))
        (folder / "folder").mkdir()
        places = [(str(folder / one), one) for one in [*sorted(os.listdir(folder)), "none", "00/none"]]
        wanted = [(name, entry_of(path, name, ContentDigests())) for path, name in places]
        assert list(entries_of(places, ContentDigests())) == wanted
    assert reading_threads() == []


@pytest.mark.usefixtures("two_cores")
def test_large_files_are_read_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        (tmp_path / name).write_bytes(bytes(20))
    both = threading.Barrier(2, timeout=30)

    def meet(_path: str, *_how: Any) -> str:
        both.wait()  # ends only where two are here at once
        return "0" * 64

    monkeypatch.setattr(hashing, "file_digest", meet)
    assert [name for name, _ in entries(tmp_path)] == list("abcd")
    assert reading_threads() == []


@pytest.mark.usefixtures("two_cores")
def test_while_a_large_file_is_read_small_ones_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number:02d}" for number in range(50)]
    for name in names:
        (tmp_path / name).write_bytes(bytes(20 if name == "00" else 1))
    slow = Slow(monkeypatch, *names[1:])

    def places() -> Iterator[tuple[str, str]]:
        for name in names:
            yield str(tmp_path / name), name
        slow.let.set()  # nobody else does

    assert [name for name, _ in entries_of(places(), ContentDigests())] == names


def test_small_files_need_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "usable_cores", lambda: 2)
    monkeypatch.setattr(threading.Thread, "start", lambda _thread: pytest.fail("a thread was started"))
    for number in range(50):
        (tmp_path / f"{number:02d}").write_bytes(bytes(5000))
    assert len(entries(tmp_path)) == 50


@pytest.mark.usefixtures("two_cores")
def test_only_so_many_large_files_are_begun_before_the_first_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        (tmp_path / f"{number:02d}").write_bytes(bytes(20))
    asked: list[str] = []
    slow = Slow(monkeypatch)

    def places() -> Iterator[tuple[str, str]]:
        for path in sorted(tmp_path.iterdir()):
            asked.append(path.name)
            yield str(path), path.name

    threading.Timer(0.3, slow.let.set).start()
    found = entries_of(places(), ContentDigests())
    assert next(found)[0] == "00"
    assert len(asked) <= 6
    found.close()
    assert reading_threads() == []


@pytest.mark.usefixtures("two_cores")
def test_leaving_early_ends_what_is_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcdefg":
        (tmp_path / name).write_bytes(bytes(20))
    slow = Slow(monkeypatch, "a")
    found = entries_of([(str(path), path.name) for path in sorted(tmp_path.iterdir())], ContentDigests())
    assert next(found)[0] == "a"
    while "b" not in slow.begun:
        time.sleep(0.001)
    found.close()
    assert "g" not in slow.begun
    assert reading_threads() == []


@pytest.mark.usefixtures("two_cores")
def test_a_stop_ends_all_readings_and_leaves_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    for name in "abcdefgh":
        (tmp_path / name).write_bytes(bytes(20))
    with pytest.raises(StoppedError):
        entries(tmp_path, ContentDigests(lambda: len(slow.begun) > 1))
    assert len(slow.begun) <= 5
    assert reading_threads() == []


@pytest.mark.usefixtures("two_cores")
def test_a_file_that_cannot_be_read_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        (tmp_path / name).write_bytes(bytes(20))

    def read(path: str, *how: Any) -> str:
        if path.endswith("b"):
            raise PermissionError(13, "no")
        if path.endswith("c"):
            raise FileNotFoundError(2, "gone")
        return file_digest(path, *how)

    monkeypatch.setattr(hashing, "file_digest", read)
    digests = [entry.sha256 if isinstance(entry, Entry) else entry for _, entry in entries(tmp_path)]
    assert digests == [text_digest("\0" * 20), UNREADABLE, None, text_digest("\0" * 20)]


@pytest.mark.usefixtures("two_cores")
def test_where_no_thread_can_be_had_files_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    for name in "abcd":
        (tmp_path / name).write_bytes(bytes(20))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    found = entries(tmp_path)
    assert [entry.sha256 for _, entry in found if isinstance(entry, Entry)] == [text_digest("\0" * 20)] * 4


def test_on_one_core_there_are_no_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "usable_cores", lambda: 1)
    monkeypatch.setattr(hashing, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(threading.Thread, "start", lambda _thread: pytest.fail("a thread was started"))
    (tmp_path / "a").write_bytes(b"x")
    assert len(entries(tmp_path)) == 1


def test_a_view_loads_nothing_that_only_reading_and_waiting_need(tmp_path: Path) -> None:
    code = """
import sys
from checkpoint_action.cli import main
code = main(["status", "--job", "a"])
late = {"concurrent.futures", "difflib", "queue", "socket", "subprocess", "tempfile", "yaml"}
print(code, sorted(late & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
