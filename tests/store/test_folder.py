"""What a folder does that other stores cannot, and what goes wrong with one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreTakenError
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.store import bounded
from checkpoint_action.store.base import Found
from checkpoint_action.store.folder import FolderStore

ROOT = Path(__file__).parents[2]
KEYS = KeyScheme("content", job_slug("build", 1), "7", "1")
KEY = KEYS.new("build", 1)
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX has it")
not_root = pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may do everything")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path) -> FolderStore:
    return FolderStore(root, order=KEYS.origin)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"all of it")
    return path


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


@posix_only
def test_only_the_owner_may_read_it(store: FolderStore, root: Path, source: Path) -> None:
    source.chmod(0o644)
    old = os.umask(0)
    try:
        store.save(KEY, source)
    finally:
        os.umask(old)
    (file,) = files(root)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.stat().st_mode & 0o777 for path in (root, file.parent)] == [0o700, 0o700]


def test_the_file_is_called_after_its_key(store: FolderStore, root: Path, source: Path) -> None:
    store.save(KEY, source)
    (file,) = files(root)
    assert f"{file.parent.name}-{file.name}" == f"{KEY}.tar.zst"


def test_reading_makes_no_folder_and_saving_not_its_parents(tmp_path: Path, source: Path) -> None:
    store = FolderStore(tmp_path / "not" / "there")
    assert store.find("cpr1-") is None
    assert store.entries() == []
    with pytest.raises(StoreError, match="there"):  # a share that is not mounted, say
        store.save(KEY, source)
    assert not (tmp_path / "not").exists()


def test_other_files_are_no_entries(store: FolderStore, root: Path, source: Path) -> None:
    store.save(KEY, source)
    (file,) = files(root)
    for name in (".cpr-x.tmp", "README", "Upper.tar.zst", ".tar.zst"):
        (file.parent / name).touch()
        (root / name).touch()
    (root / f"{KEY}.tar.zst").touch()  # not its place
    (root / f"{KEYS.job}.tar.zst").mkdir()
    assert [row.key for row in store.entries()] == [KEY]
    assert store.find("") == Found(KEY)


def test_leftovers_of_a_day_ago_are_removed_and_younger_ones_stay(store: FolderStore, root: Path, source: Path) -> None:
    store.save(KEY, source)
    (file,) = files(root)
    old, young = file.parent / ".cpr-old.tmp", file.parent / ".cpr-young.tmp"
    foreign = file.parent / "notes.tmp"
    for path, hours in ((old, 25), (young, 23), (foreign, 48), (file, 48)):
        path.touch()
        os.utime(path, (time.time() - hours * 3600,) * 2)
    store.save(KEYS.new("build", 2), source)
    assert not old.exists()
    assert young.exists()
    assert foreign.exists()
    assert file.exists()


def test_an_empty_folder_of_a_job_goes_with_its_last_entry(store: FolderStore, root: Path, source: Path) -> None:
    store.save(KEY, source)
    store.delete(KEY)
    assert list(root.iterdir()) == []
    store.save(KEY, source)
    assert store.read(Found(KEY), 0, 100) == b"all of it"


@posix_only
@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_hard_links_a_taken_key_still_keeps_what_it_holds(
    store: FolderStore, root: Path, source: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_args: object, **_named: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    store.save(KEY, source)
    source.write_bytes(b"another")
    with pytest.raises(StoreTakenError):
        store.save(KEY, source)
    assert store.read(Found(KEY), 0, 100) == b"all of it"
    (file,) = files(root)  # and nothing else
    other = KEYS.new("build", 2)
    (file.parent / f".cpr-{other.removeprefix(file.parent.name + '-')}.tar.zst.tmp").touch()  # it is being given
    with pytest.raises(StoreTakenError):
        store.save(other, source)


@posix_only
def test_a_link_whose_answer_was_lost_counts(
    store: FolderStore, root: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def twice(one: Path, other: Path, **named: bool) -> None:  # as NFS does where the first answer does not come
        link(one, other, **named)
        link(one, other, **named)

    monkeypatch.setattr(os, "link", twice)
    store.save(KEY, source)
    assert [path.read_bytes() for path in files(root)] == [b"all of it"]


@not_root
def test_a_folder_that_may_not_be_written_says_so(store: FolderStore, root: Path, source: Path) -> None:
    root.mkdir()
    root.chmod(0o500)
    try:
        with pytest.raises(StoreDeniedError, match="Permission denied"):
            store.save(KEY, source)
    finally:
        root.chmod(0o700)


def test_a_file_in_the_folders_place_is_an_error_in_one_line(store: FolderStore, root: Path, source: Path) -> None:
    root.write_text("no folder")
    for call in (lambda: store.save(KEY, source), lambda: store.find("cpr1-"), store.entries):
        with pytest.raises(StoreError) as caught:
            call()
        assert str(root) in str(caught.value)
        assert "\n" not in str(caught.value)


@posix_only
def test_a_folder_that_hangs_is_given_up(store: FolderStore, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "GRACE", 0.0)
    store.save(KEY, Path(__file__))
    (file,) = files(root)
    os.mkfifo(file.parent / "other-1-1-000001-00000000.tar.zst")  # opening it waits for a writer
    hanging = FolderStore(root, call_seconds=0.1)
    with pytest.raises(StoreError, match="out of time"):
        hanging.read(Found(f"{file.parent.name}-other-1-1-000001-00000000"), 0, 1)


_WRITES_FOREVER = """
import sys, time
from pathlib import Path
from checkpoint_action.store.folder import FolderStore
def pieces():
    yield b"x" * 100000
    print("writing", flush=True)
    time.sleep(600)
FolderStore(Path(sys.argv[1]))._send(sys.argv[2], pieces())
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_no_entry_and_holds_no_key(store: FolderStore, root: Path, source: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITES_FOREVER, str(root), KEY], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing" + os.linesep.encode()
    assert store.find(KEYS.prefix) is None
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(files(root)) == 1
    assert store.find(KEYS.prefix) is None
    store.save(KEY, source)
    assert store.read(Found(KEY), 0, 100) == b"all of it"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_a_pipe_in_the_place_of_an_archive_keeps_nobody_waiting(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    (tmp_path / "source").write_bytes(b"x")
    key = "cpr1-run7-build-0123456789abcdef-a-7-1-000001-01234567"
    store.save(key, tmp_path / "source")
    (archive,) = (tmp_path / "store").rglob("*.tar.zst")
    os.mkfifo(archive.with_name(archive.name.replace("000001", "000002")))
    assert store.find("cpr1-") == Found(key)
    assert [row.key for row in store.entries()] == [key]
