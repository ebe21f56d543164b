"""Our tar headers say what they are told, as Python's own reader of tar takes them."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.errors import BundleError
from checkpoint_action.store.tarstream import END, member_header

if TYPE_CHECKING:
    from typing import Literal

parts = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=150)
names = st.lists(parts, min_size=1, max_size=3).map("/".join)
LARGEST = 1 << 63


@given(
    names,
    st.sampled_from(["file", "dir", "link"]),
    st.integers(0, 0o777),
    st.integers(-LARGEST // 10**9, LARGEST // 10**9),
    parts,
)
def test_python_reads_what_was_written(
    name: str, kind: Literal["file", "dir", "link"], mode: int, mtime: int, target: str
) -> None:
    header = member_header(name, kind, target=target if kind == "link" else "", mode=mode, mtime=mtime)
    assert len(header) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(header + END)) as tar:
        (found,) = tar.getmembers()
    assert found.name == name
    assert (found.mode, found.mtime, found.uid, found.gid, found.uname, found.gname) == (mode, mtime, 0, 0, "", "")
    assert (found.isfile(), found.isdir(), found.issym()) == (kind == "file", kind == "dir", kind == "link")
    assert found.linkname == (target if kind == "link" else "")


@pytest.mark.parametrize("size", [0, 1, 8**11 - 1, 8**11, 1 << 62])
def test_sizes_of_any_kind_are_told(size: int) -> None:
    assert tarfile.TarInfo.frombuf(member_header("a", "file", size=size), "utf-8", "strict").size == size


def test_a_name_that_is_no_text_and_no_bytes_is_refused() -> None:
    with pytest.raises(BundleError, match="does not fit"):
        member_header("\ud800", "file")
