"""What a stream can show: colours, and characters beyond ASCII."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Style", "is_terminal", "style_of", "wants_plain"]

_CODES = {"good": "32", "bad": "31", "warn": "33", "head": "1", "soft": "2", "calm": "36"}
_VIRTUAL_TERMINAL = 4  # ENABLE_VIRTUAL_TERMINAL_PROCESSING

Kind = Literal["good", "bad", "warn", "head", "soft", "calm", ""]


@dataclass(frozen=True, slots=True)
class Style:
    """How texts are shown.

    :param colored: whether escape sequences for colours may be used.
    :param unicode: whether characters beyond ASCII may be.
    """

    colored: bool = False
    unicode: bool = False

    def paint(self, text: str, kind: Kind) -> str:
        """A text in the colour of its kind."""
        if not self.colored or not kind or not text:
            return text
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m"

    def around(self, kind: Kind) -> tuple[str, str]:
        """What to print before and after a line of a kind."""
        return (f"\x1b[{_CODES[kind]}m", "\x1b[0m") if self.colored and kind else ("", "")

    @property
    def dots(self) -> str:
        """Stands for what has been left out."""
        return "\u2026" if self.unicode else "..."

    @property
    def bar(self) -> str:
        """Between two parts of a line."""
        return "\u00b7" if self.unicode else "|"

    @property
    def about(self) -> str:
        """Before what is not known exactly."""
        return "~"


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody sees the stream at once."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def wants_plain(env: Mapping[str, str]) -> bool:
    """Whether the terminal, or who runs us, takes nothing but lines."""
    return env.get("TERM") == "dumb" or (env.get("CI", "").lower() not in ("", "0", "false"))


def style_of(stream: TextIO, env: Mapping[str, str], choice: str) -> Style:
    """What may be used on a stream.

    :param choice: ``always``, ``never``, or ``auto``: colours where a person sees them and has not said no.
    """
    seen = is_terminal(stream) and not wants_plain(env) and not env.get("NO_COLOR")
    colored = choice == "always" or (choice == "auto" and seen)
    if colored and is_terminal(stream) and not understands_sequences():
        colored = False
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    return Style(colored, encoding == "utf8" and sys.platform != "win32")


def understands_sequences() -> bool:
    """Whether the terminal of stderr takes escape sequences; on Windows it has to be told first."""
    if sys.platform != "win32":
        return True
    import ctypes  # noqa: PLC0415  # on Windows alone

    try:
        kernel = ctypes.windll.kernel32
        handle = kernel.GetStdHandle(-12)
        mode = ctypes.c_ulong()
        if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
            return False
        return bool(kernel.SetConsoleMode(handle, mode.value | _VIRTUAL_TERMINAL))
    except (AttributeError, OSError, ValueError):
        return False
