"""What output leaves on a terminal, as far as is needed to draw below it."""

from __future__ import annotations

import pytest

from checkpoint_action.report.cursor import Cursor


def after(*pieces: bytes, utf8: bool = True) -> Cursor:
    cursor = Cursor(utf8=utf8)
    for piece in pieces:
        cursor.feed(piece)
    return cursor


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"a line\n",),
        (b"unfinished",),
        (b"50%\r",),
        (b"\x1b[1;31mred\x1b[0m\n",),
        (b"\x1b[32mgreen\x1b[39m",),
        (b"\x1b[38;5;200;48;2;1;2;3mx\x1b[39;49m",),
        (b"\x1b[31", b"mred\x1b", b"[m"),
        ("日".encode()[:1], "日".encode()[1:]),
        (b"\x1b]0;a long title", b" goes on\x07"),
        (b"\x1b]8;;https://example.com\x1b", b"\\link\x1b]8;;\x1b\\"),
        (b"\x1b[?25lhidden cursor",),
        (b"x" * 5000 + b"\n",),
    ],
)
def test_text_colours_and_progress_bars_may_have_something_below(pieces: tuple[bytes, ...]) -> None:
    assert after(*pieces).lets_draw(80)


@pytest.mark.parametrize(
    "pieces",
    [
        (b"\x1b[31mred",),
        (b"\x1b[31mred\n",),
        (b"\x1b[31;1mred\x1b[39m\n",),
        (b"\x1b[31",),
        (b"\x1b",),
        ("日".encode()[:2],),
        (b"x" * 77,),
        ("日".encode() * 39,),
        (b"x" * 100 + b"\r50%",),
        (b"\t" * 10,),
        (b"\x1b[2A",),
        (b"\x1b[2A\n", b"more\n"),
        (b"\x1b[H\n",),
        (b"\x1b[?1049h\n",),
        (b"\x1b(0\n",),
        (b"\xc2\x9b2A",),
        (b"\xc2", b"\x9b2A"),
        (b"\x0c\n",),
        (b"\x1b]0;" + b"x" * 5000,),
        (b"\x1b[?7l\n",),
    ],
)
def test_all_else_may_not(pieces: tuple[bytes, ...]) -> None:
    assert not after(*pieces).lets_draw(80)


def test_bytes_of_another_encoding_may_be_sequences() -> None:
    assert not after(b"caf\x9b2J\n", utf8=False).lets_draw(80)
    assert after(b"caf\xe9\n", utf8=False).lets_draw(80)


def test_the_end_of_a_step_ends_what_it_did_but_not_the_other_screen() -> None:
    cursor = after(b"\x1b[3A\x1b[31m")
    cursor.calm()
    assert cursor.left_a_mark  # our own text has to begin with the usual colours
    cursor.line_ended()
    assert cursor.lets_draw(80)
    assert not cursor.left_a_mark
    cursor.feed(b"\x1b[?1049h")
    cursor.line_ended()
    assert not cursor.lets_draw(80)
    cursor.feed(b"\x1b[?1049l")
    cursor.line_ended()
    assert cursor.lets_draw(80)


@pytest.mark.parametrize("begun", [b"\x1b]0;a title", b"\x1b[31", b"\x1bP", b"\x1b"])
def test_a_sequence_that_never_ends_takes_nothing_of_ours_for_its_own(begun: bytes) -> None:
    cursor = Cursor()
    cursor.feed(b"text\n" + begun)
    assert cursor.left_a_mark
    cursor.calm()
    assert cursor.left_a_mark
    cursor.line_ended()
    assert not cursor.left_a_mark
