"""Where a step's output leaves the cursor of a terminal, as far as is needed to draw below it without a trace."""

from __future__ import annotations

import re

__all__ = ["Cursor"]

# What neither moves the cursor off its line nor changes how a terminal works: colours, clearing the line, going back in
# it, hiding the cursor, titles, links.
_HARMLESS = rb"\[[0-9;:]*[mK]|\[[0-9]*D|\[[01]?G|\[\?(?:12|25)(?:;(?:12|25))?[hl]|\][^\x07\x1b]*(?:\x07|\x1b\\)|\\|\(B"
_BACK_TO_LEFT = re.compile(rb"\x1b\[[01]?G")
_WILD = re.compile(rb"\x1b(?!" + _HARMLESS + rb")")
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|\()?\Z")
_SEQUENCE = re.compile(rb"\x1b(?:" + _HARMLESS + rb")")
_COLOR = re.compile(rb"\x1b\[([0-9;:]*)m")
_RESET = re.compile(rb"\x1b\[0*m")
_MOVES = (b"\x05", b"\x0b", b"\x0c", b"\x0e")  # asks for an answer, goes down, changes the characters
_C1 = re.compile(rb"\xc2[\x80-\x9f]")  # the same as escape sequences, in UTF-8
_C1_BYTES = re.compile(rb"[\x80-\x9f]")
_ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
_ZERO_WIDTH = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f\x80-\xbf]")
_WIDE = re.compile(rb"[\xc0-\xff]")
_LONGEST = 4096  # bytes of a line or of a sequence that are still looked at
_TAB = 8

# The attribute that a number sets, by the number that ends it.
_ENDS = {22, 23, 24, 25, 27, 28, 29, 39, 49, 55, 59}
_SETS = {1: 22, 2: 22, 3: 23, 4: 24, 21: 24, 5: 25, 6: 25, 7: 27, 8: 28, 9: 29, 38: 39, 48: 49, 53: 55, 58: 59}
_SETS |= {number: 39 for base in (30, 90) for number in range(base, base + 8)}
_SETS |= {number: 49 for base in (40, 100) for number in range(base, base + 8)}
_OTHER = -1


class Cursor:
    """Follows the bytes that go to a terminal.

    It errs to one side: where it is not sure, nothing may be drawn.

    :param utf8: whether the terminal takes bytes for UTF-8.
    :ivar at_line_start: whether the last byte ended a line.
    """

    def __init__(self, *, utf8: bool = True) -> None:
        self._utf8 = utf8
        self.at_line_start = True
        self._wild = False  # what came is more than text, colours and progress bars
        self._alternate = False
        self._marked = False
        self._open: set[int] = set()  # attributes that text would have now
        self._held = b""  # the beginning of a sequence whose end has not come
        self._missing = 0  # bytes of a character whose end has not come
        self._begins_c1 = False
        self._column = 0
        self._widest = 0

    def feed(self, data: bytes) -> None:
        """Follow a piece; cheap where it is plain text, however long."""
        if not data:
            return
        self.at_line_start = data.endswith(b"\n")
        if self._utf8:
            self._wild = self._wild or (self._begins_c1 and 0x80 <= data[0] < 0xA0)
            self._begins_c1 = data.endswith(b"\xc2")
            self._missing = _missing(data, self._missing)
        if self._held:
            data, self._held = self._held + data, b""
        if b"\x1b" in data:
            data = self._without_unfinished(data)
            self._wild = self._wild or _WILD.search(data) is not None
            if self._wild:
                for match in _ALTERNATE.finditer(data):
                    self._alternate = match[1] == b"h"
            self._color(data)
        self._wild = self._wild or any(move in data for move in _MOVES) or self._has_c1(data)
        self._measure(data)

    def _without_unfinished(self, data: bytes) -> bytes:
        """Hold back a sequence at the end whose own end has not come."""
        at = data.rfind(b"\x1b")
        if data[at - 1 : at] == b"\x1b" or data[at:] == b"\x1b\\":
            return data
        begin = data.rfind(b"\x1b]", 0, at) if data[at:] == b"\x1b" else at
        found = (_UNFINISHED.match(data, begin) if begin >= 0 else None) or _UNFINISHED.match(data, at)
        if found is None:
            return data
        self._held = found[0]
        if len(self._held) > _LONGEST:
            self._wild, self._held = True, b""
            return data
        return data[: found.start()]

    def _has_c1(self, data: bytes) -> bool:
        if self._utf8:
            return b"\xc2" in data and _C1.search(data) is not None
        return not data.isascii() and _C1_BYTES.search(data) is not None

    def _color(self, data: bytes) -> None:
        start = 0
        for reset in (b"\x1b[0m", b"\x1b[m"):
            start = max(start, data.rfind(reset))
        for match in _COLOR.finditer(data, start):
            if _RESET.match(match[0]):
                self._open.clear()
                continue
            self._attributes(match[1])

    def _attributes(self, numbers: bytes) -> None:
        parts = iter(numbers.split(b";"))
        for part in parts:
            code = int(part.partition(b":")[0][:9] or b"0")
            if code == 0:
                self._open.clear()
            elif code in _ENDS:
                self._open.discard(code)
            else:
                self._open.add(_SETS.get(code, _OTHER))
            if code in (38, 48, 58) and b":" not in part:
                kind = next(parts, b"")
                for _ in range({b"5": 1, b"2": 3}.get(kind, 0)):
                    next(parts, b"")

    def _measure(self, data: bytes) -> None:
        """Learn how wide the unfinished line can be at most."""
        line_end = data.rfind(b"\n")
        if line_end >= 0:
            self._column = self._widest = 0
            data = data[line_end + 1 :]
        if len(data) > _LONGEST:
            self._column = self._widest = _LONGEST
            return
        if b"\x1b" in data:
            data = _SEQUENCE.sub(b"", _BACK_TO_LEFT.sub(b"\r", data))
        for number, part in enumerate(data.split(b"\r")):
            if number:
                self._column = 0
            if not self._utf8:
                self._column += len(part) + part.count(b"\t") * _TAB
            else:
                shown = len(_ZERO_WIDTH.sub(b"", part.replace(b"\t", b" " * _TAB)))
                self._column += shown + len(_WIDE.findall(part))
            self._widest = max(self._widest, self._column)

    def lets_draw(self, width: int) -> bool:
        """Whether something may be drawn below what has come so far, and removed again.

        :param width: columns of the terminal.
        """
        if self._wild or self._alternate or self._open or self._held or self._missing:
            return False
        # A ^C that the terminal echoes takes room too; a full line has its cursor in no place that can be gone back to.
        return self.at_line_start or self._widest + 4 < width

    @property
    def left_a_mark(self) -> bool:
        """Whether our own text would have the colours of what came before, or be taken for the end of a sequence."""
        return self._marked or bool(self._open) or self._wild or bool(self._held)

    def calm(self) -> None:
        """The step that wrote has ended, and our own text follows in a new line."""
        self._marked = self.left_a_mark
        self._wild = False
        self._missing = 0
        self._held = b""
        self._open.clear()

    def line_ended(self) -> None:
        """A line of our own has ended, which began without the colours of what came before."""
        self.calm()
        self._marked = False
        self.at_line_start = True
        self._column = self._widest = 0


def _missing(data: bytes, before: int) -> int:
    """How many bytes of the last character have not come; too many where it is none.

    :param before: the same of what came before.
    """
    if data[-1] < 0x80:
        return 0
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return max((2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) - back, 0)
        if byte < 0x80:
            return 1
    return before - len(data) if 0 < len(data) <= before else 1
