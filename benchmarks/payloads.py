"""Trees of files to store, the same on every machine."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["MIB", "PAYLOADS", "mixed", "single", "small"]

MIB = 1 << 20
_CHUNK = 4 * MIB
_LETTERS = bytes(b"etaoin shrdlu\n=()"[(n * 17) >> 8] for n in range(256))
"""Maps random bytes to 17 letters, which leaves about half of them to a compressor."""


def mixed(folder: Path, size: int = 1024 * MIB) -> None:
    """Files from 1 KiB to 64 MiB of ``size`` bytes in all; half of them cannot be compressed."""
    chance = random.Random(1)
    left, number = size, 0
    while left > 0:
        length = min(left, int(2 ** chance.uniform(10, 26)))
        path = folder / f"part{number % 40:02d}" / f"file{number:05d}.bin"
        _write(path, length, chance, is_text=number % 2 == 0)
        left -= length
        number += 1


def small(folder: Path, count: int = 20_000) -> None:
    """``count`` files of up to 8 KiB in a hundred folders; half of them cannot be compressed."""
    chance = random.Random(2)
    for number in range(count):
        path = folder / f"pkg{number % 100:02d}" / f"module{number:05d}.o"
        _write(path, chance.randrange(8192), chance, is_text=number % 2 == 0)


def single(folder: Path, size: int = 4096 * MIB) -> None:
    """One file of ``size`` bytes; half of it cannot be compressed."""
    chance = random.Random(3)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "image.bin").open("wb") as file:
        for number in range(-(-size // _CHUNK)):
            piece = chance.randbytes(min(_CHUNK, size - number * _CHUNK))
            file.write(piece.translate(_LETTERS) if number % 2 else piece)


def _write(path: Path, length: int, chance: random.Random, *, is_text: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for at in range(0, length, _CHUNK):
            piece = chance.randbytes(min(_CHUNK, length - at))
            file.write(piece.translate(_LETTERS) if is_text else piece)


PAYLOADS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "mixed": ("1 GiB of mixed files", mixed),
    "small": ("20,000 small files", small),
    "single": ("one file of 4 GiB", single),
}
"""What each is called, and what makes it in an empty folder."""
