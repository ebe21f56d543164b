"""Archives damaged in any way: all of a layer comes out of them, or a ``BundleError`` and nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Entry, Layer
from checkpoint_action.store import bundle
from checkpoint_action.store.apply import apply_layer
from checkpoint_action.store.frames import content, frames
from tests.store.tars import frame, made, member, tar_of
from tests.store.trees import dir_entry, file_entry, layer_of, link_entry, nothing_else, scan

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and odd names as POSIX has them")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Layer]:
    """A small archive of three layers, and the manifest of the middle one."""
    work = tmp_path_factory.mktemp("sample")
    root = work / "root"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "f").write_bytes(random.Random(1).randbytes(3000))
    (root / "d" / "text").write_bytes(b"words and more words\n" * 400)
    (root / ("long" * 40)).write_bytes(b"long")
    (root / "l").symlink_to("d/f")
    (root / "other").write_bytes(b"other")
    layer = layer_of(root, *(path for path in scan(root) if path != "other"))
    for name, part in [("first", layer_of(root, "other")), ("build", layer), ("last", layer_of(root, "d/f"))]:
        bundle.pack_layer(root, name, part, work / name)
    bundle.write_archive({"job": "demo"}, [work / name for name in ("first", "build", "last")], work / "archive")
    return (work / "archive").read_bytes(), layer


def attempt(data: bytes, layer: Layer) -> None:
    """Read and restore ``data``: all of the layer and nothing else, or a ``BundleError`` and nothing at all."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "root").mkdir()
        (work / "archive").write_bytes(data)
        try:
            header = bundle.read_header(work / "archive")
        except BundleError:
            pass
        else:
            assert header["format"] == 1
        try:
            bundle.unpack_layer(work / "archive", "build", layer, work / "side")
        except BundleError:
            assert os.listdir(work / "side") == []
        else:
            apply_layer(work / "side", work / "root", layer, nothing_else)
            assert scan(work / "root") == {entry.path: entry for entry in layer.entries}
        assert set(os.listdir(work)) == {"root", "archive", "side"}


calm = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@calm
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=3))
def test_flipped_bits(sample: tuple[bytes, Layer], flips: list[tuple[float, int]]) -> None:
    data = bytearray(sample[0])
    for place, bit in flips:
        data[int(place * len(data))] ^= 1 << bit
    attempt(bytes(data), sample[1])


@calm
@given(st.floats(0, 1, exclude_max=True))
def test_truncation_is_always_found(sample: tuple[bytes, Layer], place: float) -> None:
    data = sample[0][: int(place * len(sample[0]))]
    attempt(data, sample[1])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "archive").write_bytes(data)
        with pytest.raises(BundleError):
            bundle.unpack_layer(Path(folder, "archive"), "build", sample[1], Path(folder, "side"))


@calm
@given(st.lists(st.integers(0, 7), max_size=10))
def test_swapped_missing_and_repeated_frames(sample: tuple[bytes, Layer], order: list[int]) -> None:
    parts = [sample[0][part.offset : part.offset + part.size] for part in frames(io.BytesIO(sample[0]))]
    assert len(parts) == 8
    attempt(b"".join(parts[number] for number in order), sample[1])


@calm
@given(st.floats(0, 1), st.binary(max_size=40), st.integers(0, 40))
def test_bytes_put_in_or_taken_out(sample: tuple[bytes, Layer], place: float, new: bytes, gone: int) -> None:
    at = int(place * len(sample[0]))
    attempt(sample[0][:at] + new + sample[0][at + gone :], sample[1])


@calm
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_changed_tar_stream_in_sound_frames(sample: tuple[bytes, Layer], changes: list[tuple[float, int]]) -> None:
    file = io.BytesIO(sample[0])
    found = list(frames(file))
    tar = bytearray(content(file, found[4], 1 << 20))
    for place, value in changes:
        tar[int(place * len(tar))] = value
    parts = [sample[0][part.offset : part.offset + part.size] for part in found]
    parts[4] = frame(bytes(tar))
    attempt(b"".join(parts), sample[1])


odd_parts = st.sampled_from(["a", "b", "..", ".", "", "l", "\0", "A", "\\", "C:", "x" * 300])
odd_paths = st.lists(odd_parts, max_size=4).map("/".join)


@calm
@given(
    st.lists(st.tuples(odd_paths, st.sampled_from(["file", "dir", "link"])), max_size=5),
    st.lists(odd_paths, max_size=3),
    st.randoms(use_true_random=False),
)
def test_a_hostile_manifest_with_the_members_to_match(
    members: list[tuple[str, str]], deleted: list[str], chance: random.Random
) -> None:
    makers: dict[str, Callable[[str], Entry]] = {
        "file": file_entry,
        "dir": dir_entry,
        "link": lambda path: link_entry(path, "../../outside"),
    }
    types = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}
    layer = Layer(tuple(makers[kind](path) for path, kind in members), tuple(deleted), dict.fromkeys(deleted, "dir"))
    tar = [
        member(
            path, b"x" if kind == "file" else b"", kind=types[kind], target="../../outside" if kind == "link" else ""
        )
        for path, kind in members
    ]
    chance.shuffle(tar)
    with tempfile.TemporaryDirectory() as folder:
        work, outside = Path(folder, "in", "work"), Path(folder, "outside")
        (work / "root" / "a").mkdir(parents=True)
        (work / "root" / "b").symlink_to("../../../outside")
        outside.mkdir()
        (outside / "a").write_text("precious")
        try:
            bundle.unpack_layer(made(work, tar_of(*tar)), "build", layer, work / "side")
            apply_layer(work / "side", work / "root", layer, nothing_else)
        except BundleError:
            pass
        assert {path: entry.content for path, entry in scan(outside).items()} == {
            "a": hashlib.sha256(b"precious").hexdigest()
        }
        assert set(os.listdir(work)) <= {"root", "side", "archive"}
        assert set(os.listdir(folder)) == {"in", "outside"}
        assert os.listdir(Path(folder, "in")) == ["work"]


def test_the_header_of_the_sample_is_what_it_was(sample: tuple[bytes, Layer], tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(sample[0])
    assert json.loads(json.dumps(bundle.read_header(tmp_path / "archive"))) == {"format": 1, "job": "demo"}
