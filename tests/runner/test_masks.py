"""Values that must not be kept are found, and are not kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.model import Values
from checkpoint_action.runner.masks import MaskWatcher, without_secrets


def masks(data: bytes, *cuts: int) -> set[str]:
    watcher = MaskWatcher()
    at = 0
    for cut in (*sorted(cuts), len(data)):
        watcher.write(data[at:cut])
        at = max(at, cut)
    watcher.close()
    return watcher.values


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (b"nothing\n", set()),
        (b"::add-mask::s3cret\n", {"s3cret"}),
        (b"::add-mask::s3cret", {"s3cret"}),
        (b"before\n  ::add-mask::s3cret\r\nafter\n", {"s3cret"}),
        (b"::add-mask::\n", set()),
        (b"::add-mask::a\n::add-mask::b\n", {"a", "b"}),
        (b"::add-mask::one%0Atwo%250A\n", {"one\ntwo%0A", "one", "two%0A"}),
        (b"::add-mask::\xff\n", {"\udcff"}),
    ],
)
def test_masks_are_found(data: bytes, values: set[str]) -> None:
    assert masks(data) == values


@given(st.lists(st.integers(0, 60), max_size=6))
def test_masks_are_found_wherever_the_pieces_are_cut(cuts: list[int]) -> None:
    data = b"x\n::add-mask::first\nbetween ::add-mas\n::add-mask::second"
    assert masks(data, *cuts) == {"first", "second"}


def test_a_mask_without_an_end_does_not_fill_the_memory() -> None:
    watcher = MaskWatcher()
    watcher.write(b"::add-mask::")
    for _ in range(64):
        watcher.write(bytes(1 << 18))
    assert len(watcher._rest) <= (1 << 20) + (1 << 18)


def test_a_value_with_a_secret_in_it_is_withheld_by_name() -> None:
    values = Values({"A": "x", "TOKEN": "Bearer s3cret"}, ("/a", "/s3cret"), {"key": "s3cret", "v": "1"}, "by s3cret")
    kept, withheld = without_secrets(values, {"s3cret", ""})
    assert kept == Values({"A": "x"}, ("/a",), {"v": "1"}, "by ***")
    assert withheld == ("TOKEN", "outputs.key", "PATH")


def test_without_secrets_all_is_kept() -> None:
    values = Values({"A": "x"}, ("/a",), {"v": "1"}, "s")
    assert without_secrets(values, ()) == (values, ())
    assert without_secrets(values, {"other"}) == (values, ())


def test_a_secret_within_a_longer_one_leaves_nothing_in_the_summary() -> None:
    assert without_secrets(Values(summary="abc-abcdef"), {"abc", "abcdef"})[0].summary == "***-***"
