"""The command line that goes on from where a run has ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["command_to_go_on", "quoted"]

_LONGEST = 400  # characters that somebody still reads
_FORCES = "--force"
_ONLY = "--only"
_FROM = "--from"


def command_to_go_on(
    words: Sequence[str], undone: Sequence[str], *, pending: Collection[str] = (), steps: Sequence[str] = ()
) -> str:
    """The words that were given, without what would have finished steps run again; empty where none could be copied.

    What was to run though it is done, and has not begun, still is.

    :param words: after the program's name.
    :param undone: ids of the steps that are not done, in order.
    :param pending: ids of those among them that have not begun.
    :param steps: ids of all steps that the run looked at, in order.
    """
    out: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        if flag in (_FORCES, _ONLY):
            left = [value] if equals else _take_values(rest)
            if kept := [step for step in left if step in (undone if flag == _ONLY else pending)]:
                out += [flag, *kept]
        elif flag == _FROM:
            first = value if equals or not rest else rest.pop(0)
            out += _going_on_from(first, undone, pending, steps)
        else:
            out.append(word)
            if not equals and word.startswith("-") and rest and not rest[0].startswith("-"):
                out.append(rest.pop(0))
    text = quoted(["checkpoint-run", *out])
    return text if len(text) <= _LONGEST and text.isprintable() else ""


def _going_on_from(first: str, undone: Sequence[str], pending: Collection[str], steps: Sequence[str]) -> Sequence[str]:
    """What stands for ``--from`` now: only what has not begun has to be told to run though it is done."""
    after = steps[steps.index(first) :] if first in steps else undone
    owed = [step for step in after if step in pending]
    if not owed:
        return ()
    last_done = max((at for at, step in enumerate(after) if step not in undone), default=-1)
    tail = after[last_done + 1 :]
    return (_FROM, tail[0]) if tail and owed[0] in tail else (_FORCES, *owed)


def _take_values(rest: list[str]) -> list[str]:
    """The words up to the next option."""
    taken: list[str] = []
    while rest and not rest[0].startswith("-"):
        taken.append(rest.pop(0))
    return taken


def quoted(words: Sequence[str]) -> str:
    """Words as a shell takes them."""
    if sys.platform == "win32":
        from subprocess import list2cmdline  # noqa: PLC0415  # loaded by then

        return list2cmdline(words)
    from shlex import join  # noqa: PLC0415  # only where a line is shown

    return join(words)
