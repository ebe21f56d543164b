"""The picture: well-formed, self-contained, escaped, and readable on light and dark pages."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from checkpoint_action.model import Action, Decision, Job, Plan, Reason, Step
from checkpoint_action.report.graph import nodes_of
from checkpoint_action.report.svg import svg_lines

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path("/r")


def draw(needs: dict[str, tuple[str, ...]], detail: str = "") -> str:
    steps = tuple(Step(name, "x", "sh", ROOT, needs=needed) for name, needed in needs.items())
    actions = list(Action)
    decisions = tuple(
        Decision(name, actions[number % len(actions)], Reason.COMMAND_CHANGED, detail)
        for number, name in enumerate(needs)
    )
    return "\n".join(svg_lines("demo", nodes_of(Job("demo", ROOT, steps), Plan("demo", decisions))))


@pytest.mark.parametrize("count", [0, 1, 300])
def test_each_step_is_a_box_and_each_need_a_line_inside_of_the_page(count: int) -> None:
    needs = {f"s{n}": tuple({f"s{n // 2}", f"s{n // 3}"} - {f"s{n}"}) for n in range(count)}
    root = ET.fromstring(draw(needs))
    groups = root.findall(f"{SVG}g")
    assert [group.findtext(f"{SVG}text[@class='name']") for group in groups] == list(needs)
    lines = [path for path in root.findall(f"{SVG}path") if path.get("class") == "line"]
    assert len(lines) == sum(map(len, needs.values()))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    for box in root.iter(f"{SVG}rect"):
        if box.get("class") == "box":
            x, y, wide, high = (float(box.get(name, "")) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width
            assert 0 <= y <= y + high <= height


def test_an_id_of_a_hundred_characters_fits_its_box() -> None:
    root = ET.fromstring(draw({"x" * 100: ()}))
    box = next(rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "box")
    assert float(box.get("width", "")) > 100 * 7.2  # the width of a character in a fixed font of 12 px


def test_whatever_a_detail_holds_is_text_and_nothing_else() -> None:
    odd = "a → <script>&\"']]>\x1b\x00\ud800\uffff é"
    text = draw({"a": ()}, odd)
    assert text.isascii()
    root = ET.fromstring(text)
    title = root.findtext(f"{SVG}g/{SVG}title")
    assert title == "a: skip, command-changed: a → <script>&\"']]>\\x1b\\x00\\ud800\\uffff é"
    assert root.find(f".//{SVG}script") is None


def test_a_long_detail_is_cut() -> None:
    title = ET.fromstring(draw({"a": ()}, "x" * 10_000)).findtext(f"{SVG}g/{SVG}title")
    assert title is not None
    assert len(title) == 300


def test_nothing_is_loaded_from_elsewhere_and_dark_pages_are_known() -> None:
    text = draw({"a": (), "b": ("a",), "c": (), "d": ()})
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|url\(|href|<script|<image|<foreignObject", text)
    light, dark = text.split("@media (prefers-color-scheme:dark){")
    for action in Action:
        for half in (light, dark):
            colours = re.search(rf"\.{action.value} \.box\{{fill:(#\w+);stroke:(#\w+)\}}", half)
            assert colours is not None


def _brightness(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_its_box_on_both_pages() -> None:
    """At least the 4.5 : 1 that the accessibility guidelines ask for."""
    text = draw({"a": (), "b": (), "c": (), "d": ()})
    halves = text.split("@media (prefers-color-scheme:dark){")
    for half, ink in zip(halves, ("#1f2328", "#e6edf3"), strict=True):
        assert f"fill:{ink}" in half
        for fill in re.findall(r"\.box\{fill:(#\w{6})", half):
            one, other = sorted((_brightness(fill), _brightness(ink)))
            assert (other + 0.05) / (one + 0.05) >= 4.5, fill
