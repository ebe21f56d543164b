"""The lines at the bottom of a terminal: what else is on it must look as it would without them."""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if sys.platform == "win32":
    pytest.skip("a pipe cannot be asked there whether it takes more", allow_module_level=True)
pyte = pytest.importorskip("pyte")

from checkpoint_action.report.live import LiveView  # noqa: E402
from checkpoint_action.report.terminal import StepOutput  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIDTH, HEIGHT = 40, 12
STATUS = ["[1/3] build  0:01", "1 done, 2 left"]


class Glass:
    """A terminal that shows what comes out of a pipe, with all that has scrolled away."""

    def __init__(self, width: int = WIDTH, height: int = HEIGHT) -> None:
        self.screen = pyte.HistoryScreen(width, height, history=5000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)

    def feed(self, data: bytes) -> None:
        self._stream.feed(data.replace(b"\n", b"\r\n"))  # as the kernel does

    def text(self) -> list[str]:
        """All lines, the oldest first, without empty ones at the end."""
        rows = [*self.screen.history.top, *(self.screen.buffer[y] for y in range(self.screen.lines))]
        lines = ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def looks(self) -> tuple[list[str], tuple[int, int], object]:
        """Text, place of the cursor in it, and how the next text would look."""
        cursor = self.screen.cursor
        return self.text(), (cursor.x, len(self.screen.history.top) + cursor.y), cursor.attrs


class Drawn:
    """A view whose drawing can be looked at."""

    def __init__(self, lines: Sequence[str] = STATUS, *, shared: bool = True, size: tuple[int, int] = (WIDTH, HEIGHT)):
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        self.now = 0.0
        self.size = size
        self.lines = list(lines)
        self.view = LiveView(
            self.write_end,
            lambda columns, rows: [line[:columns] for line in self.lines[:rows]],
            shared=shared,
            size=lambda _fd: self.size,
            clock=lambda: self.now,
        )
        self.output = StepOutput(self.write_end, shared=True, view=self.view)
        self.glass = Glass(*size)

    def write(self, data: bytes, *, later: float = 1.0) -> None:
        self.now += later
        self.output.write(data)
        self.look()

    def look(self) -> None:
        with suppress(BlockingIOError):
            self.glass.feed(os.read(self.read_end, 1 << 20))

    def refresh(self) -> None:
        self.now += 1
        self.view.refresh()
        self.look()

    def close(self) -> None:
        self.view.close()
        self.look()

    def free(self) -> None:
        os.close(self.read_end)
        os.close(self.write_end)


@contextmanager
def drawn(lines: Sequence[str] = STATUS, **more: object) -> Iterator[Drawn]:
    one = Drawn(lines, **more)  # type: ignore[arg-type]
    try:
        yield one
    finally:
        one.free()


def shown(data: Sequence[bytes], height: int = HEIGHT) -> Glass:
    """The same without a view."""
    glass = Glass(height=height)
    for piece in data:
        glass.feed(piece)
    return glass


TAME = [
    *(b"line\n", b"unfinished", b"\r", b"50%\r", b"##########\r", b"\n", b"\t", b"a\tb"),
    *(b"\b \b", b"x" * 39, b"y" * 40),
    *(b"z" * 100, b"\x1b[31mred\x1b[0m\n", b"\x1b[31mred", b"\x1b[39m", b"\x1b[1;38;5;9mbright\x1b[m", b"\a"),
    *(b"\x1b[K", b"\x1b[2K\r", b"\x1b[1Gback", "日本語".encode(), "é\n".encode(), b"many\nlines\nat\nonce\n"),
    *(b"\x1b]0;title\x07", b"\x1b]8;;u\x1b\\", b"\x1b[?25l", b"\x1b[?25h", b"\x1b(B\x1b[m"),
]  # fmt: skip
WILD = [
    *(b"\x1b[2A", b"\x1b[5;5Hthere", b"\x1b7", b"\x1b8", b"\x1b[s", b"\x1b[J", b"\x1b[2J", b"\x1b[H", b"\x1b"),
    *(b"\x1b[",),
    *(b"\x0b", b"\x1b[3;8r", b"\x1bD", b"\x1bM", b"\x0e", b"\xc2\x9b2A", b"\x1b[3B", b"\x1b[4C", b"\x1b[2", b"\xe6"),
]  # fmt: skip
SCROLLS = b"end\n" * 30

# What is written, after how many bytes it is cut into two writes, and whether the view draws after each.
Piece = tuple[bytes, int, bool]


def some(pieces: list[bytes], most: int) -> st.SearchStrategy[list[Piece]]:
    return st.lists(st.tuples(st.sampled_from(pieces), st.integers(0, 12), st.booleans()), max_size=most)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)  # the emulator has faults of its own
@given(some([*TAME, SCROLLS], 20))
def test_output_looks_as_it_does_without_a_view_once_that_is_gone(pieces: list[Piece]) -> None:
    looks_the_same(pieces, HEIGHT)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)  # the emulator has faults of its own
@given(some([*TAME, *WILD], 8))
def test_so_does_output_that_goes_wherever_it_likes(pieces: list[Piece]) -> None:
    looks_the_same(pieces, 60)  # it must not scroll, as lines of the screen would be others then


def looks_the_same(pieces: list[Piece], height: int) -> None:
    with drawn(size=(WIDTH, height)) as one:
        for data, cut, waits in pieces:
            for part in (data[:cut], data[cut:]):
                one.write(part)
                if waits:
                    one.refresh()
        one.close()
        assert one.glass.looks() == shown([data for data, _, _ in pieces], height).looks()


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)  # the emulator has faults of its own
@given(some(TAME, 12))
def test_what_stands_above_the_view_is_the_output_at_every_moment(pieces: list[Piece]) -> None:
    with drawn() as one:
        written = []
        for data, _, _ in pieces:
            one.write(data)
            written.append(data)
            plain = shown(written)
            there = [line for line in one.glass.text() if line not in STATUS]
            while there and not there[-1]:
                there.pop()
            assert there == plain.text()
            # What the output says next belongs where it would without a view.
            assert one.glass.screen.cursor.x == plain.screen.cursor.x


def bottom(one: Drawn) -> list[str]:
    return one.glass.text()[-2:]


def test_it_is_drawn_below_whole_lines_and_below_an_unfinished_one() -> None:
    with drawn() as one:
        one.refresh()
        assert one.glass.text() == STATUS
        one.write(b"first\n")
        assert one.glass.text() == ["first", *STATUS]
        one.write(b"50%")
        assert one.glass.text() == ["first", "50%", *STATUS]
        one.write(b"\r75%")
        assert one.glass.text() == ["first", "75%", *STATUS]
        one.write(b"\ndone\n")
        assert one.glass.text() == ["first", "75%", "done", *STATUS]
        one.lines = ["later"]
        one.refresh()
        assert one.glass.text() == ["first", "75%", "done", "later"]
        one.close()
        assert one.glass.text() == ["first", "75%", "done"]


@pytest.mark.parametrize(
    "wild",
    [
        *(b"\x1b[?1049h", b"\x1b[3A", b"\x1b[31mred", b"\x1b[?1049h\x1b[?1049l", b"\x1b7", b"\x0e", b"\xc2\x9b2J"),
        *(b"\x1b[", b"\xe6"),
    ],
)  # fmt: skip
def test_it_keeps_away_from_what_drives_the_terminal_until_the_step_has_ended(wild: bytes) -> None:
    with drawn() as one:
        one.write(b"first\n")
        assert bottom(one) == STATUS
        one.write(wild)
        one.refresh()
        assert not set(STATUS) & set(one.glass.text())
        one.view.step_ended()
        with one.output.own_line() as before:
            os.write(one.write_end, before.encode() + b"ended\n")
        one.refresh()
        assert (bottom(one) == STATUS) != wild.endswith(b"?1049h")  # it has never come back from there


def test_colours_that_are_closed_one_by_one_keep_it_there() -> None:
    with drawn() as one:
        for data in (
            b"\x1b[1m\x1b[32mok\x1b[39m\x1b[22m\n",
            b"\x1b[38;2;1;2;3mx\x1b[0m",
            b"\x1b[4;48:5:1mx\x1b[24;49m\n",
        ):
            one.write(data)
            assert bottom(one) == STATUS


def test_a_step_that_has_the_terminal_for_itself_sees_nothing_of_it() -> None:
    with drawn() as one:
        one.refresh()
        one.view.stay_away(True)
        one.write(b"question? ")
        one.refresh()
        assert one.glass.text() == ["question?"]
        one.view.stay_away(False)
        one.refresh()
        assert one.glass.text() == ["question?", *STATUS]


def test_a_narrow_a_low_and_a_lost_terminal() -> None:
    with drawn() as one:
        one.size = (9, HEIGHT)
        one.refresh()
        assert one.glass.text() == []
        one.size = (20, 3)
        one.refresh()
        assert one.glass.text() == []
        one.size = (20, HEIGHT)
        one.refresh()
        assert one.glass.text() == ["[1/3] build  0:01", "1 done, 2 left"]
        one.write(b"longer than this terminal")
        assert one.glass.text() == ["longer than this terminal"]


def test_a_terminal_that_takes_nothing_holds_up_nobody() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    for size in (1 << 16, 1):
        with suppress(BlockingIOError):
            while os.write(write_end, bytes(size)):
                pass
    os.set_blocking(write_end, True)
    view = LiveView(write_end, lambda _c, _r: STATUS, shared=True, size=lambda _fd: (80, 24))
    thread = threading.Thread(target=view.refresh)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    os.close(read_end)
    os.close(write_end)


def test_output_that_goes_elsewhere_is_no_concern_of_it() -> None:
    with drawn(shared=False) as one:
        one.refresh()
        elsewhere, there = os.pipe()
        StepOutput(there, shared=False, view=one.view).write(b"\x1b[3A\x1b[31mwild")
        assert os.read(elsewhere, 100) == b"\x1b[3A\x1b[31mwild"
        one.refresh()
        assert one.glass.text() == STATUS
        os.close(elsewhere)
        os.close(there)


def test_much_output_comes_through_byte_for_byte_whatever_is_drawn_between() -> None:
    read_end, write_end = os.pipe()
    view = LiveView(write_end, lambda _c, _r: ["<status>"], shared=True, size=lambda _fd: (80, 24))
    output = StepOutput(write_end, shared=True, view=view)
    chunk = os.urandom(1 << 16).replace(b"\x1b", b"-") + b"\n"
    got = bytearray()

    def read() -> None:
        while data := os.read(read_end, 1 << 20):
            got.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    with view.shown():
        for _ in range(300):
            output.write(chunk)
    os.close(write_end)
    reader.join(60)
    os.close(read_end)
    ours = rb"\r\x1b\[J(?:<status>\r)?|\x1bD\x1b\[1A\x1b7\r\n\x1b\[J<status>\x1b8|\x1b7\r\n\x1b\[J\x1b8"
    assert re.sub(ours, b"", bytes(got)) == chunk * 300
