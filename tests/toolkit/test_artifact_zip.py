from __future__ import annotations

import io
import os
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.toolkit.artifact_body import Blocks
from checkpoint_action.toolkit.artifact_zip import ZipEntry, read_file, zip_entries, zip_pieces
from checkpoint_action.toolkit.errors import InputError, ToolkitError

if TYPE_CHECKING:
    from pathlib import Path

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs what Windows does not have")


def zipped(*entries: ZipEntry, level: int = 6, zip64_from: int = 1024**3) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join(zip_pieces(entries, level=level, zip64_from=zip64_from))))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a" * 1000)
    (folder / "sub/b.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "void").mkdir()
    return folder


def test_files_are_named_from_the_root_on(root: Path) -> None:
    entries = zip_entries([root / "sub/b.sh", root / "a.txt", root / "void"], root)
    assert [(entry.path, entry.folder) for entry in entries] == [("sub/b.sh", False), ("a.txt", False), ("void", True)]


def test_relative_paths_and_dots_mean_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    entries = zip_entries(["root/sub/../a.txt", "./root/a.txt", str(root / "a.txt")], "root/.")
    assert [entry.path for entry in entries] == ["a.txt"]


def test_the_root_itself_is_no_entry(root: Path) -> None:
    assert zip_entries([root], root) == []


@pytest.mark.parametrize("file", ["../outside", "missing", "../rootless/x"])
def test_what_is_not_below_the_root_or_not_there_is_refused(root: Path, file: str) -> None:
    (root.parent / "outside").touch()
    (root.parent / "rootless").mkdir()
    (root.parent / "rootless/x").touch()
    with pytest.raises(InputError):
        zip_entries([root / file], root)


def test_the_root_must_be_a_folder(root: Path) -> None:
    with pytest.raises(InputError, match="root directory"):
        zip_entries([root / "a.txt"], root / "a.txt")


@posix
def test_a_path_that_no_artifact_takes_is_refused(root: Path) -> None:
    (root / "a:b").touch()
    with pytest.raises(InputError, match="a:b"):
        zip_entries([root / "a:b"], root)


@posix
def test_a_link_becomes_its_file_and_a_link_to_a_folder_is_refused(root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    (root / "folder").symlink_to("sub")
    (root / "broken").symlink_to("nowhere")
    archive = zipped(*zip_entries([root / "link"], root))
    assert archive.read("link") == b"a" * 1000
    for name in ("folder", "broken"):
        with pytest.raises(InputError):
            zip_entries([root / name], root)


@posix
def test_a_pipe_is_refused_before_anything_waits_for_it(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(InputError, match="no regular file"):
        zip_entries([root / "pipe"], root)


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("zip64_from", [0, 1024**3])
def test_the_zip_is_whole_at_every_level_and_size(root: Path, level: int, zip64_from: int) -> None:
    entries = zip_entries([root / "a.txt", root / "sub/b.sh", root / "void"], root)
    archive = zipped(*entries, level=level, zip64_from=zip64_from)
    assert archive.testzip() is None
    assert archive.namelist() == ["a.txt", "sub/b.sh", "void/"]
    assert archive.read("a.txt") == b"a" * 1000
    assert (archive.getinfo("a.txt").compress_size < 100) == (level > 0)
    body = b"".join(zip_pieces(entries, level=level, zip64_from=zip64_from))
    name, extra = int.from_bytes(body[26:28], "little"), int.from_bytes(body[28:30], "little")
    assert (body[30 + name :][:extra][:2] == b"\x01\x00") == (zip64_from == 0)  # the field for sizes in 64 bits


@posix
def test_modes_and_times_are_kept(root: Path) -> None:
    (root / "sub/b.sh").chmod(0o751)
    os.utime(root / "sub/b.sh", (1_700_000_000, 1_700_000_000))
    os.utime(root / "a.txt", (0, 0))  # before the first year of zips
    archive = zipped(*zip_entries([root / "sub/b.sh", root / "a.txt"], root))
    info = archive.getinfo("sub/b.sh")
    assert info.external_attr >> 16 & 0o777 == 0o751
    assert info.date_time[0] == 2023
    assert archive.getinfo("a.txt").date_time[0] == 1980


def test_a_file_that_vanishes_is_named(root: Path) -> None:
    entries = zip_entries([root / "a.txt"], root)
    (root / "a.txt").unlink()
    with pytest.raises(ToolkitError, match=r"cannot read .*a\.txt"):
        zipped(*entries)
    with pytest.raises(ToolkitError, match=r"cannot read .*a\.txt"):
        list(read_file(root / "a.txt"))


@pytest.mark.parametrize("more", [319_999, 320_000])
def test_a_file_may_grow_while_it_is_read_but_not_without_limit(root: Path, more: int) -> None:
    file = root / "log"
    file.write_bytes(os.urandom(280_000))
    pieces = zip_pieces(zip_entries([file], root), level=0, zip64_from=300_000)
    body = [next(pieces)]
    with file.open("ab") as stream:
        stream.write(os.urandom(more))
    if more == 320_000:
        with pytest.raises(ToolkitError, match="log grew too much"):
            list(pieces)
    else:
        body += pieces
        assert zipfile.ZipFile(io.BytesIO(b"".join(body))).read("log") == file.read_bytes()


def test_pieces_come_while_a_file_is_read(root: Path) -> None:
    (root / "large").write_bytes(os.urandom(4_000_000))
    pieces = zip_pieces(zip_entries([root / "large"], root), level=0)
    sizes = [len(piece) for piece in pieces]
    assert max(sizes) < 1_000_000
    assert sum(sizes) > 4_000_000


@given(st.lists(st.binary(max_size=50)), st.integers(1, 20))
def test_blocks_are_of_one_length_and_lose_nothing(pieces: list[bytes], length: int) -> None:
    import hashlib  # noqa: PLC0415 - for this alone

    blocks = Blocks(pieces, length)
    cut = list(blocks)
    assert b"".join(cut) == b"".join(pieces)
    assert all(len(block) == length for block in cut[:-1])
    assert all(0 < len(block) <= length for block in cut)
    assert blocks.size == sum(map(len, pieces))
    assert blocks.digest == f"sha256:{hashlib.sha256(b''.join(pieces)).hexdigest()}"
