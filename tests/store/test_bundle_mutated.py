"""Thousands of archives at random: all of a layer comes out of one, or a ``BundleError`` and nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import random
import shutil
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Layer
from checkpoint_action.store import bundle, pieces, workers
from checkpoint_action.store.frames import content, frames, note
from tests.store.tars import BUILD, END, HEADER, frame
from tests.store.trees import layer_of, scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="links, modes and odd names as POSIX has them"),
    pytest.mark.slow,
]

PARTS = 5
ARCHIVES = 1_000
SEED = 20_260_101


class Sample:
    """A sound archive, in parts: what mutations begin with."""

    def __init__(self, work: Path) -> None:
        root = work / "root"
        (root / "d" / "e").mkdir(parents=True)
        (root / "d" / "f").write_bytes(random.Random(1).randbytes(3000))
        (root / "d" / "text").write_bytes(b"words and more words\n" * 4000)
        (root / ("long" * 40)).write_bytes(b"long")
        (root / "d" / "l").symlink_to("../d/f")
        (root / "empty").touch()
        self.layer = layer_of(root)
        bundle.pack_layer(root, "build", self.layer, work / "layer")
        bundle.write_archive({"job": "demo"}, [work / "layer"], work / "whole")
        self.whole = (work / "whole").read_bytes()
        file = io.BytesIO(self.whole)
        rows = list(frames(file))
        self.tar = b"".join(content(file, row, 1 << 20) for row in rows[2:-1])
        self.header = self.whole[: rows[0].size]


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    """The data as frames, cut anywhere."""
    places = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(5)))
    return [frame(data[a:b]) for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def flipped(data: bytes, chance: random.Random, most: int = 4) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, most)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def spliced(data: bytes, chance: random.Random) -> bytes:
    at, gone = chance.randrange(len(data)), chance.randrange(600)
    return data[:at] + chance.randbytes(chance.choice([0, 1, 3, 512])) + data[at + gone :]


def whole_flipped(sample: Sample, chance: random.Random) -> bytes:
    return flipped(sample.whole, chance)


def whole_spliced(sample: Sample, chance: random.Random) -> bytes:
    return spliced(sample.whole, chance)


def truncated(sample: Sample, chance: random.Random) -> bytes:
    return sample.whole[: chance.randrange(len(sample.whole))]


def noise(_sample: Sample, chance: random.Random) -> bytes:
    begins = [b"", b"\x28\xb5\x2f\xfd", b"\x5c\x2a\x4d\x18", HEADER, HEADER + BUILD]
    return chance.choice(begins) + chance.randbytes(chance.randrange(400))


def framing_flipped(sample: Sample, chance: random.Random) -> bytes:
    """The first bytes of a frame, where its size and its blocks are told."""
    parts = [sample.header, BUILD, *cut(sample.tar, chance), frame(END)]
    number = chance.randrange(len(parts))
    parts[number] = flipped(parts[number][:14], chance, 2) + parts[number][14:]
    return b"".join(parts)


def shuffled(sample: Sample, chance: random.Random) -> bytes:
    parts = [sample.header, BUILD, *cut(sample.tar, chance), frame(END), note(b"layer other"), note(b"")]
    return b"".join(chance.choices(parts, k=chance.randrange(9)))


def recut(sample: Sample, chance: random.Random) -> bytes:
    """The same content in other frames, which is fine."""
    return b"".join([sample.header, BUILD, *cut(sample.tar, chance), frame(END)])


def tar_flipped(sample: Sample, chance: random.Random) -> bytes:
    return b"".join([sample.header, BUILD, *cut(flipped(sample.tar, chance), chance), frame(END)])


def tar_spliced(sample: Sample, chance: random.Random) -> bytes:
    return b"".join([sample.header, BUILD, *cut(spliced(sample.tar, chance), chance), frame(END)])


def members_moved(sample: Sample, chance: random.Random) -> bytes:
    """Blocks of the tar stream elsewhere, twice or not at all."""
    blocks = [sample.tar[at : at + 512] for at in range(0, len(sample.tar), 512)]
    first, second = sorted(chance.sample(range(len(blocks) + 1), 2))
    some = chance.choice([blocks[first:second] * 2, blocks[first:second][::-1], [], blocks[:3]])
    return b"".join([sample.header, BUILD, *cut(b"".join(blocks[:first] + some + blocks[second:]), chance), frame(END)])


BOMB = frame(bytes(pieces.LONGEST_PIECE))
LARGER_BOMB = frame(bytes(pieces.LONGEST_PIECE + 1))


def bomb(sample: Sample, chance: random.Random) -> bytes:
    parts = [sample.header, BUILD, *cut(sample.tar, chance), frame(END)]
    at = chance.randrange(1, len(parts))
    return b"".join(parts[:at] + [chance.choice([BOMB, LARGER_BOMB])] * chance.randint(1, 12) + parts[at:])


MUTATIONS: list[Callable[[Sample, random.Random], bytes]] = [
    *[whole_flipped, whole_spliced, truncated, noise, framing_flipped, framing_flipped, shuffled, recut],
    *[tar_flipped, tar_spliced, members_moved],
]


def other_manifest(layer: Layer, chance: random.Random) -> Layer:
    """A manifest that something is wrong with, or not."""
    entries = list(layer.entries)
    number = chance.randrange(len(entries))
    entry = entries[number]
    path = chance.choice(["../x", "/x", "d", "d/f/x", "d/l/x", "", "a\0b", "..", "d/../../outside/canary", "new"])
    entries[number] = chance.choice(
        [
            dataclasses.replace(entry, path=path),
            dataclasses.replace(entry, size=chance.choice([0, 1, 1 << 40, -1])),
            dataclasses.replace(entry, sha256=chance.choice(["", "0" * 64])),
            dataclasses.replace(entry, type=chance.choice(["file", "dir", "link"])),
            dataclasses.replace(entry, target=chance.choice(["", "/etc", "../../outside"])),
            dataclasses.replace(entry, mode=chance.choice([0, 0o7777, 1 << 20]), mtime_ns=chance.choice([0, 1 << 80])),
        ]
    )
    return Layer(tuple(entries), tuple(chance.sample(["d", "x", "../x"], chance.randrange(2))))


@pytest.mark.parametrize("part", range(PARTS))
def test_no_archive_harms_whatever_is_in_it(tmp_path: Path, part: int) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("precious")
    (outside / "link").symlink_to("canary")
    (tmp_path / "work").mkdir()
    sample = Sample(tmp_path)
    shutil.rmtree(tmp_path / "root")
    before = scan(tmp_path)
    wanted = {entry.path: entry.content for entry in sample.layer.entries if entry.type != "link"}
    side, packed = tmp_path / "work" / "side", tmp_path / "work" / "archive"
    restored = refused = 0
    tracemalloc.start()
    for number in range(part * ARCHIVES, (part + 1) * ARCHIVES):
        chance = random.Random(SEED + number)
        mutation = bomb if number % 50 == 0 else chance.choice(MUTATIONS)
        packed.write_bytes(mutation(sample, chance))
        layer = sample.layer if chance.random() < 0.8 else other_manifest(sample.layer, chance)
        case = f"archive {number}: {mutation.__name__}"
        try:
            bundle.unpack_layer(packed, "build", layer, side)
        except BundleError:
            refused += 1
            assert not side.exists() or os.listdir(side) == [], case
        else:
            restored += 1
            if layer is sample.layer:
                assert {path: entry.content for path, entry in scan(side).items()} == wanted, case
            shutil.rmtree(side)
        with contextlib.suppress(BundleError):
            bundle.read_header(packed)
        assert set(os.listdir(tmp_path / "work")) <= {"side", "archive"}, case
        assert set(os.listdir(tmp_path)) == {"outside", "work", "layer", "whole"}, case
        assert sorted(os.listdir(outside)) == ["canary", "link"], case
        assert (outside / "canary").read_text() == "precious", case
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (workers.MOST_WORKERS + 4) * pieces.LONGEST_PIECE
    assert restored > ARCHIVES // 20
    assert refused > ARCHIVES // 2
    shutil.rmtree(tmp_path / "work")
    del before["work"]
    assert scan(tmp_path) == before
