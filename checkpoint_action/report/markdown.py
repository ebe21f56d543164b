"""Text of others put into Markdown so that it shows as it is and means nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkpoint_action.report.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["code", "fenced", "shortened"]


def shortened(text: str, longest: int) -> str:
    """A text of at most so many characters; of a longer one both ends."""
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[len(text) - half :]}"


def code(text: str, longest: int = 200, *, cell: bool = False) -> str:
    """A text in one line as code: no sign in it is markup, a mention or a reference.

    :param longest: characters; of a longer one both ends are shown.
    :param cell: whether it stands in a table.
    """
    text = _shown(shortened(one_line(text), longest))
    if not cell:
        return _span(text)
    # A backslash before the bar would undo the one that keeps it from ending the cell.
    return "&#124;".join(_span(part).replace("|", r"\|") for part in re.split(r"(?<=\\)\|", text))


def _span(text: str) -> str:
    if not text:
        return ""
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{space}{text}{space}{fence}"


def fenced(lines: Iterable[str], language: str = "") -> str:
    """Lines as a block of code, behind a fence that nothing in them can end."""
    text = "\n".join(_shown(line) for line in lines)
    fence = "`" * max(_longest_run(text) + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _shown(text: str) -> str:
    """Bytes that were no text, by their escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
