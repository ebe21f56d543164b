"""Lines of our own on a stream; imports next to nothing, as every start needs it."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from checkpoint_action.errors import OutputError
from checkpoint_action.report.plain import one_line

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

__all__ = ["NO_READER", "Answers", "answer", "answer_in_pieces", "say", "write_all"]

_PIECE = 1 << 20  # characters that are written at once, where there are more
NO_READER = {errno.EPIPE, errno.EINVAL}
"""What a write gives whose reader has gone; the latter on Windows."""


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor that another program may have set to non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            import select  # noqa: PLC0415  # only where another program has set it so

            select.select([], [fd], [])


def say(stream: TextIO, text: str, before: str = "", after: str = "") -> None:
    """Print a line that every terminal can show; one that has gone away is no error.

    :param before: what to print before it, as it is.
    :param after: what to print before its end, as it is.
    """
    with suppress(OSError, ValueError):
        _print(stream, text, before, after)


def answer(stream: TextIO, text: str) -> None:
    """Print a line of what was asked for; a reader that has seen enough is no error.

    :raises OutputError: it cannot be written.
    """
    answer_in_pieces(stream, [text])


def answer_in_pieces(stream: TextIO, pieces: Iterable[str]) -> None:
    """Print a line of what was asked for, which may be long.

    :raises OutputError: it cannot be written.
    """
    try:
        gathered: list[str] = []
        room = _PIECE
        for piece in pieces:
            gathered.append(piece)
            room -= len(piece)
            if room < 0:
                _print(stream, "".join(gathered), end="")
                gathered, room = [], _PIECE
        _print(stream, "".join(gathered))
    except ValueError:
        pass
    except OSError as error:
        if error.errno not in NO_READER:
            raise OutputError(f"cannot write the answer: {error.strerror}") from None


class Answers:
    """Lines that were asked for and must not hold up the work: that one could not be written is told at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._fault: OutputError | None = None

    def write(self, text: str) -> None:
        """Print a line, unless one before it could not be."""
        if self._fault is None:
            try:
                answer(self._stream, text)
            except OutputError as error:
                self._fault = error

    def check(self) -> None:
        """See that all were written.

        :raises OutputError: one was not.
        """
        if self._fault is not None:
            raise self._fault


def _print(stream: TextIO, text: str, before: str = "", after: str = "", end: str = "\n") -> None:
    text = one_line(text)
    if "##" in text:
        import re  # noqa: PLC0415  # such texts are rare

        # CI systems obey ##[name], ##vso[name] and ##teamcity[name] wherever in a line; in JSON it still says the same.
        text = re.sub(r"#(?=#\w*\[)", r"\\u0023", text)
    encoding = stream.encoding or "ascii"
    if encoding.lower().replace("-", "") != "utf8":
        text = text.replace("→", "->").encode(encoding, "replace").decode(encoding, "replace")
    text = f"{before}{text.encode('utf-8', 'backslashreplace').decode('utf-8')}{after}{end}"
    stream.flush()
    if sys.platform == "win32" or not _has_descriptor(stream):
        stream.write(text)
        stream.flush()
    else:
        write_all(stream.fileno(), text.encode(encoding))


def _has_descriptor(stream: TextIO) -> bool:
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False
