"""A few lines at the bottom of a terminal that are drawn again and again, while the output of steps scrolls above."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from checkpoint_action.report.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

__all__ = ["LiveView"]

_LOOK = 0.1  # seconds between looks at whether something else is to be shown
_CALM = 0.015  # seconds after a drawing in which output causes no other
_NARROWEST = 10  # columns; below there is no room for anything of use
_LOWEST = 4  # rows
_SHARE = 3  # of the rows one in so many may be ours
_WAIT = 0.5  # seconds that a stop at the keyboard waits for a drawing in another thread

# The cursor rests where the next output belongs: at the left end of our first line, or, below an unfinished line, in
# it. So whatever ends us, output of others that comes meanwhile, and a terminal that is made narrower do no harm that
# the next drawing does not mend.
_CLEAR = b"\r\x1b[J"
_CLEAR_BELOW = b"\x1b7\r\n\x1b[J\x1b8"


class LiveView:
    """Draws lines below all other output.

    No output is changed or held back. Below what is more than text, colours and progress bars nothing is drawn, nor
    from the background, nor while a step has the terminal for itself.

    :param fd: the terminal.
    :param lines: what to show in so many columns and rows; no line is longer, and each character is one column wide.
    :param shared: whether the steps' output goes to the same terminal.
    :param below: whether the terminal can be drawn on below an unfinished line.
    :param size: columns and rows of the terminal.
    """

    def __init__(
        self,
        fd: int,
        lines: Callable[[int, int], Sequence[str]],
        *,
        shared: bool,
        utf8: bool = True,
        below: bool = sys.platform != "win32",
        size: Callable[[int], tuple[int, int]] = os.get_terminal_size,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fd = fd
        self._lines = lines
        self._shared = shared
        self._below = below
        self._size = size
        self._clock = clock
        self._lock = threading.RLock()
        self._cursor = Cursor(utf8=utf8)
        self._drawn: tuple[str, ...] = ()
        self._drawn_in = (0, 0)
        self._is_below = False
        self._drawn_at = -_CALM
        self._away = False
        self._closed = False
        self._wake = threading.Event()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw for as long as the context is open, or until :meth:`close`. Main thread only."""
        thread = threading.Thread(target=self._watch, name="live-view", daemon=True)
        thread.start()
        previous = None
        if sys.platform != "win32" and signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
            previous = signal.signal(signal.SIGTSTP, self._suspended)
        try:
            yield
        finally:
            if sys.platform != "win32" and previous is not None:
                signal.signal(signal.SIGTSTP, previous)
            self.close()

    def close(self) -> None:
        """Remove what is drawn, for good."""
        with self._lock:
            self._closed = True
            self._put(self._clearing)
        self._wake.set()

    def stay_away(self, away: bool) -> None:
        """Draw nothing while a step has the terminal for itself."""
        with self._lock:
            self._away = away
            if away:
                self._put(self._clearing)

    def step_ended(self) -> None:
        """What follows is our own, until the next step writes."""
        with self._lock:
            self._cursor.calm()

    @contextmanager
    def output(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Around the writing of a step's output: what to write before and after it."""
        with self._lock:
            if not self._shared:
                yield b"", b""
                return
            self._cursor.feed(data)
            # What leaves the line unfinished changes nothing below it.
            stays = self._is_below and bool(self._drawn) and b"\n" not in data and self._may_draw()
            yield (b"", b"") if stays else (self._clearing(), self._drawing())

    @contextmanager
    def own_line(self) -> Iterator[str]:
        """Around the printing of a line of our own: what to print before it."""
        with self._lock:
            before = self._clearing()
            if self._cursor.left_a_mark and self._shared and not self._closed:
                before += b"\x1b[0m"
            yield before.decode("ascii")
            self._cursor.line_ended()
            self._put(self._drawing)

    def refresh(self) -> None:
        """Show what has changed, if anything has."""
        with self._lock:
            self._put(self._drawing)

    def _watch(self) -> None:
        while not self._closed:
            self._wake.wait(_LOOK)
            self.refresh()

    def _may_draw(self) -> bool:
        if self._closed or self._away or not self._in_foreground():
            return False
        columns, rows = self._room()
        if columns < _NARROWEST or rows < _LOWEST:
            return False
        return not self._shared or (self._cursor.lets_draw(columns) and (self._below or self._cursor.at_line_start))

    def _in_foreground(self) -> bool:
        if sys.platform == "win32":
            return True
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True  # it is not our controlling terminal, and nobody else's shell is on it

    def _room(self) -> tuple[int, int]:
        try:
            columns, rows = self._size(self._fd)
        except OSError:
            return 0, 0
        return columns, rows

    def _clearing(self) -> bytes:
        if not self._drawn:
            return b""
        self._drawn = ()
        return _CLEAR_BELOW if self._is_below else _CLEAR

    def _drawing(self) -> bytes:
        """What draws the lines as they are now; nothing where they are drawn already, or may not be."""
        now = self._clock()
        if now < self._drawn_at + _CALM:
            return b""  # somebody looks again in a moment
        if not self._may_draw():
            return self._clearing()
        room = columns, rows = self._room()
        lines = tuple(self._lines(columns - 1, max(rows // _SHARE, 1)))
        if not lines:
            return self._clearing()
        if (lines, room) == (self._drawn, self._drawn_in):
            return b""
        self._is_below = self._shared and not self._cursor.at_line_start
        self._drawn, self._drawn_in, self._drawn_at = lines, room, now
        text = "\r\n".join(lines).encode("utf-8")
        if not self._is_below:
            up = b"\x1b[%dA" % (len(lines) - 1) if len(lines) > 1 else b""
            return _CLEAR + text + b"\r" + up
        # Going down as far as is needed scrolls where there is no room; back up the cursor is in its column again.
        return b"\x1bD" * len(lines) + b"\x1b[%dA" % len(lines) + b"\x1b7\r\n\x1b[J" + text + b"\x1b8"

    def _put(self, make: Callable[[], bytes]) -> None:
        """Write what is made, unless the terminal takes nothing at the moment."""
        try:
            if sys.platform != "win32" and not select.select([], [self._fd], [], 0)[1]:
                return
            if data := make():
                os.write(self._fd, data)
        except (OSError, ValueError):
            self._closed = True  # the terminal is gone

    def _suspended(self, signum: int, _frame: FrameType | None) -> None:
        """Leave nothing on the terminal of a shell that goes on; draw again afterwards."""
        held = self._lock.acquire(timeout=_WAIT)
        with suppress(OSError):
            if held:
                self._put(self._clearing)
            signal.signal(signum, signal.SIG_DFL)
            os.kill(os.getpid(), signum)
            signal.signal(signum, self._suspended)
        if held:
            self._lock.release()
