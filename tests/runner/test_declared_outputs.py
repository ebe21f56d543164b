"""The index of declared outputs says what asking each step would say, and asks only the likely ones."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.model import AUTO, Step
from checkpoint_action.runner import declared_outputs
from checkpoint_action.runner.ancestry import Above
from checkpoint_action.runner.declared_outputs import DeclaredOutputs
from checkpoint_action.runner.progress import covered

ROOT = Path.cwd()
PATTERNS = st.sampled_from(
    ["a", "a/", "a/b", "a/**", "*/c", "**", "a/[b]", "[[]a", "../x", "./a/../b", "!a", "!a/b/**"]
)
OUTPUTS = st.one_of(st.just("auto"), st.lists(PATTERNS, max_size=3).map(tuple))
PLACES = st.sampled_from(["a", "a/b", "a/b/c", "x/c", "b", "[a", "../x", "../x/y", ".", ""])


def step(number: int, outputs: object) -> Step:
    return Step(str(number), "x", "sh", ROOT / "sub", outputs=outputs)  # type: ignore[arg-type]  # drawn of both kinds


@given(st.lists(OUTPUTS, max_size=5), st.sets(st.integers(0, 4)), st.integers(0, 5), PLACES)
def test_the_index_agrees_with_asking_each_step(
    declared: list[tuple[str, ...] | str], removed: set[int], below: int, name: str
) -> None:
    index = DeclaredOutputs()
    for number, outputs in enumerate(declared):
        index.put(number, step(number, outputs))
    for number in removed:
        index.remove(number)
    place = str((ROOT / "sub" / name).resolve())
    asked = [number for number in range(len(declared)) if number not in removed and number < below]
    expected = any(
        declared[number] == AUTO or covered(tuple(declared[number]), ROOT / "sub", place, folder=True)
        for number in asked
    )
    found = index.leaver(place, Above(below, frozenset()))
    assert (found is not None) is expected
    assert found is None or found in asked


def test_steps_that_declare_something_else_are_not_asked() -> None:
    index = DeclaredOutputs()
    for number in range(1000):
        index.put(number, step(number, (f"out/{number}/",)))
    with mock.patch.object(declared_outputs, "covered", wraps=covered) as asked:
        assert index.leaver(str(ROOT / "sub/out/7/x"), Above(1000, frozenset())) == 7
        assert index.leaver(str(ROOT / "sub/src/7/x"), Above(1000, frozenset())) is None
    assert asked.call_count == 1
