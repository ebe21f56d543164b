"""The index is believed only where a file cannot have changed since, and never where it is damaged."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkpoint_action.runner import digest_index, hashing
from checkpoint_action.runner.digest_index import FolderClock, kept_digests, read_index, write_index
from checkpoint_action.runner.hashing import ContentDigests, stamp_of, text_digest
from checkpoint_action.runner.scan import OURS
from checkpoint_action.runner.tracked import tracked_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes, pipes and change times of POSIX")

KNOWN = {"/w/a": "1 2 3 4 " + "0" * 64, "/w/b c\n\udcff": "5 6 7 8 " + "f" * 64}

paths = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
said = st.tuples(*[st.integers(0, 1 << 70)] * 4, st.text("0123456789abcdef", min_size=64, max_size=64)).map(
    lambda parts: " ".join(map(str, parts))
)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / f"{OURS}demo.index"


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(paths, said, max_size=10))
@example(KNOWN)
@example({})
def test_an_index_says_what_was_written(known: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "i")
        write_index(file, known)
        assert read_index(file) == known
        assert os.listdir(folder) == ["i"]


@pytest.fixture(scope="module")
def whole() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_index(Path(folder, "i"), KNOWN)
        return Path(folder, "i").read_bytes()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_an_index_damaged_anywhere_knows_nothing(whole: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    part = bytes([data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))])
    changed = data.draw(
        st.sampled_from(
            [
                whole[:at] + part + whole[at + 1 :],
                whole[:at],
                whole[:at] + whole[at + 1 :],
                whole[:at] + part + whole[at:],
            ]
        )
    )
    if changed == whole:  # the byte that was put in is the same as the one beside it
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "i").write_bytes(changed)
        assert read_index(Path(folder, "i")) == {}


def test_every_single_byte_of_an_index_counts(whole: bytes, index: Path) -> None:
    for at in range(len(whole)):
        index.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_index(index) == {}


def test_an_index_of_another_format_knows_nothing(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_index, "FORMAT", 2)
    write_index(index, KNOWN)
    assert read_index(index) == KNOWN
    monkeypatch.undo()
    assert read_index(index) == {}


def test_what_is_no_file_knows_nothing(index: Path) -> None:
    assert read_index(index) == {}
    index.mkdir()
    assert read_index(index) == {}


@posix
def test_a_pipe_keeps_nobody_waiting(index: Path) -> None:
    os.mkfifo(index)
    assert read_index(index) == {}


@posix
def test_an_index_is_for_its_owner_only(index: Path) -> None:
    write_index(index, KNOWN)
    assert stat.S_IMODE(index.stat().st_mode) == 0o600


# From run to run.


class Reads:
    """Counts the files that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self._digest = hashing.file_digest
        monkeypatch.setattr(hashing, "file_digest", self)

    def __call__(self, path: str, *how: Any) -> str:
        self.names.append(os.path.basename(path))
        return self._digest(path, *how)

    def take(self) -> list[str]:
        names, self.names = self.names, []
        return names


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def must_not_be_lost(text: str) -> None:
    pytest.fail(text)


def look(index: Path, *files: Path) -> list[str]:
    """One run: the digests of files."""
    with kept_digests(index, lost=must_not_be_lost) as digests:
        return [digests.digest(str(file), file.lstat()) for file in files]


def test_what_has_not_changed_is_not_read_again(tmp_path: Path, index: Path, reads: Reads) -> None:
    files = [tmp_path / name for name in ("a", "b\udcff" if sys.platform == "linux" else "b")]
    for file in files:
        file.write_text(file.name[0])
    first = look(index, *files)
    assert first == [text_digest("a"), text_digest("b")]
    assert len(reads.take()) == 2
    assert look(index, *files) == first
    assert reads.take() == []
    files[0].write_text("c")
    assert look(index, *files) == [text_digest("c"), first[1]]
    assert reads.take() == ["a"]


@posix
def test_an_edit_whose_time_was_put_back_is_seen(tmp_path: Path, index: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    look(index, file)
    before = file.lstat()
    file.write_text("b")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.lstat().st_mtime_ns == before.st_mtime_ns
    assert look(index, file) == [text_digest("b")]


def test_an_edit_in_the_same_moment_is_never_missed(tmp_path: Path, index: Path) -> None:
    file = tmp_path / "a"
    for number in range(50):
        file.write_text(f"{number:05d}")
        digests = look(index, file)
        file.write_text(f"{number:05d}"[::-1])
        assert digests + look(index, file) == [text_digest(f"{number:05d}"), text_digest(f"{number:05d}"[::-1])]


def test_a_file_replaced_in_the_same_moment_is_never_missed(tmp_path: Path, index: Path) -> None:
    file, other = tmp_path / "a", tmp_path / "b"
    for number in range(50):
        file.write_text(f"x{number:05d}")
        other.write_text(f"y{number:05d}")
        look(index, file)
        other.replace(file)
        assert look(index, file) == [text_digest(f"y{number:05d}")]


def test_what_a_run_did_not_look_at_is_kept_as_long_as_it_is_so(tmp_path: Path, index: Path, reads: Reads) -> None:
    files = [tmp_path / name for name in "abc"]
    for file in files:
        file.write_text(file.name)
    look(index, *files)
    files[1].write_text("B")
    files[2].unlink()
    look(index)
    assert set(read_index(index)) == {str(files[0])}
    reads.take()
    look(index, files[0], files[1])
    assert reads.take() == ["b"]


def test_an_index_that_says_it_all_is_not_written_again(tmp_path: Path, index: Path) -> None:
    (tmp_path / "a").write_text("a")
    look(index, tmp_path / "a")
    before = index.stat()
    look(index, tmp_path / "a")
    assert (index.stat().st_ino, index.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_run_that_fails_leaves_what_it_knows(tmp_path: Path, index: Path) -> None:
    (tmp_path / "a").write_text("a")
    kept = kept_digests(index, lost=must_not_be_lost)
    kept.__enter__().digest(str(tmp_path / "a"), (tmp_path / "a").lstat())
    assert not kept.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert set(read_index(index)) == {str(tmp_path / "a")}


def test_an_index_that_cannot_be_written_is_told_and_no_error(tmp_path: Path, index: Path) -> None:
    (tmp_path / "a").write_text("a")
    index.mkdir()
    (index / "x").touch()
    told: list[str] = []
    with kept_digests(index, lost=told.append) as digests:
        assert digests.digest(str(tmp_path / "a"), (tmp_path / "a").lstat()) == text_digest("a")
    assert len(told) == 1
    assert told[0].startswith(f"cannot write {index}: ")


def test_nothing_of_ours_is_left_beside_the_index(tmp_path: Path, index: Path) -> None:
    (tmp_path / "a").write_text("a")
    look(index, tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == [index.name, "a"]


def test_tracked_files_are_not_read_again(
    tmp_path: Path, index: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkpoint_action.runner.tracked.tracked_files", lambda _root, _env: ["a", "b"])
    for name in "ab":
        (tmp_path / name).write_text(name)
    found = []
    for _ in range(2):
        with kept_digests(index, lost=must_not_be_lost) as digests:
            found.append(tracked_digest(tmp_path, digests, os.environ))
    assert found[0] == found[1]
    assert reads.take() == ["a", "b"]


# The clock.


class SlowClock:
    """A file system that shows its times in steps, and late.

    :param tick: nanoseconds between two times it can show.
    :param behind: nanoseconds that it is behind our own clock.
    :ivar asked: how often it was asked for the time.
    :ivar said: the last time it gave.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tick: int, behind: int = 0) -> None:
        self._tick = tick
        self._behind = behind
        self._real = digest_index._touched
        self.asked = 0
        self.said = 0
        monkeypatch.setattr(digest_index, "_touched", self._touched)

    def _touched(self, fd: int) -> int:
        self.asked += 1
        self.said = self._shown(self._real(fd))
        return self.said

    def _shown(self, moment: int) -> int:
        return (moment - self._behind) // self._tick * self._tick

    def lstat(self, path: Path) -> os.stat_result:
        """What it says of a file."""
        info = path.lstat()
        return altered(info, mtime=self._shown(info.st_mtime_ns), ctime=self._shown(info.st_ctime_ns))

    def changed_now(self, path: Path) -> os.stat_result:
        """What it says of a file that is changed now."""
        os.utime(path)
        return self.lstat(path)


def altered(info: os.stat_result, *, mtime: int, ctime: int, device: int | None = None) -> os.stat_result:
    """A stat result with other times."""
    fields = list(info[:10])
    fields[2] = info.st_dev if device is None else device
    return os.stat_result(fields, {"st_mtime_ns": mtime, "st_ctime_ns": ctime, "st_atime_ns": 0})


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[FolderClock]:
    with FolderClock(tmp_path) as clock:
        yield clock


@posix
def test_a_change_after_the_clock_has_passed_shows(tmp_path: Path, clock: FolderClock) -> None:
    file = tmp_path / "a"
    passed = 0
    for _ in range(500):
        file.write_bytes(b"a")
        before = file.lstat()
        if clock.passed(before):
            passed += 1
            file.write_bytes(b"b")
            assert stamp_of(file.lstat()) != stamp_of(before)
    assert passed > 20


@posix
@pytest.mark.parametrize("behind", [0, 3600], ids=["on time", "an hour late"])
@pytest.mark.parametrize("tick", [1_000_000, 4_000_000, 10_000_000, 1_000_000_000, 2_000_000_000])
def test_an_edit_within_one_tick_is_never_missed(
    tmp_path: Path, clock: FolderClock, monkeypatch: pytest.MonkeyPatch, tick: int, behind: int
) -> None:
    slow = SlowClock(monkeypatch, tick, behind * 10**9)
    file = tmp_path / "a"
    known: dict[str, str] = {}
    for number in range(40):
        text = f"{number:05d}"
        for content in (text, text[::-1]):
            file.write_text(content)
            digests = ContentDigests(known=known, clock=clock)
            assert digests.digest(str(file), slow.lstat(file)) == text_digest(content)
            known = digests.seen


@posix
def test_a_short_tick_is_waited_for(tmp_path: Path, clock: FolderClock, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowClock(monkeypatch, tick=4_000_000)
    for _ in range(20):
        info = slow.changed_now(tmp_path)
        assert clock.passed(info)
        assert info.st_mtime_ns < slow.said


@posix
def test_a_long_tick_is_waited_for_once_and_never_believed(
    tmp_path: Path, clock: FolderClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowClock(monkeypatch, tick=10**17)
    assert not clock.passed(slow.changed_now(tmp_path))
    asked = slow.asked
    assert not any(clock.passed(slow.changed_now(tmp_path)) for _ in range(100))
    assert slow.asked <= asked + 200


@posix
def test_a_server_whose_clock_is_late_is_asked_itself(
    tmp_path: Path, clock: FolderClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = 3600 * 10**9
    slow = SlowClock(monkeypatch, tick=10**9, behind=hour)
    info = slow.changed_now(tmp_path)
    assert hashing.LocalClock().passed(info)  # by our own clock it has not been changed for an hour
    assert clock.passed(info) is (slow.said > info.st_mtime_ns)


@posix
def test_a_time_in_the_future_is_never_believed_nor_waited_for(tmp_path: Path, clock: FolderClock) -> None:
    info = tmp_path.lstat()
    later = time.time_ns() + 3600 * 10**9
    begin = time.monotonic()
    assert not any(clock.passed(altered(info, mtime=later, ctime=info.st_ctime_ns)) for _ in range(200))
    assert time.monotonic() - begin < 200 * digest_index._TICK


def test_other_file_systems_go_by_our_own_clock(tmp_path: Path, clock: FolderClock) -> None:
    info = tmp_path.lstat()
    now = time.time_ns()
    for age, passed in ((0, False), (1_900_000_000, False), (2_500_000_000, True)):
        other = altered(info, mtime=now - age, ctime=now - age, device=info.st_dev + 1)
        assert clock.passed(other) is passed


def test_where_no_file_can_be_made_our_own_clock_must_do(tmp_path: Path) -> None:
    with FolderClock(tmp_path / "none") as clock:
        assert not clock.passed(altered(tmp_path.lstat(), mtime=time.time_ns(), ctime=0))
        assert clock.passed(altered(tmp_path.lstat(), mtime=0, ctime=0))


def test_our_own_file_is_open_to_nobody_else(tmp_path: Path, clock: FolderClock) -> None:
    assert clock._file is None or not os.get_inheritable(clock._file.fileno())
    assert sys.platform == "win32" or os.listdir(tmp_path) == []


def test_digests_that_came_from_an_index_go_by_the_stamp(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    wrong = stamp_of(file.lstat()) + "0" * 64
    assert ContentDigests(known={str(file): wrong}).digest(str(file), file.lstat()) == "0" * 64
    os.utime(file, ns=(0, 0))
    assert ContentDigests(known={str(file): wrong}).digest(str(file), file.lstat()) == text_digest("a")
