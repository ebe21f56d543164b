"""Inputs made from others by chance, for where no coverage guides: by byte, by word and by value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

__all__ = ["Mutator"]

_LONGEST = 1 << 16
_LONGEST_SWOLLEN = 1 << 19
_VALUE = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null|[A-Za-z_][\w.-]*')
_ODD = (
    *(b"null", b"true", b"false", b"-1", b"0", b"1e999", b"NaN", b"-Infinity", b"1.5", b"[]", b"{}", b"[[]]"),
    *(b"1" * 30, b"9" * 5000, b'""', b'"\\ud800"', b'"\\u0000"', b'"../../x"', b'"/etc/passwd"', b'"7777"'),
    *(b'"' + b"x" * 5000 + b'"', b'[1,"a",null]', b'{"a":[]}', b'"link"', b'"dir"', b'"a\\u202eb"'),
    *(b'"\\n::error::x"', b'"<script>alert(1)</script>"'),
)
_INTERESTING = (
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\x80",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"::",
        b"##[",
        b"|",
        b"`",
    ),
)


class Mutator:
    """Makes an input of what there is.

    :param words: what the inputs of the target are made of.
    """

    def __init__(self, words: Sequence[bytes], chance: random.Random) -> None:
        self._chance = chance
        self._words = [*words, *_INTERESTING]
        self._ways: list[Callable[[bytes, Sequence[bytes]], bytes]] = [
            *[self._flip, self._odd_value, self._odd_value, self._odd_value, self._insert_word, self._cut],
            *[self._repeat, self._splice, self._other_value, self._nest],
        ]

    def __call__(self, corpus: Sequence[bytes]) -> bytes:
        """One input, a few steps away from one of the corpus."""
        data = self._chance.choice(corpus)
        for _ in range(min(1 + int(self._chance.expovariate(0.7)), 8)):
            data = self._chance.choice(self._ways)(data, corpus)[:_LONGEST]
        if self._chance.random() < 0.004:
            data = self._swell(data)
        return data

    def _place(self, data: bytes) -> int:
        return self._chance.randrange(len(data) + 1)

    def _flip(self, data: bytes, _corpus: Sequence[bytes]) -> bytes:
        changed = bytearray(data or b"\0")
        for _ in range(self._chance.randint(1, 4)):
            changed[self._chance.randrange(len(changed))] = self._chance.randrange(256)
        return bytes(changed)

    def _insert_word(self, data: bytes, _corpus: Sequence[bytes]) -> bytes:
        at, gone = self._place(data), self._chance.choice((0, 0, 1, 5))
        return data[:at] + self._chance.choice(self._words) + data[at + gone :]

    def _cut(self, data: bytes, _corpus: Sequence[bytes]) -> bytes:
        at = self._place(data)
        return data[:at] + data[at + self._chance.choice((1, 2, 8, 64, 512, _LONGEST)) :]

    def _repeat(self, data: bytes, _corpus: Sequence[bytes]) -> bytes:
        at = self._place(data)
        part = data[at : at + self._chance.choice((1, 4, 16, 64, 512))]
        return data[:at] + part * self._chance.choice((2, 3, 10, 100)) + data[at:]

    def _splice(self, data: bytes, corpus: Sequence[bytes]) -> bytes:
        other = self._chance.choice(corpus)
        return data[: self._place(data)] + other[self._place(other) :]

    def _value(self, data: bytes) -> tuple[int, int] | None:
        """Where one of the values of a text is."""
        start = self._place(data)
        match = _VALUE.search(data, start) or _VALUE.search(data)
        return match.span() if match else None

    def _odd_value(self, data: bytes, _corpus: Sequence[bytes]) -> bytes:
        place = self._value(data)
        return data if place is None else data[: place[0]] + self._chance.choice(_ODD) + data[place[1] :]

    def _other_value(self, data: bytes, corpus: Sequence[bytes]) -> bytes:
        other = self._chance.choice(corpus)
        place, theirs = self._value(data), self._value(other)
        if place is None or theirs is None:
            return data
        return data[: place[0]] + other[theirs[0] : theirs[1]] + data[place[1] :]

    def _nest(self, data: bytes, _corpus: Sequence[bytes]) -> bytes:
        """A value in so many brackets that whoever goes into them one by one has no stack left, or almost none."""
        place = self._value(data)
        if place is None:
            return data
        depth = self._chance.choice((20, 100, self._chance.randrange(200, 1100), 5000))
        before, after = self._chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b""), (b"{? ", b"}")))
        return data[: place[0]] + before * depth + data[slice(*place)] + after * depth + data[place[1] :]

    def _swell(self, data: bytes) -> bytes:
        """A part of it over and over: what takes more than a little for each byte is seen by that."""
        at = self._place(data)
        part = data[at : at + self._chance.choice((1, 8, 40, 200))] or b"["
        return data[:at] + part * (_LONGEST_SWOLLEN // len(part)) + data[at:]
