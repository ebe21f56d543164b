"""Digests are right, and never remembered beyond what they were computed from."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.runner import hashing
from checkpoint_action.runner.hashing import ContentDigests, file_digest, text_digest
from checkpoint_action.runner.stop import StoppedError

if TYPE_CHECKING:
    from pathlib import Path

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
