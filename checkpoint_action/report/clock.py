"""Times and texts for a line that has little room."""

from __future__ import annotations

__all__ = ["clock", "fitted"]


def clock(seconds: float) -> str:
    """Seconds as a clock shows them: ``0:07``, ``12:05``, ``1:02:05``."""
    minutes, rest = divmod(max(int(seconds), 0), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def fitted(text: str, width: int, dots: str = "...") -> str:
    """A text of characters that are one column wide, cut to a width.

    :param dots: what stands for the rest.
    """
    if len(text) <= width:
        return text
    return text[: max(width - len(dots), 0)] + dots[: max(width, 0)]
