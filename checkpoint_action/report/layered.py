"""Places for the boxes and lines of a graph without circles: rows from top to bottom, few crossings, no overlaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Box", "Layout", "lay_out"]

_SWEEPS = 8  # of ordering and of placing; more change little
_GAP = 22.0  # between neighbours of a row
_LINE = 6.0  # width of the place of a line that passes a row
_LOOSE = 0.001  # how little a box without lines keeps others from their places
_HEAVY = 4.0  # how much more a passing line is kept straight than a box is kept in the middle


@dataclass(frozen=True, slots=True)
class Box:
    """A placed box.

    :param row: from 0.
    :param x: its middle.
    """

    row: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is.

    :param lines: for each pair (needed, needing): the x at each row from the needed box's to the needing box's.
    """

    boxes: Mapping[str, Box]
    lines: Mapping[tuple[str, str], tuple[float, ...]]
    width: float
    rows: int


@dataclass(slots=True)
class _Place:
    """A box, or where the lines from one box pass a row: they share their way down."""

    name: str
    row: int
    width: float
    above: list[_Place] = field(default_factory=list)
    below: list[_Place] = field(default_factory=list)
    x: float = 0.0
    order: float = 0.0
    passing: bool = False


def lay_out(needs: Mapping[str, Sequence[str]], widths: Mapping[str, float], *, widest: float = 1400.0) -> Layout:
    """Lay out boxes below all that they need.

    :param needs: for each box what it needs, all of it earlier in the mapping.
    :param widths: of the boxes.
    :param widest: a row takes no further box beyond this; boxes that do not fit go into the next.
    """
    rows_of = _rows(needs, widths, widest)
    boxes = {name: _Place(name, row, widths[name]) for name, row in rows_of.items()}
    rows: list[list[_Place]] = [[] for _ in range(1 + max(rows_of.values(), default=-1))]
    for place in boxes.values():
        rows[place.row].append(place)
    ways = _ways(needs, boxes, rows)
    _order(rows)
    _spread(rows)
    left = min((place.x - place.width / 2 for row in rows for place in row), default=0.0)
    right = max((place.x + place.width / 2 for row in rows for place in row), default=0.0)
    lines = {
        (need, name): tuple(place.x - left for place in (*ways[need][: boxes[name].row - boxes[need].row], boxes[name]))
        for name, all_needs in needs.items()
        for need in all_needs
    }
    placed = {name: Box(place.row, place.x - left, place.width) for name, place in boxes.items()}
    return Layout(placed, lines, right - left, len(rows))


def _rows(needs: Mapping[str, Sequence[str]], widths: Mapping[str, float], widest: float) -> dict[str, int]:
    """The first row below all that a box needs which has room for it."""
    rows: dict[str, int] = {}
    filled: list[float] = []
    for name, all_needs in needs.items():
        row = 1 + max((rows[need] for need in all_needs), default=-1)
        while row < len(filled) and filled[row] + widths[name] > widest:
            row += 1
        filled += [0.0] * (row + 1 - len(filled))
        filled[row] += widths[name] + _GAP
        rows[name] = row
    return rows


def _ways(
    needs: Mapping[str, Sequence[str]], boxes: Mapping[str, _Place], rows: list[list[_Place]]
) -> dict[str, list[_Place]]:
    """Each box and, for the lines from it, a place in each row on their way; joined with the places above and below."""
    ways = {name: [box] for name, box in boxes.items()}
    for name, all_needs in needs.items():
        for need in all_needs:
            way, end = ways[need], boxes[name]
            while way[-1].row < end.row - 1:
                place = _Place(need, way[-1].row + 1, _LINE, passing=True)
                _join(way[-1], place)
                rows[place.row].append(place)
                way.append(place)
            _join(way[end.row - 1 - way[0].row], end)
    return ways


def _join(above: _Place, below: _Place) -> None:
    above.below.append(below)
    below.above.append(above)


def _order(rows: list[list[_Place]]) -> None:
    """Bring each row into the order in which its lines cross least, by the middle of what each place hangs on."""
    for row in rows:
        _number(row)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            middles = {id(place): _middle(place.above if down else place.below, place.order) for place in row}
            row.sort(key=lambda place: middles[id(place)])
            _number(row)


def _number(row: list[_Place]) -> None:
    for number, place in enumerate(row):
        place.order = (number + 0.5) / len(row)


def _middle(others: list[_Place], own: float) -> float:
    return sum(other.order for other in others) / len(others) if others else own


def _spread(rows: list[list[_Place]]) -> None:
    """Give each place the x nearest to what it hangs on that keeps the order and the gaps."""
    for row in rows:
        _settle(row, [0.0] * len(row))
    for sweep in range(_SWEEPS + 1):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            hung = {id(place): (place.above if down else place.below) or place.above or place.below for place in row}
            wanted = {name: sum(other.x for other in all_) / len(all_) for name, all_ in hung.items() if all_}
            middle = sum(wanted.values()) / max(len(wanted), 1)  # for what hangs on nothing: near the others
            _settle(row, [wanted.get(id(place), middle) for place in row])


def _settle(row: list[_Place], wanted: list[float]) -> None:
    """The least squares solution: neighbours that would come too close are moved together as one block."""
    offsets, end = [], 0.0
    for place in row:
        offsets.append(end + place.width / 2)
        end += place.width + _GAP
    blocks: list[tuple[float, float, int]] = []  # where it wants to begin, its weight, how many places
    for place, want, offset in zip(row, wanted, offsets, strict=True):
        weight = _HEAVY if place.passing else 1.0 if place.above or place.below else _LOOSE
        start, count = want - offset, 1
        while blocks and blocks[-1][0] >= start:
            before, heavier, more = blocks.pop()
            start = (start * weight + before * heavier) / (weight + heavier)
            weight, count = weight + heavier, count + more
        blocks.append((start, weight, count))
    starts = [start for start, _, count in blocks for _ in range(count)]
    for place, start, offset in zip(row, starts, offsets, strict=True):
        place.x = start + offset
