"""Zstandard from wherever this Python has it, imported only when an archive is really read or written."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol, cast

from checkpoint_action.errors import BundleError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Compressor", "Decompressor", "compressor", "decompressor", "failure"]

LEVEL = 3
WORTH_THREADS = 8 << 20
"""Bytes of input below which starting threads costs more than it saves."""


class Compressor(Protocol):
    """Makes one frame, piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """Take some input; give what output is ready."""
        ...

    def flush(self) -> bytes:
        """End the frame; give the rest of the output."""
        ...


class Decompressor(Protocol):
    """Reads one frame, piece by piece."""

    @property
    def eof(self) -> bool:
        """Whether the frame is over."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether no more output can come without more input."""
        ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Take some input; give at most ``max_length`` bytes of output."""
        ...


def compressor(size: int) -> Compressor:
    """A compressor for one frame of about ``size`` bytes, with a checksum, on several threads where that pays."""
    zstd = _library()
    parameter = zstd.CompressionParameter
    options = {parameter.compression_level: LEVEL, parameter.checksum_flag: 1}
    most = parameter.nb_workers.bounds()[1]  # 0 where the library was built without threads
    workers = min(4, os.cpu_count() or 1, most)
    if workers > 1 and size >= WORTH_THREADS:
        options[parameter.nb_workers] = workers
    return cast("Compressor", zstd.ZstdCompressor(options=options))


def decompressor() -> Decompressor:
    """A decompressor for one frame; it refuses one that asks for more than 128 MiB of memory."""
    zstd = _library()
    return cast("Decompressor", zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 27}))


def failure() -> type[Exception]:
    """What the library raises on data that is not what it should be."""
    return cast("type[Exception]", _library().ZstdError)


def _library() -> ModuleType:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 - on first use: the local runner needs none of this
        else:
            from backports import zstd  # noqa: PLC0415
    except ImportError as error:
        raise BundleError(f"no Zstandard in this Python ({error}): pip install backports.zstd") from error
    return zstd
