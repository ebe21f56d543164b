"""The steps of a job as a picture: one self-contained SVG, readable on a light and on a dark page."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from checkpoint_action.model import Action
from checkpoint_action.report.graph import MARKS, shortened, summary
from checkpoint_action.report.layered import lay_out
from checkpoint_action.report.words import decision_text, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.model import Decision
    from checkpoint_action.report.graph import Node
    from checkpoint_action.report.layered import Layout

__all__ = ["svg_lines"]

_CHARACTER = 7.3  # width in a fixed font of 12 px, a little more than most have
_HEIGHT, _BETWEEN = 42.0, 46.0
_MARGIN, _TOP = 20.0, 74.0
_LONGEST = 300  # characters of what is shown for a box under the pointer
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")

_LIGHT = {
    Action.SKIP: ("#eceff2", "#6e7781"),
    Action.RESTORE: ("#dbeafe", "#2563eb"),
    Action.RUN: ("#dcfce7", "#15803d"),
}
_DARK = {
    Action.SKIP: ("#21262d", "#8b949e"),
    Action.RESTORE: ("#172554", "#60a5fa"),
    Action.RUN: ("#052e16", "#4ade80"),
}
_LIGHT[Action.STOP], _DARK[Action.STOP] = ("#fee2e2", "#b91c1c"), ("#450a0a", "#f87171")


def svg_lines(job: str, nodes: Sequence[Node]) -> list[str]:
    """An SVG document; all of it is ASCII, and nothing in it is loaded from elsewhere.

    :param job: the job's name, for the heading.
    """
    labels = {node.id: _label(node.decision) for node in nodes}
    widths = {node.id: max(len(node.id), len(labels[node.id])) * _CHARACTER + 20 for node in nodes}
    layout = lay_out({node.id: tuple(dict.fromkeys(node.needs)) for node in nodes}, widths)
    heading, legend = f"job {job}", f"{summary(nodes)}"
    width = max(layout.width, (len(heading) + 2) * _CHARACTER * 1.3, len(legend) * _CHARACTER) + 2 * _MARGIN
    height = _TOP + layout.rows * (_HEIGHT + _BETWEEN) - (_BETWEEN if layout.rows else 0) + _MARGIN
    shift = (width - layout.width) / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"',
        f' height="{height:.0f}" role="img" aria-labelledby="heading">',
        *_style(),
        '<rect class="page" width="100%" height="100%"/>',
        f'<text id="heading" class="heading" x="{_MARGIN:.0f}" y="32">{_xml(heading)}</text>',
        f'<text class="what" x="{_MARGIN:.0f}" y="54">{_xml(legend)}</text>',
    ]
    for (need, name), points in layout.lines.items():
        lines.append(f'<path class="line" d="{_path(layout, need, points, shift)}"/>')
        x, y = points[-1] + shift, _top(layout.boxes[name].row)
        lines.append(f'<path class="head" d="M{x:.1f} {y:.1f}l-4 -8h8z"/>')
    for node in nodes:
        box = layout.boxes[node.id]
        left, top = box.x - box.width / 2 + shift, _top(box.row)
        what = node.decision.action
        label = labels[node.id]
        said = f"{node.id}: {what.value}, {decision_text(node.decision)}"
        lines += [
            f'<g class="{what.value}"><title>{_xml(shortened(said, _LONGEST))}</title>',
            f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{_HEIGHT:.0f}" rx="5"/>',
            f'<text class="name" x="{box.x + shift:.1f}" y="{top + 18:.1f}">{_xml(node.id)}</text>',
            f'<text class="why" x="{box.x + shift:.1f}" y="{top + 34:.1f}">{_xml(label)}</text>',
            "</g>",
        ]
    return [*lines, "</svg>"]


def _label(decision: Decision) -> str:
    return f"{MARKS[decision.action]} {decision.action.value}: {decision.reason.value}"


def _top(row: int) -> float:
    return _TOP + row * (_HEIGHT + _BETWEEN)


def _path(layout: Layout, need: str, points: tuple[float, ...], shift: float) -> str:
    """From the bottom of a box to the top of another; straight down through each row between."""
    row = layout.boxes[need].row
    x, y = points[0] + shift, _top(row) + _HEIGHT
    parts = [f"M{x:.1f} {y:.1f}"]
    for step, point in enumerate(points[1:], 1):
        end_x, end_y = point + shift, _top(row + step)
        last = step == len(points) - 1
        stop = end_y - 6 if last else end_y  # the arrow's head covers the rest
        parts.append(f"C{x:.1f} {y + _BETWEEN / 2:.1f} {end_x:.1f} {y + _BETWEEN / 2:.1f} {end_x:.1f} {stop:.1f}")
        x, y = end_x, end_y + _HEIGHT
        if not last:
            parts.append(f"V{y:.1f}")
    return "".join(parts)


def _style() -> list[str]:
    return [
        "<style>",
        "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328}",
        ".heading{font-size:16px;font-weight:bold}.name{font-weight:bold}.name,.why{text-anchor:middle}",
        ".page{fill:#fff}.line{fill:none;stroke:#8c959f;stroke-width:1.3}.head{fill:#8c959f}.box{stroke-width:1.5}",
        *_colours(_LIGHT),
        "@media (prefers-color-scheme:dark){",
        "text{fill:#e6edf3}.page{fill:#0d1117}.line{stroke:#6e7681}.head{fill:#6e7681}",
        *_colours(_DARK),
        "}",
        "</style>",
    ]


def _colours(colours: dict[Action, tuple[str, str]]) -> list[str]:
    return [f".{action.value} .box{{fill:{fill};stroke:{stroke}}}" for action, (fill, stroke) in colours.items()]


def _xml(text: str) -> str:
    """Text for an XML document in ASCII: what XML cannot hold is shown by its escape."""
    plain = _NO_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", one_line(text))
    return escape(plain).encode("ascii", "xmlcharrefreplace").decode("ascii")
