from __future__ import annotations

import io
import os
import stat
import struct
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.toolkit.artifact_unzip import UnpackLimits, safe_path, unpack
from checkpoint_action.toolkit.artifact_zip import zip_entries, zip_pieces
from checkpoint_action.toolkit.errors import ProtocolError
from tests.toolkit.trees import there

if TYPE_CHECKING:
    from collections.abc import Mapping

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs what Windows does not have")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, with something beside it that must not be touched."""
    path = tmp_path / "folder"
    path.mkdir()
    (tmp_path / "beside").write_bytes(b"mine")
    return path


def archive(folder: Path, data: bytes) -> Path:
    path = folder.parent / "archive.zip"
    path.write_bytes(data)
    return path


def made(*entries: tuple[str | zipfile.ZipInfo, bytes], level: int | None = None) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as opened:
        for name, content in entries:
            opened.writestr(name, content)
    return body.getvalue()


def refused(folder: Path, data: bytes, match: str, *, limits: UnpackLimits | None = None) -> None:
    """The zip is refused, and the folder is as it was."""
    before = there(folder.parent)
    path = archive(folder, data)
    with pytest.raises(ProtocolError, match=match):
        unpack(path, folder, limits=limits)
    path.unlink()
    assert there(folder.parent) == before


def test_files_come_out_in_order_over_what_is_there(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/b").write_bytes(b"old")
    (folder / "other").write_bytes(b"kept")
    files = unpack(archive(folder, made(("sub/b", b"new"), ("a", b""), ("void/", b""))), folder)
    assert files == (folder / "sub/b", folder / "a")
    assert there(folder) == {"sub/b": b"new", "a": b"", "other": b"kept"}
    assert (folder / "void").is_dir()
    assert sorted(path.name for path in folder.iterdir()) == ["a", "other", "sub", "void"]


@pytest.mark.parametrize("name", ["../beside", "sub/../../beside", "/beside", "..", "a/..", "/", ".", "//beside"])
def test_no_name_leads_out(folder: Path, name: str) -> None:
    refused(folder, made((name, b"theirs")), "land outside|two files of one name|something that is no file")


@pytest.mark.parametrize("name", ["n" * 300, "d/" * 2500 + "x"])
def test_a_name_that_no_file_can_have_is_refused(folder: Path, name: str) -> None:
    refused(folder, made((name, b"x")), "damaged: File name too long")


def test_harmless_dots_are_left_out(folder: Path) -> None:
    unpack(archive(folder, made(("./a//./b", b"x"))), folder)
    assert there(folder) == {"a/b": b"x"}


@posix
def test_a_backslash_is_a_letter_where_it_is_one(folder: Path) -> None:
    unpack(archive(folder, made(("..\\beside", b"x"))), folder)
    assert there(folder) == {"..\\beside": b"x"}


@pytest.mark.skipif(sys.platform != "win32", reason="of Windows alone")
@pytest.mark.parametrize("name", ["..\\beside", "C:\\x", "C:x", "nul", "NUL.txt", "a/com1", "x.", "x ", "a:stream"])
def test_windows_has_more_names_that_lead_out(folder: Path, name: str) -> None:
    refused(folder, made((name, b"x")), "land outside")


def with_mode(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFDIR])
def test_links_and_devices_are_refused(folder: Path, kind: int) -> None:
    refused(folder, made(("a", b"x"), (with_mode("bad", kind | 0o777), b"../beside")), "no file: 'bad'")


@posix
def test_nothing_is_written_behind_a_link_that_is_there(folder: Path) -> None:
    (folder / "out").symlink_to(folder.parent)
    refused(folder, made(("a", b"x"), ("out/beside", b"theirs")), "something else: 'out'")


@posix
def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(folder: Path) -> None:
    (folder / "a").symlink_to(folder.parent / "beside")
    unpack(archive(folder, made(("a", b"new"))), folder)
    assert not (folder / "a").is_symlink()
    assert (folder.parent / "beside").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ([("a", b"1"), ("a/b", b"2")], "two files of one name"),
        ([("a/b", b"1"), ("a", b"2")], "two files of one name"),
        ([("a", b"1"), ("./a", b"2")], "two files of one name"),
    ],
)
def test_names_that_exclude_each_other_are_refused(folder: Path, entries: list[tuple[str, bytes]], match: str) -> None:
    refused(folder, made(*entries), match)


def test_a_name_that_is_there_twice_is_refused(folder: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = made(("a", b"1"), ("a", b"2"))
    refused(folder, data, "two files of one name")


@pytest.mark.parametrize("there_as", ["file", "folder"])
def test_a_file_and_a_folder_do_not_take_each_others_place(folder: Path, there_as: str) -> None:
    if there_as == "file":
        (folder / "a").write_bytes(b"mine")
        refused(folder, made(("x", b"1"), ("a/b", b"2")), "something else: 'a'")
    else:
        (folder / "a").mkdir()
        (folder / "a/kept").write_bytes(b"mine")
        refused(folder, made(("x", b"1"), ("a", b"2")), "where there is a folder: 'a'")


def test_more_than_the_limit_is_refused_by_what_is_announced(folder: Path) -> None:
    data = made(("a", bytes(6000)), ("b", bytes(5000)))
    refused(folder, data, "11000 bytes", limits=UnpackLimits(size=10_999))
    unpack(archive(folder, data), folder, limits=UnpackLimits(size=11_000))


def test_more_than_the_disk_has_room_for_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 99})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    refused(folder, made(("a", bytes(100))), "room")


def test_a_file_does_not_become_more_than_it_announces(folder: Path) -> None:
    data = bytearray(made(("bomb", bytes(1_000_000)), level=9))
    at = data.index(b"PK\x01\x02") + 24
    assert struct.unpack_from("<L", data, at) == (1_000_000,)
    struct.pack_into("<L", data, at, 100)
    refused(folder, bytes(data), "damaged", limits=UnpackLimits(size=100))


def test_too_many_files_are_refused(folder: Path) -> None:
    data = made(*((f"f{index}", b"") for index in range(11)))
    refused(folder, data, "more than 10 files", limits=UnpackLimits(entries=10))
    lying = bytearray(data)
    struct.pack_into("<HH", lying, lying.index(b"PK\x05\x06") + 8, 1, 1)
    refused(folder, bytes(lying), "more than 10 files", limits=UnpackLimits(entries=10))


def test_a_list_of_files_that_is_too_long_to_be_read_is_refused(folder: Path) -> None:
    data = made((f"a{'x' * 1000}", b""))
    refused(folder, data, "list of them that is too long", limits=UnpackLimits(directory=500))


def test_the_lengths_of_a_large_archive_count_too(folder: Path) -> None:
    data = bytearray(made(("a", b"x")))
    end = data.index(b"PK\x05\x06")
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, 2**40, end)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    refused(folder, bytes(data[:end] + record + locator + data[end:]), "too long")


def test_files_that_share_their_bytes_are_refused(folder: Path) -> None:
    """A zip can hold the same bytes in many files, each of which is in order by itself: one quotes all that follow."""
    inner = made(("b", bytes(100_000)))
    quoted, listed = inner[: inner.index(b"PK\x01\x02")], inner[inner.index(b"PK\x01\x02") : inner.index(b"PK\x05\x06")]
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as opened:
        opened.writestr("a", quoted)
    outer = body.getvalue()
    start, end = outer.index(b"PK\x01\x02", outer.index(quoted) + len(quoted)), outer.rindex(b"PK\x05\x06")
    entry = bytearray(listed)
    struct.pack_into("<L", entry, 42, outer.index(quoted))  # where its header lies
    both = outer[start:end] + bytes(entry)
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, len(both), start, 0)
    data = outer[:start] + both + tail
    assert [info.filename for info in zipfile.ZipFile(io.BytesIO(data)).infolist()] == ["a", "b"]
    refused(folder, data, "files that overlap")


@pytest.mark.parametrize("change", ["encrypted", "unusual"])
def test_what_cannot_be_read_by_all_is_refused(folder: Path, change: str) -> None:
    data = bytearray(made(("a", b"x" * 100)))
    entry = data.index(b"PK\x01\x02")
    if change == "encrypted":
        data[entry + 8] |= 1
    else:
        struct.pack_into("<H", data, entry + 10, 12)
    refused(folder, bytes(data), "encrypted or packed unusually|damaged")


def test_a_body_that_is_no_zip_is_refused(folder: Path) -> None:
    refused(folder, b"", "no zip")
    refused(folder, b"x" * 100_000, "no zip")


def test_a_zip_without_files_unpacks_to_nothing(folder: Path) -> None:
    assert unpack(archive(folder, made()), folder) == ()


@posix
def test_modes_are_restored_without_what_is_dangerous(folder: Path) -> None:
    modes = {"run": 0o755, "private": 0o600, "all": 0o777, "set": 0o4755, "none": 0o000, "read": 0o444}
    data = made(*((with_mode(name, stat.S_IFREG | mode), b"x") for name, mode in modes.items()))
    unpack(archive(folder, data), folder)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert found == {
        "run": 0o755,
        "private": 0o600,
        "all": 0o755,
        "set": 0o755,
        "none": 0o666 & ~_umask(),
        "read": 0o644,
    }


def test_what_ends_the_work_leaves_nothing(folder: Path) -> None:
    def check() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        unpack(archive(folder, made(("a", b"x"))), folder, check=check)
    assert list(folder.iterdir()) == []


names = st.lists(
    st.text(
        st.characters(exclude_characters='":<>|*?\r\n\\/\0', exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20
    )
    .filter(lambda part: part not in {".", ".."} and part.strip(". ") == part)
    .filter(lambda part: len(part.encode()) < 200),
    min_size=1,
    max_size=3,
).map("/".join)


@posix
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(names, st.binary(max_size=100), max_size=5), st.integers(0, 9))
def test_what_is_packed_comes_out_again(contents: Mapping[str, bytes], level: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, out = Path(name, "root"), Path(name, "out")
        root.mkdir()
        out.mkdir()
        for path, content in contents.items():
            target = root / path
            if any(parent.is_file() for parent in target.parents) or target.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        files = [path for path in root.rglob("*") if path.is_file()]
        body = Path(name, "body")
        body.write_bytes(b"".join(zip_pieces(zip_entries(files, root), level=level)))
        unpack(body, out)
        assert there(out) == there(root)


@given(st.text())
def test_no_name_whatever_is_a_path_elsewhere(name: str) -> None:
    try:
        path = PurePosixPath(safe_path(name).as_posix())
    except ProtocolError:
        return
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert path.parts
    assert "\0" not in str(path)


@settings(deadline=None)
@given(st.data())
def test_a_damaged_zip_is_refused_or_harmless(data: st.DataObject) -> None:
    """Some bytes are others: nothing but our own error comes of it, and nothing outside of the folder."""
    body = bytearray(made(("a", b"hello" * 20), ("sub/b", bytes(50)), level=1))
    for _ in range(data.draw(st.integers(1, 3))):
        # The end has the most to say about where everything is.
        body[-data.draw(st.integers(1, len(body)))] = data.draw(st.sampled_from([0, 1, 2, 46, 47, 127, 128, 255]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "folder")
        folder.mkdir()
        path = archive(folder, bytes(body))
        try:
            unpack(path, folder)
        except ProtocolError:
            assert list(folder.iterdir()) == []
        assert {one.name for one in Path(name).iterdir()} == {"folder", "archive.zip"}


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now
