"""The page itself: what it holds of odd names and of very many steps."""

from __future__ import annotations

import re

from checkpoint_action.report.html import Line, page_lines


def _page(*lines: Line, tails: dict[str, list[str]] | None = None) -> str:
    return "\n".join(page_lines("job", "done", "all", lines, tails=tails or {}))


def test_nothing_in_a_text_is_taken_for_html_or_turns_its_direction() -> None:
    page = _page(
        Line("a", "failed", "bad", 'x<b>&"\u202e\x1b[1m\ud800\ufffe\U0001f600'), tails={"a": ["</pre><i>\x00"]}
    )
    assert "x&lt;b&gt;&amp;&quot;\\u202e\\x1b[1m\\ud800\\ufffe&#128512;" in page
    assert "&lt;/pre&gt;&lt;i&gt;\\x00</pre>" in page


def test_a_last_line_that_is_empty_at_first_stays() -> None:
    assert "<pre>\n\nsecond</pre>" in _page(tails={"a": ["", "second"]})


def test_ten_thousand_steps_are_some_mebibytes_and_the_picture_shows_the_longest() -> None:
    lines = [Line(f"step-{n}", "done", "done", "never-ran", float(n), float(n), 1, n) for n in range(10_000)]
    page = _page(*lines)
    assert len(page) < 4 << 20
    assert page.count("<rect") == 200
    assert "the 200 that took longest of 10000" in page
    assert page.count("<tr>") == 10_001


def test_every_colour_has_enough_contrast_in_both_themes() -> None:
    themes = [dict(re.findall(r"--(\w+):#([0-9a-f]+)", part)) for part in _page().split("prefers-color-scheme:dark")]
    for theme in themes:
        for name in ("text", "soft", "good", "bad", "calm"):
            for under in ("page", "box"):
                assert _contrast(theme[name], theme[under]) >= 4.5, (name, under)


def _contrast(first: str, second: str) -> float:
    bright, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    digits = colour if len(colour) == 6 else "".join(digit * 2 for digit in colour)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
