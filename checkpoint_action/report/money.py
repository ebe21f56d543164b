"""What saved time is worth."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

__all__ = ["Rate", "parse_rate"]

_PER = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_CURRENCY = r"[^\d\s.,/;-]{1,8}"
_RATE = re.compile(
    rf"(?P<before>{_CURRENCY})?\s*(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?P<after>{_CURRENCY})?(?:/(?P<per>\w+))?"
)


@dataclass(frozen=True, slots=True)
class Rate:
    """What a machine costs.

    :param per_second: money.
    :param before: currency as it stands before an amount, with what is between; one of the two is empty.
    :param after: currency as it stands behind one.
    """

    per_second: float
    before: str = ""
    after: str = ""

    def cost(self, seconds: float) -> str:
        """What so many seconds cost: to the cent, and a small amount to its first two digits."""
        amount = max(seconds, 0.0) * self.per_second
        digits = 2
        if 0 < amount < 0.1:
            digits = min(1 - math.floor(math.log10(amount)), 6)
        return f"{self.before}{amount:.{digits}f}{self.after}"


def parse_rate(text: str) -> Rate:
    """A price of machine time: ``0.48``, ``0.48/h``, ``0.008/min``, with a currency or not: ``$0.48/h``, ``0.45 EUR``.

    :raises ValueError: it is none.
    """
    found = _RATE.fullmatch(text.strip())
    per = _PER.get((found["per"] or "h").lower()) if found else None
    if found is None or per is None or (found["before"] and found["after"]) or float(found["number"]) > 1e9:
        raise ValueError(f"'{text}' is no price of machine time; write 0.48/h, 0.008/min or $0.48/h")
    before, after = found["before"] or "", found["after"] or ""
    if len(before) > 1 and before.isalpha():
        before += " "  # a word, as in EUR 0.45
    if len(after) > 1 or after.isalpha():
        after = f" {after}"
    return Rate(float(found["number"]) / per, before, after)
