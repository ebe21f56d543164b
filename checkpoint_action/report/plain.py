"""Texts, times and sizes for people. Loads next to nothing, as every start needs it."""

from __future__ import annotations

__all__ = ["duration", "one_line", "size", "worth_saying"]

_CONTROL = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"


def one_line(text: str) -> str:
    """A text without what would break its line, drive a terminal or turn its direction: escapes are shown for that."""
    if text.isprintable():  # none of these is
        return text
    import re  # noqa: PLC0415  # takes as long to load as all else that some answers need

    return re.sub(_CONTROL, lambda match: match[0].encode("unicode_escape").decode(), text)


def duration(seconds: float) -> str:
    """Seconds in the two largest units that say something: ``0.4 s``, ``12.0 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 59.95:
        return f"{max(seconds, 0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def worth_saying(seconds: float) -> bool:
    """Whether a time is more than the ``0.0 s`` it would be shown as."""
    return seconds >= 0.05


def size(count: int) -> str:
    """Bytes in the largest binary unit that leaves at least one."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
