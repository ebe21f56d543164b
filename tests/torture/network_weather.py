"""What goes wrong on a line to a service, drawn by chance."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FAULTS", "LYING", "Weather"]

FAULTS: Mapping[str, str] = {
    "reset": "connection reset, request not handled",
    "reset-after": "connection reset, request handled",
    "hang-up": "connection reset in the middle of a request's body",
    "429": "429",
    "429-after": "429 with `Retry-After: 1`",
    "429-long": "429 with `Retry-After: 86400`",
    "500": "500, not handled",
    "500-after": "500, request handled",
    "502": "502 with a page",
    "503": "503 with `Retry-After` as a date",
    "504": "504",
    "401": "401",
    "403": "403, as of an expired signed URL",
    "404": "404",
    "slow-bytes": "slow bytes",
    "late": "late answer",
    "cut": "body cut off",
    "too-long": "`Content-Length` larger than the body, line held open",
    "too-short": "`Content-Length` smaller than the body",
    "flipped-answer": "flipped byte in an answer",
    "flipped-request": "flipped byte in what is sent",
    "page": "200 with an HTML page, not handled",
    "empty": "200 with nothing, not handled",
    "other-bytes": "another answer's bytes",
    "redirect": "redirect to the same place",
    "redirect-loop": "redirect without an end",
    "redirect-dead": "redirect to a closed port",
    "silence": "no answer ever (black hole)",
    "garbage": "bytes that are no HTTP",
}
"""What may happen to a request, in the words of the documentation."""

LYING = frozenset({"page", "empty", "other-bytes", "flipped-request", "flipped-answer", "too-short", "reset-after"})
"""Those after which a client may rightly take for kept what is not, or the other way round."""


class Weather:
    """Which fault each request meets, in the order in which they come.

    :param kinds: keys of :data:`FAULTS` that are drawn from.
    :param rate: how likely a request is to meet one.
    :param calm_after: number of requests after which nothing goes wrong any more.
    """

    def __init__(self, seed: str, kinds: Sequence[str], rate: float, calm_after: int) -> None:
        self.kinds = kinds
        self.rate = rate
        self.calm_after = calm_after
        self.met: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self._requests = 0
        self._lock = threading.Lock()

    def next(self) -> str:
        """The fault of the next request, or an empty text."""
        with self._lock:
            self._requests += 1
            hit, kind = self._chance.random() < self.rate, self._chance.choice(list(self.kinds) or [""])
            if not hit or not kind or self._requests > self.calm_after:
                return ""
            self.met[kind] += 1
            return kind
