"""Secret values taken out of a stream of bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Redactor", "secret_values"]

MASK = b"***"


def secret_values(names: Iterable[str], env: Mapping[str, str]) -> tuple[bytes, ...]:
    """The values of secret variables, each line of a longer one by itself; empty ones cannot be hidden."""
    lines = (line.strip() for name in names for line in env.get(name, "").splitlines())
    return tuple(sorted({line.encode("utf-8", "surrogateescape") for line in lines if line}, key=len, reverse=True))


class Redactor:
    """Hands bytes on with every secret value replaced, also where it is cut by the pieces it comes in.

    :param values: not empty, longest first.
    :param write: gets what may be seen.
    """

    def __init__(self, values: tuple[bytes, ...], write: Callable[[bytes], object]) -> None:
        self._pattern = re.compile(b"(?=(" + b"|".join(map(re.escape, values)) + b"))")  # also where they overlap
        self._held_back = len(values[0]) - 1
        self._write = write
        self._rest = b""

    def write(self, data: bytes) -> None:
        """Hand on a piece; what may be the beginning of a secret waits for the next."""
        self._rest = self._emit(self._rest + data, self._held_back)

    def close(self) -> None:
        """Hand on the rest."""
        self._emit(self._rest, 0)
        self._rest = b""

    def _emit(self, data: bytes, hold: int) -> bytes:
        end = max(len(data) - hold, 0)
        out = []
        at = 0
        for start, stop in self._hidden(data):
            if start >= end:
                break  # it may yet turn out to be part of a longer one
            out += [data[at:start], MASK]
            at = stop
        end = max(end, at)
        out.append(data[at:end])
        if seen := b"".join(out):
            self._write(seen)
        return data[end:]

    def _hidden(self, data: bytes) -> list[tuple[int, int]]:
        """Where secrets are, those that overlap taken together."""
        spans: list[tuple[int, int]] = []
        for match in self._pattern.finditer(data):
            start, stop = match.start(), match.start() + len(match.group(1))
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], stop))
            else:
                spans.append((start, stop))
        return spans
