"""Boxes and lines: below what they need, never over each other, lines never through a box."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from checkpoint_action.report.layered import Layout, lay_out

Needs = dict[str, tuple[str, ...]]


def chain(count: int) -> Needs:
    return {str(number): (str(number - 1),) if number else () for number in range(count)}


def mixed(count: int, seed: int, reach: int) -> Needs:
    draw = random.Random(seed)
    needs: Needs = {}
    for number in range(count):
        earlier = range(max(0, number - reach), number)
        needs[str(number)] = tuple({str(draw.choice(earlier)) for _ in range(draw.randrange(4))}) if earlier else ()
    return needs


GRAPHS: dict[str, Needs] = {
    "nothing": {},
    "one": {"a": ()},
    "a chain": chain(300),
    "all apart": {str(number): () for number in range(300)},
    "a fan": {"a": (), **{str(number): ("a",) for number in range(80)}},
    "a funnel": {**{str(number): () for number in range(80)}, "z": tuple(str(number) for number in range(80))},
    "every one needs all before": {str(number): tuple(map(str, range(number))) for number in range(60)},
    **{f"mixed {seed}": mixed(300, seed, 5 + 60 * (seed % 3)) for seed in range(6)},
}


def laid(needs: Needs) -> Layout:
    draw = random.Random(7)
    return lay_out(needs, {name: draw.uniform(60, 800 if len(needs) < 100 else 200) for name in needs})


@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_lie_below_what_they_need_and_never_over_each_other(name: str) -> None:
    needs = GRAPHS[name]
    layout = laid(needs)
    assert set(layout.boxes) == set(needs)
    for box, needed in needs.items():
        assert all(layout.boxes[box].row > layout.boxes[other].row for other in needed)
    rows: dict[int, list[tuple[float, float]]] = {}
    for found in layout.boxes.values():
        rows.setdefault(found.row, []).append((found.x - found.width / 2, found.x + found.width / 2))
    assert sorted(rows) == list(range(layout.rows))
    for spans in rows.values():
        spans.sort()
        assert spans[0][0] >= -0.01
        assert spans[-1][1] <= layout.width + 0.01
        assert all(left[1] + 10 <= right[0] for left, right in pairwise(spans))


@pytest.mark.parametrize("name", GRAPHS)
def test_each_line_goes_from_box_to_box_and_through_none(name: str) -> None:
    needs = GRAPHS[name]
    layout = laid(needs)
    assert set(layout.lines) == {(other, box) for box, needed in needs.items() for other in needed}
    spans: dict[int, list[tuple[float, float]]] = {}
    for found in layout.boxes.values():
        spans.setdefault(found.row, []).append((found.x - found.width / 2, found.x + found.width / 2))
    for (need, box), points in layout.lines.items():
        first, last = layout.boxes[need], layout.boxes[box]
        assert len(points) == last.row - first.row + 1
        assert points[0] == pytest.approx(first.x)
        assert points[-1] == pytest.approx(last.x)
        for row, x in enumerate(points[1:-1], first.row + 1):
            assert not any(left <= x <= right for left, right in spans[row])


def test_rows_are_no_wider_than_asked_where_boxes_can_go_lower() -> None:
    layout = lay_out(
        {str(number): () for number in range(100)}, {str(number): 100.0 for number in range(100)}, widest=500
    )
    assert layout.width <= 500
    assert layout.rows == 25


def test_a_chain_is_straight() -> None:
    layout = laid(chain(50))
    assert len({round(box.x, 3) for box in layout.boxes.values()}) == 1


def test_a_tree_without_need_of_crossings_has_none() -> None:
    needs: Needs = {"r": ()}
    for level in range(1, 5):
        for number in range(2**level):
            parent = f"{level - 1}-{number // 2}" if level > 1 else "r"
            needs[f"{level}-{number}"] = (parent,)
    shuffled = dict(
        sorted(needs.items(), key=lambda pair: (pair[0] != "r", pair[0].partition("-")[0], hash(pair[0]) % 7))
    )
    layout = lay_out(shuffled, dict.fromkeys(needs, 80.0), widest=5000)
    ends = [(layout.boxes[need].row, layout.boxes[need].x, layout.boxes[box].x) for need, box in layout.lines]
    crossings = [
        1
        for row, top, bottom in ends
        for other, top2, bottom2 in ends
        if row == other and top < top2 and bottom > bottom2
    ]
    assert crossings == []


def test_the_same_graph_is_always_laid_out_the_same() -> None:
    assert laid(GRAPHS["mixed 1"]) == laid(GRAPHS["mixed 1"])
