"""The command line that goes on from where a run has ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command_to_go_on", "quoted"]

_LONGEST = 400  # characters that somebody still reads
_FORCES = "--force"
_ONLY = "--only"
_FROM = "--from"


def command_to_go_on(words: Sequence[str], undone: Sequence[str]) -> str:
    """The words that were given, without what would have finished steps run again; empty where nobody could read them.

    :param words: after the program's name.
    :param undone: ids of the steps that are not done, in order.
    """
    out: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, _ = word.partition("=")
        if flag == _FORCES:
            _take_values(rest, equals)
        elif flag == _ONLY:
            left = _take_values(rest, equals) + ([word.partition("=")[2]] if equals else [])
            if kept := [step for step in left if step in undone]:
                out += [_ONLY, *kept]
        elif flag == _FROM:
            if not equals and rest:
                rest.pop(0)
            if undone:
                out += [_FROM, undone[0]]
        else:
            out.append(word)
            if not equals and word.startswith("-") and rest and not rest[0].startswith("-"):
                out.append(rest.pop(0))
    text = quoted(["checkpoint-run", *out])
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def _take_values(rest: list[str], equals: str) -> list[str]:
    """The words up to the next option."""
    taken: list[str] = []
    while not equals and rest and not rest[0].startswith("-"):
        taken.append(rest.pop(0))
    return taken


def quoted(words: Sequence[str]) -> str:
    """Words as a shell takes them."""
    if sys.platform == "win32":
        from subprocess import list2cmdline  # noqa: PLC0415  # loaded by then

        return list2cmdline(words)
    from shlex import join  # noqa: PLC0415  # only where a line is shown

    return join(words)
