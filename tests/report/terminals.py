"""The program on a terminal of its own, and what a person would see there."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyte

from tests.console import PROGRAM, environment

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["Terminal"]

_LIMIT = 60.0  # seconds; only ever reached by a hang
_PLAIN = {"CI", "NO_COLOR", "TERM", "PYTHONIOENCODING"}  # of the tests' own surroundings


class Terminal:
    """A program whose terminal is ours: its session's own, with job control.

    :param words: of the program; the console script where there is no other.
    :param stdout: where its output goes instead of to the terminal.
    :param watched: whether the screen is kept; else only the bytes are.
    """

    def __init__(
        self,
        folder: Path,
        *words: str,
        program: str | None = None,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
        stdout: int | None = None,
        watched: bool = True,
    ) -> None:
        self.raw = bytearray()
        self.screen = pyte.HistoryScreen(*size, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen) if watched else None
        self._lock = threading.Lock()
        self._ours, theirs = pty.openpty()
        self.resize(*size)
        kept = {name: value for name, value in environment().items() if name not in _PLAIN}
        self.process = subprocess.Popen(
            [program or str(PROGRAM), *words],
            cwd=folder,
            env={**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(env or {})},
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # it takes no lock
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # how a terminal says that nobody holds its other side any more
            while data := os.read(self._ours, 1 << 16):
                with self._lock:
                    self.raw += data
                    if self._stream is not None:
                        self._stream.feed(data)

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal another size."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        with self._lock:
            self.screen.resize(rows, columns)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def lines(self) -> list[str]:
        """All that was ever on the screen and still can be seen, without empty lines at the end."""
        with self._lock:
            rows = [*self.screen.history.top, *(self.screen.buffer[y] for y in range(self.screen.lines))]
            lines = ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines())

    def until(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """Wait until the lines are as wanted."""
        end = time.monotonic() + _LIMIT
        while not seen(lines := self.lines() or [""]):
            assert time.monotonic() < end, "\n".join(lines)
            time.sleep(0.02)
        return lines

    def until_last(self, text: str) -> list[str]:
        """Wait until the last line has a text in it."""
        return self.until(lambda lines: bool(lines) and text in lines[-1])

    def wait(self, limit: float = _LIMIT) -> int:
        """Wait for the end of the program and of its output; its exit code."""
        code = self.process.wait(limit)
        self._reader.join(_LIMIT)
        return code

    def close(self) -> None:
        """End the program, if it has not ended."""
        if self.process.poll() is None:
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(_LIMIT)
        self._reader.join(_LIMIT)
        os.close(self._ours)
