"""Trees into archives and back: what comes out is what went in, and tar can read it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Entry, Layer
from checkpoint_action.store import bundle, pieces, zstd
from checkpoint_action.store.apply import apply_layer
from checkpoint_action.store.frames import content, frames
from tests.store.trees import archive, entry_at, layer_of, nothing_else, scan

posix = pytest.mark.skipif(sys.platform == "win32", reason="names and links that Windows does not have")


def restore(packed: Path, layer: Layer, work: Path, name: str = "build") -> Path:
    """What the archive's layer gives on a fresh machine."""
    root = work / "restored"
    root.mkdir()
    bundle.unpack_layer(packed, name, layer, work / "side")
    apply_layer(work / "side", root, layer, nothing_else)
    return root


def decompressed(packed: Path) -> bytes:
    """The whole tar stream of an archive."""
    with packed.open("rb") as file:
        return b"".join([content(file, frame, 1 << 30) for frame in frames(file) if frame.note is None])


def nasty_tree(root: Path) -> None:
    """The tree of all complaints: modes, links of every kind, hidden, empty, oddly named, exact times."""
    root.mkdir()
    for name, mode in [("run", 0o755), ("locked", 0o444), ("private", 0o600), (".hidden", 0o644), ("none", 0o000)]:
        (root / name).write_bytes(name.encode() * 1000)
        (root / name).chmod(mode)
    for name in ["a:b", "a b", "line\nbreak", "-rf", "caf\u00e9", "x" * 255, "back\\slash", "trail.", "CON"]:
        (root / name).write_text(name)
    Path(os.fsdecode(os.fsencode(root) + b"/not-utf8-\xff\xe9")).write_bytes(b"raw")
    (root / "empty").mkdir()
    (root / "empty file").touch()
    (root / "sub" / "folder").mkdir(parents=True)
    (root / "sub" / "folder" / "file").write_bytes(os.urandom(70_000))
    (root / "link").symlink_to("run")
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / "to folder").symlink_to("sub/folder")
    (root / "up").symlink_to("../..")
    (root / "long link").symlink_to("y" * 300)
    os.link(root / "run", root / "hard")
    deep = root
    for _ in range(12):
        deep /= "deep folder name " + "d" * 40
        deep.mkdir()
    (deep / "file").write_bytes(b"far down")
    (root / "closed").mkdir()
    (root / "closed" / "inside").write_bytes(b"in")
    for number, path in enumerate(sorted(scan(root), reverse=True)):
        times = 1_600_000_000_123_456_789 + number * 1_000_000_007
        os.utime(root / path, ns=(times, times), follow_symlinks=False)
    (root / "closed").chmod(0o555)
    os.utime(root / "empty", ns=(-1_500_000_001, -1_500_000_001))


@posix
def test_a_nasty_tree_comes_back_with_mode_type_target_time_and_digest(tmp_path: Path) -> None:
    nasty_tree(tmp_path / "root")
    before = scan(tmp_path / "root")
    layer = layer_of(tmp_path / "root")
    root = restore(archive(tmp_path / "root", layer, tmp_path / "pack"), layer, tmp_path)
    assert scan(root) == before
    assert scan(tmp_path / "root") == before


names = st.one_of(
    st.sampled_from(["a", "b", "A", ".x", "ab", "a-b", "a b"]),
    st.binary(min_size=1, max_size=6)
    .filter(lambda raw: not {0, 47} & set(raw) and raw not in (b".", b".."))
    .map(os.fsdecode),
)
times = st.integers(-(10**18), 4 * 10**18)
leaves = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=2000), st.sampled_from([0o644, 0o755, 0o444, 0o600, 0o4755]), times),
    st.tuples(st.just("link"), names, st.just(0o777), times),
)
tree_shapes = st.recursive(
    st.dictionaries(names, leaves, max_size=4),
    lambda inner: st.dictionaries(names, inner | leaves, max_size=4),
    max_leaves=12,
)


def make(folder: Path, shape: dict[str, object]) -> None:
    folder.mkdir()
    for name, value in shape.items():
        path = folder / name
        if isinstance(value, dict):
            make(path, value)
            path.chmod(0o555 if len(value) % 2 else 0o750)
            continue
        assert isinstance(value, tuple)
        kind, content, mode, time = value
        if kind == "file":
            path.write_bytes(content)
            path.chmod(mode)
        else:
            path.symlink_to(content)
        os.utime(path, ns=(time, time), follow_symlinks=False)


@posix
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree_shapes)
def test_any_tree_comes_back(shape: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make(work / "root", shape)
        layer = layer_of(work / "root")
        root = restore(archive(work / "root", layer, work / "pack"), layer, work)
        wanted = {
            path: dataclasses.replace(entry, mode=entry.mode & 0o777) for path, entry in scan(work / "root").items()
        }
        assert scan(root) == wanted


@posix
@pytest.mark.parametrize("tool", ["zstd", "python"])
def test_gnu_tar_lists_and_extracts_it(tmp_path: Path, tool: str) -> None:
    nasty_tree(tmp_path / "root")
    packed = archive(tmp_path / "root", layer_of(tmp_path / "root"), tmp_path / "pack")
    if tool == "zstd" and shutil.which("zstd"):
        stream = subprocess.run(["zstd", "-dcq", packed], capture_output=True, check=True).stdout
    else:
        stream = decompressed(packed)
    listed = subprocess.run(["tar", "-tf", "-"], input=stream, capture_output=True, check=True)
    assert listed.stderr == b""
    assert listed.stdout.splitlines()[0] == b"checkpoint.json"
    (tmp_path / "out").mkdir()
    taken = subprocess.run(["tar", "-xpf", "-", "-C", tmp_path / "out"], input=stream, capture_output=True, check=True)
    assert all(b"implausibly old time stamp" in line for line in taken.stderr.splitlines())  # it is from 1969
    assert json.loads((tmp_path / "out" / "checkpoint.json").read_text()) == {"format": 1, "job": "demo"}
    whole_seconds = {
        path: dataclasses.replace(entry, mtime_ns=entry.mtime_ns // 10**9 * 10**9)
        for path, entry in scan(tmp_path / "root").items()
    }
    assert scan(tmp_path / "out" / "layers" / "build") == whole_seconds


def test_python_tarfile_reads_it(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(b"content")
    packed = archive(tmp_path / "root", layer_of(tmp_path / "root"), tmp_path / "pack")
    (tmp_path / "plain.tar").write_bytes(decompressed(packed))
    with tarfile.open(tmp_path / "plain.tar") as tar:
        assert tar.getnames() == ["checkpoint.json", "layers/build/a"]
        file = tar.extractfile("layers/build/a")
        assert file is not None
        assert file.read() == b"content"


def test_each_of_several_layers_is_found_and_an_empty_one_is_no_problem(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ["one", "two", "one-more"]:
        (root / name).write_text(f"content of {name}")
    parts = {"one": ["one"], "nothing": [], "two": ["two"], "one-more": ["one-more"]}
    layers = {name: Layer(tuple(entry_at(root, path) for path in paths)) for name, paths in parts.items()}
    for name, layer in layers.items():
        bundle.pack_layer(root, name, layer, tmp_path / name)
    bundle.write_archive({}, [tmp_path / name for name in layers], tmp_path / "archive")
    for name, layer in layers.items():
        bundle.unpack_layer(tmp_path / "archive", name, layer, tmp_path / f"side-{name}")
        assert sorted(os.listdir(tmp_path / f"side-{name}")) == parts[name]
    with pytest.raises(BundleError, match="lacks the layer missing"):
        bundle.unpack_layer(tmp_path / "archive", "missing", layers["one"], tmp_path / "side")


def test_layers_that_are_not_asked_for_are_not_decompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "big").write_bytes(bytes(8 << 20))
    (root / "small").write_bytes(b"small")
    for name in ["big", "small"]:
        bundle.pack_layer(root, name, layer_of(root, name), tmp_path / name)
    bundle.write_archive({}, [tmp_path / "big", tmp_path / "small"], tmp_path / "archive")
    made = 0
    true_decompress = zstd.decompress

    def counting(data: bytes, size: int) -> bytes:
        nonlocal made
        made += size
        return true_decompress(data, size)

    monkeypatch.setattr(zstd, "decompress", counting)
    bundle.unpack_layer(tmp_path / "archive", "small", layer_of(root, "small"), tmp_path / "side")
    assert 0 < made < 10_000


def test_a_large_layer_is_pieces_cut_anywhere_and_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "big").write_bytes(os.urandom(1 << 20) * 20)
    for number in range(3):
        (root / f"edge{number}").write_bytes(os.urandom(pieces.PIECE - 1000 + 500 * number))
    layer = layer_of(root)
    packed = archive(root, layer, tmp_path / "pack")
    with packed.open("rb") as file:
        sizes = [frame.content for frame in frames(file)]
    assert len(sizes) == 3 + 14
    assert set(sizes[2:-2]) == {pieces.PIECE}
    assert scan(restore(packed, layer, tmp_path)) == scan(root)


def test_whoever_wants_to_know_is_told_of_each_byte_once_it_is_in_the_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "big").write_bytes(os.urandom(9 << 20))
    told: list[int] = []
    early = bytearray()

    def grown(size: int) -> None:
        told.append(size)
        early.extend((tmp_path / "layer").read_bytes()[len(early) : size])
        assert len(early) == size

    bundle.pack_layer(root, "build", layer_of(root), tmp_path / "layer", grown=grown)
    assert told == sorted(set(told))
    assert len(told) == 1 + 5
    assert bytes(early) == (tmp_path / "layer").read_bytes()
    bundle.pack_layer(root, "build", layer_of(root), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == bytes(early)


def test_whoever_is_told_can_end_the_packing(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "big").write_bytes(os.urandom(30 << 20))
    (tmp_path / "out").mkdir()

    def grown(size: int) -> None:
        if size > 1 << 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bundle.pack_layer(
            tmp_path / "root", "build", layer_of(tmp_path / "root"), tmp_path / "out" / "layer", grown=grown
        )
    assert os.listdir(tmp_path / "out") == []


def test_a_large_file_that_changed_meanwhile_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_bytes(bytes(20 << 20))
    layer = layer_of(root)
    with (root / "a").open("r+b") as file:
        file.seek(3)
        file.write(b"x")
    (tmp_path / "out").mkdir()
    with pytest.raises(BundleError, match="a changed before it was packed"):
        bundle.pack_layer(root, "build", layer, tmp_path / "out" / "layer")
    assert os.listdir(tmp_path / "out") == []


def test_layers_are_packed_and_unpacked_where_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    root = tmp_path / "root"
    root.mkdir()
    (root / "big").write_bytes(os.urandom(1 << 20) * 10)
    layer = layer_of(root)
    assert scan(restore(archive(root, layer, tmp_path / "pack"), layer, tmp_path)) == scan(root)


def test_an_archive_can_be_sent_in_parts_and_its_header_read_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(b"content")
    layer = layer_of(tmp_path / "root")
    header = {"job": "demo", "text": [os.urandom(9).hex() for _ in range(40_000)]}
    bundle.pack_layer(tmp_path / "root", "build", layer, tmp_path / "layer")
    data = bundle.header_frame(header) + (tmp_path / "layer").read_bytes() + bundle.END_FRAME
    bundle.write_archive(header, [tmp_path / "layer"], tmp_path / "archive")
    assert (tmp_path / "archive").read_bytes() == data
    have, asked = 0, 0
    while isinstance(found := bundle.parse_header(data[:have]), bundle.Short):
        assert have < found.needed <= len(bundle.header_frame(header))
        have, asked = found.needed, asked + 1
    assert found == bundle.read_header(tmp_path / "archive") == {"format": 1, **header}
    assert have == len(bundle.header_frame(header))
    assert asked < 30
    with pytest.raises(BundleError, match="not a Zstandard frame"):
        bundle.parse_header(b"PK\x03\x04 and so on")


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1 << 20, (1 << 20) + 1])
def test_sizes_around_the_block_come_back(tmp_path: Path, size: int) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "f").write_bytes(os.urandom(size))
    layer = layer_of(tmp_path / "root")
    root = restore(archive(tmp_path / "root", layer, tmp_path / "pack"), layer, tmp_path)
    assert scan(root) == scan(tmp_path / "root")


def changed_content(root: Path) -> None:
    (root / "f").write_bytes(b"other!!")


def grown(root: Path) -> None:
    with (root / "f").open("ab") as file:
        file.write(b"more")


def shrunk(root: Path) -> None:
    os.truncate(root / "f", 2)


def gone(root: Path) -> None:
    (root / "f").unlink()


def now_a_folder(root: Path) -> None:
    gone(root)
    (root / "f").mkdir()


def now_a_link(root: Path) -> None:
    (root / "f").rename(root / "g")
    (root / "f").symlink_to("g")


def now_a_pipe(root: Path) -> None:
    gone(root)
    os.mkfifo(root / "f")


@posix
@pytest.mark.parametrize(
    "change",
    [changed_content, grown, shrunk, gone, now_a_folder, now_a_link, now_a_pipe],
    ids=lambda change: change.__name__,
)
def test_a_file_that_changed_meanwhile_is_named_and_nothing_is_written(tmp_path: Path, change: object) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "f").write_bytes(b"content")
    layer = layer_of(root)
    assert callable(change)
    change(root)
    (tmp_path / "out").mkdir()
    with pytest.raises(BundleError, match=r"\bf\b"):
        bundle.pack_layer(root, "build", layer, tmp_path / "out" / "layer")
    assert os.listdir(tmp_path / "out") == []


@posix
@pytest.mark.parametrize("what", ["target", "type", "folder"])
def test_a_link_or_folder_that_changed_meanwhile_is_named(tmp_path: Path, what: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "link").symlink_to("folder")
    layer = layer_of(root)
    if what == "folder":
        (root / "folder").rmdir()
    else:
        (root / "link").unlink()
        if what == "target":
            (root / "link").symlink_to("elsewhere")
    with pytest.raises(BundleError, match="folder changed" if what == "folder" else "link changed"):
        bundle.pack_layer(root, "build", layer, tmp_path / "layer")


@posix
def test_packing_does_not_follow_a_folder_that_became_a_link(tmp_path: Path) -> None:
    (tmp_path / "root" / "d").mkdir(parents=True)
    (tmp_path / "root" / "d" / "f").write_text("mine")
    layer = layer_of(tmp_path / "root", "d/f")
    (tmp_path / "root" / "d").rename(tmp_path / "elsewhere")
    (tmp_path / "root" / "d").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="d/f changed"):
        bundle.pack_layer(tmp_path / "root", "build", layer, tmp_path / "layer")


def test_the_header_comes_back_with_its_format(tmp_path: Path) -> None:
    header = {"job": "demo", "text": "caf\u00e9 \udcff", "records": [{"step": "a"}]}
    bundle.write_archive(header, [], tmp_path / "archive")
    assert bundle.read_header(tmp_path / "archive") == {"format": 1, **header}


def test_the_archive_is_complete_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"the one before")
    with pytest.raises(BundleError, match="cannot write the archive"):
        bundle.write_archive({}, [tmp_path / "missing"], tmp_path / "archive")
    assert (tmp_path / "archive").read_bytes() == b"the one before"
    assert os.listdir(tmp_path) == ["archive"]


def test_what_is_not_a_packed_layer_is_not_taken_in(tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(b"no frame")
    with pytest.raises(BundleError):
        bundle.write_archive({}, [tmp_path / "layer"], tmp_path / "archive")
    (tmp_path / "layer").write_bytes(b"")
    with pytest.raises(BundleError, match="not a packed layer"):
        bundle.write_archive({}, [tmp_path / "layer"], tmp_path / "archive")
    assert not (tmp_path / "archive").exists()


@pytest.mark.parametrize("name", ["a/b", "..", "", "a\0b"])
def test_a_layer_name_is_one_plain_part(tmp_path: Path, name: str) -> None:
    with pytest.raises(BundleError, match="refused"):
        bundle.pack_layer(tmp_path, name, Layer(), tmp_path / "layer")


def test_without_zstandard_the_store_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["backports", "backports.zstd", "compression", "compression.zstd"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BundleError, match=r"pip install backports\.zstd"):
        bundle.pack_layer(tmp_path, "build", Layer(), tmp_path / "layer")


def test_a_header_of_another_format_says_so(tmp_path: Path) -> None:
    bundle.write_archive({}, [], tmp_path / "archive")
    data = decompressed(tmp_path / "archive").replace(b'"format":1', b'"format":2')
    (tmp_path / "archive").write_bytes(zstd.compress(data[:1024]))
    with pytest.raises(BundleError, match="format 2, and this version reads format 1"):
        bundle.read_header(tmp_path / "archive")


def test_packing_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(b"content" * 1000)
    first = archive(tmp_path / "root", layer_of(tmp_path / "root"), tmp_path / "one").read_bytes()
    again = archive(tmp_path / "root", layer_of(tmp_path / "root"), tmp_path / "two").read_bytes()
    assert hashlib.sha256(first).digest() == hashlib.sha256(again).digest()


def test_an_entry_of_the_future_and_of_the_past_fit_into_a_header(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").touch()
    empty = hashlib.sha256().hexdigest()
    for time in [-(1 << 63), (1 << 63) - 1]:
        layer = Layer((Entry("a", "file", 0o644, time, 0, empty),))
        bundle.pack_layer(tmp_path / "root", "build", layer, tmp_path / "layer")
