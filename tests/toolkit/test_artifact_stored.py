"""The zip of one file that is kept as it is."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.toolkit.artifact_stored import HEAD_LENGTH, StoredEntry, entry_at, stored_zip
from checkpoint_action.toolkit.artifact_unzip import unpack
from checkpoint_action.toolkit.errors import ProtocolError

if TYPE_CHECKING:
    from pathlib import Path

WIDE = {"narrow": 1 << 32, "wide": 0}


def zipped(content: bytes, *, wide_from: int = 1 << 32) -> bytes:
    head, tail = stored_zip("a.tar.zst", len(content), zlib.crc32(content), wide_from=wide_from)
    return head + content + tail


@pytest.mark.parametrize("wide_from", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("content", [b"", b"x", b"PK\x05\x06" + bytes(18) + b"PK\x03\x04", bytes(range(256)) * 999])
def test_other_readers_and_ours_find_the_file_in_it(content: bytes, wide_from: int, tmp_path: Path) -> None:
    body = zipped(content, wide_from=wide_from)
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert archive.testzip() is None
        [info] = archive.infolist()
        assert (info.filename, info.compress_type, info.flag_bits) == ("a.tar.zst", zipfile.ZIP_STORED, 0)
        assert archive.read(info) == content
    (tmp_path / "body").write_bytes(body)
    [file] = unpack(tmp_path / "body", tmp_path)
    assert file.read_bytes() == content
    entry = entry_at(body[:HEAD_LENGTH])
    assert body[entry.offset : entry.offset + entry.size] == content


@pytest.mark.parametrize("size", [0xFFFFFFFE, 0xFFFFFFFF, 0x100000000, 5 << 40])
def test_a_length_that_needs_more_than_32_bits_is_told(size: int) -> None:
    head, _tail = stored_zip("a" * 100, size, 7)
    assert len(head) <= HEAD_LENGTH
    assert entry_at(head) == StoredEntry(len(head), size)


def test_a_zip_that_another_program_made_is_no_place_to_read_in() -> None:
    for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", kind) as archive, archive.open("a", "w") as entry:
            entry.write(b"x" * 99)
        if kind == zipfile.ZIP_STORED:
            assert entry_at(file.getvalue()).size == 99
        else:
            with pytest.raises(ProtocolError, match="packed in another way"):
                entry_at(file.getvalue())


@given(st.binary(max_size=300))
def test_whatever_the_beginning_is_it_is_read_or_refused(noise: bytes) -> None:
    for start in (noise, b"PK\x03\x04" + noise, zipped(b"content", wide_from=0)[:26] + noise):
        try:
            entry = entry_at(start)
        except ProtocolError:
            continue
        assert entry.offset <= len(start)
