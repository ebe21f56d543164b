"""Zstandard from wherever this Python has it, imported only when an archive is really read or written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["compress", "compressor", "decompress"]

FAST, THOROUGH = 1, 3
"""Levels. The second takes up to five times as long, and gains nothing on much of what is in a build."""

SAMPLE = 1 << 17
WORTH = 0.97
"""What of the fast level's bytes the thorough one may need at most, for its time to be spent."""


def compressor() -> Callable[[bytes | memoryview], bytes]:
    """What makes one whole frame of each piece given to it, with its size and a checksum; for one thread at a time.

    A sample from the middle of a large piece decides on the level. Its working memory is kept, as making it anew would
    cost more than a small piece does.
    """
    fast, thorough = (_at_level(level) for level in (FAST, THOROUGH))

    def compress(data: bytes | memoryview) -> bytes:
        if len(data) > 2 * SAMPLE:
            start = (len(data) - SAMPLE) // 2
            sample = data[start : start + SAMPLE]
            if len(thorough(sample)) > len(fast(sample)) * WORTH:
                return fast(data)
        return thorough(data)

    return compress


def compress(data: bytes | memoryview) -> bytes:
    """One whole frame, with its size and a checksum."""
    return _at_level(THOROUGH)(data)


def _at_level(level: int) -> Callable[[bytes | memoryview], bytes]:
    zstd = _library()
    options = {zstd.CompressionParameter.compression_level: level, zstd.CompressionParameter.checksum_flag: 1}
    packer = zstd.ZstdCompressor(options=options)
    return lambda data: packer.compress(data, packer.FLUSH_FRAME)


def decompress(data: bytes, size: int) -> bytes:
    """The content of one whole frame, which must have exactly ``size`` bytes; never more memory than for these.

    :raises BundleError: it is damaged, or has another size.
    """
    zstd = _library()
    reader = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 27})
    try:
        content: bytes = reader.decompress(data, size + 1)  # the one more is for the frame's end to be seen
    except zstd.ZstdError as error:
        raise BundleError(f"the archive is damaged: {error}") from error
    if len(content) != size or not reader.eof:
        raise BundleError("the archive is damaged: a frame has not the size that it says")
    return content


def _library() -> ModuleType:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 - on first use: the local runner needs none of this
        else:
            from backports import zstd  # noqa: PLC0415
    except ImportError as error:
        raise BundleError(f"no Zstandard in this Python ({error}): pip install backports.zstd") from error
    return zstd
