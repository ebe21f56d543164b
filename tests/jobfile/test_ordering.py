"""Steps after all they need, and otherwise as they were written."""

from __future__ import annotations

import pytest

from checkpoint_action.jobfile.ordering import CircleError, in_order


@pytest.mark.parametrize(
    ("needs", "ordered"),
    [
        ({}, []),
        ({"a": (), "b": (), "c": ()}, ["a", "b", "c"]),
        ({"a": ("c",), "b": (), "c": ()}, ["b", "c", "a"]),
        ({"a": ("d",), "b": (), "c": ("b",), "d": ("b",)}, ["b", "c", "d", "a"]),
    ],
)
def test_a_step_comes_after_what_it_needs_and_else_stays_where_it_is(
    needs: dict[str, tuple[str, ...]], ordered: list[str]
) -> None:
    assert in_order(needs) == ordered


def test_a_circle_is_named_from_end_to_end() -> None:
    with pytest.raises(CircleError) as caught:
        in_order({"a": ("b",), "b": ("c",), "c": ("b",)})
    first, *between, last = caught.value.steps
    assert first == last
    assert {first, *between} == {"b", "c"}
    assert " -> ".join(caught.value.steps) in str(caught.value)
