"""Secret values taken out of a stream of bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from checkpoint_action.runner.disguises import Pattern

__all__ = ["MASK", "Redactor", "secret_values"]

MASK = b"***"


def secret_values(names: Iterable[str], env: Mapping[str, str]) -> tuple[bytes, ...]:
    """The values of secret variables, each line of a longer one by itself; empty ones cannot be hidden."""
    lines = (line.strip() for name in names for line in env.get(name, "").splitlines())
    return tuple(sorted({line.encode("utf-8", "surrogateescape") for line in lines if line}, key=len, reverse=True))


class Redactor:
    """Hands bytes on with every secret in them replaced, also where it is cut by the pieces it comes in.

    What is handed on is the same however the pieces are cut.

    :param values: hidden as they are, longest first; none where there are ``patterns``.
    :param write: gets what may be seen.
    :param patterns: what else is hidden.
    :param unseen: so many of the first bytes are not handed on; they only show whether a secret begins among them.
    :ivar held_back: bytes that are not handed on before more has come, or the end.
    """

    def __init__(
        self,
        values: tuple[bytes, ...],
        write: Callable[[bytes], object],
        *,
        patterns: Iterable[Pattern] = (),
        unseen: int = 0,
    ) -> None:
        listed = list(patterns)
        self._patterns = [pattern.regex for pattern in listed]
        if values:
            self._patterns.append(re.compile(b"|".join(map(re.escape, values))))
        longest = max([pattern.longest for pattern in listed] + [len(value) for value in values])
        self.held_back = longest - 1
        self._context = max((pattern.lead for pattern in listed), default=0)
        self._write = write
        self._rest = b""
        self._settled = unseen  # bytes of the rest that have been handed on or replaced

    def write(self, data: bytes) -> None:
        """Hand on a piece; what may be the beginning of a secret waits for the next."""
        self._rest += data
        self._emit(len(self._rest) - self.held_back)

    def close(self) -> None:
        """Hand on the rest."""
        self._emit(len(self._rest))
        self._rest = b""

    def _emit(self, end: int) -> None:
        """Settle the bytes before ``end``: no secret that begins there can turn out to be a longer one."""
        if end <= 0:
            return
        data = self._rest
        out = []
        at = self._settled
        for start, stop in self._hidden(data, end):
            if stop <= at:
                continue
            if start >= at:
                out += [data[at:start], MASK]
            at = stop  # or else it goes on with one that is replaced already
        if at < end:
            out.append(data[at:end])
            at = end
        keep = max(end - self._context, 0)  # a secret may begin with what tells it
        self._rest = data[keep:]
        self._settled = at - keep
        if seen := b"".join(out):
            self._write(seen)

    def _hidden(self, data: bytes, end: int) -> list[tuple[int, int]]:
        """Where secrets are that begin before ``end``, those that overlap taken together."""
        found: list[tuple[int, int]] = []
        for pattern in self._patterns:
            match = pattern.search(data)
            while match and match.start() < end:
                span = match.span(pattern.groups)  # the group, where it has one
                if span[0] < end:
                    found.append(span)
                match = pattern.search(data, match.start() + 1)  # also where they overlap
        found.sort()
        spans: list[tuple[int, int]] = []
        for start, stop in found:
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], stop))
            else:
                spans.append((start, stop))
        return spans
