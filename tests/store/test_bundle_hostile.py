"""Archives made by hand: refused with a ``BundleError``, and nothing outside the target is touched."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import tarfile
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Entry, Layer
from checkpoint_action.store import bundle, paths, pieces, workers
from checkpoint_action.store.apply import apply_layer
from checkpoint_action.store.bundle import END_FRAME
from checkpoint_action.store.frames import note
from tests.store.tars import BUILD, END, HEADER, frame, made, member, tar_of
from tests.store.trees import archive, dir_entry, file_entry, layer_of, link_entry, nothing_else, scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and odd names as POSIX has them")


@pytest.fixture
def fence(tmp_path: Path) -> Iterator[Path]:
    """A folder to work in whose surroundings must stay as they are."""
    work = tmp_path / "fence" / "work"
    work.mkdir(parents=True)
    (tmp_path / "fence" / "outside").mkdir()
    (tmp_path / "fence" / "outside" / "precious").write_text("precious")
    yield work
    (work / "side").mkdir(exist_ok=True)
    assert os.listdir(work / "side") == []
    outside = {path for path in scan(tmp_path) if not path.startswith("fence/work/")}
    assert outside == {"fence", "fence/work", "fence/outside", "fence/outside/precious"}
    assert (tmp_path / "fence" / "outside" / "precious").read_text() == "precious"


def refused(packed: Path, layer: Layer, work: Path, match: str) -> None:
    with pytest.raises(BundleError, match=match):
        bundle.unpack_layer(packed, "build", layer, work / "side")


# Members that the manifest does not name, whatever they are called


@pytest.mark.parametrize(
    "path",
    ["../x", "/abs", "a/../../x", "a//x", "./x", "x/.", "..", "", "a\\..\\x", "C:x", "C:\\x", "\\\\host\\x", "other"],
)
def test_a_member_that_is_not_in_the_manifest_is_refused(fence: Path, path: str) -> None:
    packed = made(fence, tar_of(member("good", b"x"), member(path, b"x")))
    refused(packed, Layer((file_entry("good"),)), fence, "the manifest says")


@pytest.mark.parametrize("path", ["../x", "/etc/x", "../../layers/build/x"])
def test_a_member_outside_the_layers_folder_is_refused(fence: Path, path: str) -> None:
    packed = made(fence, tar_of(member("good", b"x"), member(path, b"x", prefix="")))
    refused(packed, Layer((file_entry("good"),)), fence, "the manifest says")


# A manifest that was made by hand as well


@pytest.mark.parametrize(
    "path",
    ["../x", "/abs", "a/../../x", "a//x", "./x", "x/.", "..", ".", "", "a/", "n\0l", "x" * 256, "d/" * 3000 + "x"],
)
def test_a_manifest_with_a_path_that_leads_out_is_refused(fence: Path, path: str) -> None:
    packed = made(fence, tar_of(member("good", b"x")))
    refused(packed, Layer((file_entry(path),)), fence, "refused path")
    with pytest.raises(BundleError, match="refused path"):
        apply_layer(fence, fence, Layer((file_entry(path),)), nothing_else)
    with pytest.raises(BundleError, match="refused path"):
        apply_layer(fence, fence, Layer(deleted=(path,)), nothing_else)


def test_a_link_and_then_something_through_it_is_refused(fence: Path) -> None:
    layer = Layer((link_entry("l", "../../outside"), file_entry("l/x", b"evil")))
    packed = made(fence, tar_of(member("l", kind=tarfile.SYMTYPE, target="../../outside"), member("l/x", b"evil")))
    refused(packed, layer, fence, "below 'l'")


def test_a_link_of_an_earlier_layer_is_not_written_through(fence: Path) -> None:
    root = fence / "root"
    root.mkdir()
    link = Layer((link_entry("l", "../../outside"),))
    packed = made(fence, tar_of(member("l", kind=tarfile.SYMTYPE, target="../../outside")))
    bundle.unpack_layer(packed, "build", link, fence / "side")
    apply_layer(fence / "side", root, link, nothing_else)
    layer = Layer((file_entry("l/x", b"evil"),))
    packed = made(fence, tar_of(member("l/x", b"evil")))
    bundle.unpack_layer(packed, "build", layer, fence / "side")
    with pytest.raises(BundleError, match="l/x is below l, which is a link"):
        apply_layer(fence / "side", root, layer, nothing_else)
    shutil.rmtree(fence / "side")


@pytest.mark.parametrize(
    ("layer", "match"),
    [
        (Layer((file_entry("a"), file_entry("a"))), "twice"),
        (Layer((file_entry("a"),), ("a",)), "twice"),
        (Layer(deleted=("a", "a")), "twice"),
        (Layer((file_entry("a"), file_entry("a/b"))), "below"),
        (Layer((file_entry("a/b"),), ("a",)), "below"),
        (Layer((dataclasses.replace(file_entry("a"), size=-1),)), "impossible"),
        (Layer((dataclasses.replace(file_entry("a"), sha256=""),)), "impossible"),
        (Layer((dataclasses.replace(file_entry("a"), mode=0o200644),)), "impossible mode"),
        (Layer((dataclasses.replace(file_entry("a"), mtime_ns=1 << 80),)), "impossible time"),
        (Layer((dataclasses.replace(dir_entry("a"), size=1),)), "no file"),
        (Layer((dataclasses.replace(dir_entry("a"), target="x"),)), "no link"),
        (Layer((link_entry("a", ""),)), "no target"),
        (Layer((link_entry("a", "x\0y"),)), "NUL"),
        (Layer((link_entry("a", "x" * 5000),)), "too long"),
        (Layer((file_entry("a", b"x" * (1 << 20)), dataclasses.replace(file_entry("b"), size=1 << 60))), "no room"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(fence: Path, layer: Layer, match: str) -> None:
    refused(made(fence, tar_of(member("a", b"x"))), layer, fence, match)


@pytest.mark.parametrize(
    ("first", "second"), [("Readme", "README"), ("\u00e9", "e\u0301"), ("D/x", "d/y"), ("stra\u00dfe", "STRASSE")]
)
def test_names_that_are_one_to_the_filesystem_are_refused_only_there(
    fence: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    layer = Layer((file_entry(first), file_entry(second)))
    packed = made(fence, tar_of(*[member(name, b"x") for name in sorted((first, second))]))
    if not paths.folds_case(fence):
        bundle.unpack_layer(packed, "build", layer, fence / "side")
        shutil.rmtree(fence / "side")
    monkeypatch.setattr(paths, "folds_case", lambda folder: True)
    refused(packed, layer, fence, "the same name on this filesystem")
    with pytest.raises(BundleError, match="the same name on this filesystem"):
        apply_layer(fence, fence, layer, nothing_else)


def test_looking_whether_case_is_folded_leaves_no_trace(fence: Path) -> None:
    before = fence.stat().st_mtime_ns
    paths.folds_case(fence)
    assert os.listdir(fence) == []
    assert fence.stat().st_mtime_ns == before


# Members that are not what the manifest says


@pytest.mark.parametrize(
    "kind",
    [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"S", b"x", b"g", b"Z"],
)
def test_devices_pipes_hard_links_and_other_kinds_are_refused(fence: Path, kind: bytes) -> None:
    info, _ = member("a", kind=kind, target="../../outside/precious" if kind == tarfile.LNKTYPE else "")
    block = info.tobuf(tarfile.GNU_FORMAT)
    refused(made(fence, block), Layer((file_entry("a", b""),)), fence, "the manifest says")


@pytest.mark.parametrize(
    ("found", "entry"),
    [
        (member("a", b"y"), file_entry("a", b"x")),
        (member("a", b"xx"), file_entry("a", b"x")),
        (member("a", b""), file_entry("a", b"x")),
        (member("a", kind=tarfile.DIRTYPE), file_entry("a", b"")),
        (member("a", b""), dir_entry("a")),
        (member("a", kind=tarfile.SYMTYPE, target="/etc"), link_entry("a", "b")),
        (member("a", kind=tarfile.SYMTYPE, target="/etc"), dir_entry("a")),
        (member("a", kind=tarfile.SYMTYPE, target="/etc"), file_entry("a", b"")),
    ],
)
def test_a_member_other_than_in_the_manifest_is_refused(
    fence: Path, found: tuple[tarfile.TarInfo, bytes], entry: Entry
) -> None:
    refused(made(fence, tar_of(found)), Layer((entry,)), fence, "manifest says")


def test_a_member_that_is_there_twice_is_refused(fence: Path) -> None:
    one = tar_of(member("a", b"x"))
    refused(made(fence, one + one), Layer((file_entry("a"),)), fence, "the manifest says")
    refused(made(fence, one, one), Layer((file_entry("a"),)), fence, "the manifest says")


def test_what_is_missing_is_named(fence: Path) -> None:
    packed = made(fence, tar_of(member("a", b"x")))
    refused(packed, Layer((file_entry("a"), file_entry("b"))), fence, "too early")


def test_members_of_another_layer_do_not_count(fence: Path) -> None:
    packed = made(fence, tar_of(member("a", b"x", prefix="layers/build2/")))
    refused(packed, Layer((file_entry("a"),)), fence, "the manifest says")


def test_an_archive_without_its_end_is_refused(fence: Path) -> None:
    packed = made(fence, tar_of(member("a", b"x")), end=b"")
    refused(packed, Layer((file_entry("a"),)), fence, "cut off")


def test_a_long_name_for_a_short_one_is_refused(fence: Path) -> None:
    long = tarfile.TarInfo("././@LongLink")
    long.type = tarfile.GNUTYPE_LONGNAME
    following = tar_of(member("a", b"x"))
    for content in [b"layers/build/a\0", b"layers/build/a\0b\0", b"y" * 70_000, b"layers/build/../../x\0"]:
        long.size = len(content)
        name = long.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)
        refused(made(fence, name + following), Layer((file_entry("a"),)), fence, "the manifest says")


@pytest.mark.parametrize("change", ["mode", "mtime", "uid", "uname", "checksum", "padding", "after"])
def test_a_header_or_padding_with_anything_else_in_it_is_refused(fence: Path, change: str) -> None:
    info, content = member("a", b"x")
    if change in ("mode", "mtime", "uid"):
        setattr(info, change, 0o4755)
    if change == "uname":
        info.uname = "root"
    tar = bytearray(tar_of((info, content)))
    if change == "checksum":
        tar[150] ^= 1
    if change == "padding":
        tar[-1] = 1
    if change == "after":
        tar += bytes(512)
    match = {"padding": "something after 'a'", "after": "more than the manifest says"}.get(change, "the manifest says")
    refused(made(fence, bytes(tar)), Layer((file_entry("a"),)), fence, match)


def test_a_bomb_is_not_unpacked(fence: Path) -> None:
    zeros = bytes(64 << 20)
    tar = tar_of(member("a", zeros))
    (fence / "one").mkdir()
    (fence / "two").mkdir()
    as_frame = made(fence, tar)
    as_pieces = made(fence / "one", tar[:512], *[bytes(pieces.LONGEST_PIECE)] * 16, tar[512 + len(zeros) :])
    as_rest = made(fence / "two", tar_of(member("a", b"x")), *[bytes(pieces.LONGEST_PIECE)] * 100)
    assert max(packed.stat().st_size for packed in (as_frame, as_pieces, as_rest)) < 50_000
    tracemalloc.start()
    refused(as_frame, Layer((file_entry("a"),)), fence, "more than the 4194304 allowed")
    refused(as_pieces, Layer((file_entry("a"),)), fence, "the manifest says")
    refused(as_rest, Layer((file_entry("a"),)), fence, "more than the manifest says")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (workers.MOST_WORKERS + 2) * pieces.LONGEST_PIECE


def test_a_frame_that_lies_about_its_size_is_refused(fence: Path) -> None:
    tar = tar_of(member("a", b"x" * 3000))
    packed = frame(tar)  # its size is in bytes 5 and 6, less 256
    assert int.from_bytes(packed[5:7], "little") + 256 == len(tar)
    for wrong in (len(tar) - 1, len(tar) + 1, 256):
        lying = packed[:5] + (wrong - 256).to_bytes(2, "little") + packed[7:]
        (fence / "archive").write_bytes(HEADER + BUILD + lying + frame(END))
        refused(fence / "archive", Layer((file_entry("a", b"x" * 3000),)), fence, "damaged|the manifest says")


@pytest.mark.parametrize(
    ("between", "match"),
    [
        (frame(b""), "in no layer"),
        (b"", "lacks the layer build"),
        (note(b"layer other"), "lacks the layer build"),
        (BUILD + BUILD, "a layer twice"),
        (note(b"layer x" * 1000), "too long"),
        (b"\x50" + BUILD[1:], "not a Zstandard frame"),
        (BUILD[:-1], "damaged|not a Zstandard frame|cut off"),
    ],
)
def test_frames_that_make_no_layers_are_refused(fence: Path, between: bytes, match: str) -> None:
    (fence / "archive").write_bytes(HEADER + between + frame(END))
    refused(fence / "archive", Layer((file_entry("a"),)), fence, match)


def test_a_frame_that_does_not_say_its_size_is_refused(fence: Path) -> None:
    sizeless = b"\x28\xb5\x2f\xfd\x00\x58" + b"\x09\x00\x00x"  # one raw block of one byte
    (fence / "archive").write_bytes(HEADER + BUILD + sizeless + frame(END))
    refused(fence / "archive", Layer((file_entry("a"),)), fence, "does not say its size")


def test_a_header_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    bundle.write_archive({"text": "x" * 100_000}, [], tmp_path / "archive")
    assert bundle.read_header(tmp_path / "archive", 100_100)["format"] == 1
    with pytest.raises(BundleError, match="more than the 2024 allowed"):
        bundle.read_header(tmp_path / "archive", 1000)


def header_tar(content: bytes) -> bytes:
    return tar_of(member("checkpoint.json", content, prefix=""))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "empty"),
        (b"not a frame at all", "not a Zstandard frame"),
        (b"PK\x03\x04", "not a Zstandard frame"),
        (b"\x28\xb5\x2f\xfd", "cut off"),
        (frame(b""), "does not start with"),
        (note(b"x"), "note where there must be content"),
        (frame(END), "does not start with"),
        (frame(b"x" * 512), "does not start with"),
        (frame(b"short"), "does not start with"),
        (frame(header_tar(b"{}")[:100]), "does not start with"),
        (frame(header_tar(b"x" * 2000)[:1024]), "not the size that it says"),
        (END_FRAME, "does not start with"),
        (frame(tar_of(member("other.json", b"{}", prefix=""))), "does not start with"),
        (
            frame(tar_of(member("checkpoint.json", kind=tarfile.SYMTYPE, target="/etc/passwd", prefix=""))),
            "does not start",
        ),
        (frame(header_tar(b"{}") + END), "not the size that it says"),
        (frame(header_tar(b"not json")), "not JSON"),
        (frame(header_tar(b"\xff\xfe\xfd")), "not JSON"),
        (frame(header_tar(b"[" * 200_000)), "not JSON"),
        (frame(header_tar(b"[1]")), "not a JSON object"),
        (frame(header_tar(b"{}")), "format None"),
        (frame(header_tar(b'{"format":true}')), "format True"),
        (frame(header_tar(b'{"format":"1"}')), "format '1'"),
        (frame(header_tar(b'{"format":2}')), "format 2, and this version reads format 1"),
        (frame(header_tar(b'{"format":1' + b"0" * 5000 + b"}")), "not JSON"),
    ],
)
def test_a_file_that_is_not_our_archive_is_refused(tmp_path: Path, data: bytes, match: str) -> None:
    (tmp_path / "archive").write_bytes(data)
    with pytest.raises(BundleError, match=match):
        bundle.read_header(tmp_path / "archive")
    if match in ("empty", "cut off"):
        assert isinstance(bundle.parse_header(data), bundle.Short)
    else:
        with pytest.raises(BundleError, match=match):
            bundle.parse_header(data + b"whatever follows")


def test_a_missing_archive_is_a_bundle_error(fence: Path) -> None:
    with pytest.raises(BundleError, match="cannot read"):
        bundle.read_header(fence / "missing")
    refused(fence / "missing", Layer(), fence, "cannot unpack")


def test_a_side_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "side").mkdir()
    (tmp_path / "side" / "mine").write_text("mine")
    packed = made(tmp_path, tar_of(member("a", b"x")))
    refused(packed, Layer((file_entry("a"),)), tmp_path, "not empty")
    assert scan(tmp_path / "side").keys() == {"mine"}


def test_set_id_bits_do_not_come_back(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    for name, mode in [("setuid", 0o4755), ("setgid", 0o2755), ("both", 0o6711)]:
        (tmp_path / "root" / name).touch()
        (tmp_path / "root" / name).chmod(mode)
    (tmp_path / "root" / "sticky").mkdir()
    (tmp_path / "root" / "sticky").chmod(0o1777)
    layer = layer_of(tmp_path / "root")
    bundle.unpack_layer(archive(tmp_path / "root", layer, tmp_path / "pack"), "build", layer, tmp_path / "side")
    (tmp_path / "new").mkdir()
    apply_layer(tmp_path / "side", tmp_path / "new", layer, nothing_else)
    modes = {path: entry.mode for path, entry in scan(tmp_path / "new").items()}
    assert modes == {"setuid": 0o755, "setgid": 0o755, "both": 0o711, "sticky": 0o777}
