"""Path patterns: ``*`` and ``?`` within a part, ``**`` over parts, ``[…]`` classes, ``!`` to take away."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["Excludes", "escaped", "has_magic", "literal", "matcher", "static_prefix"]

_MAGIC = re.compile(r"[*?\[]")
_HIDDEN = re.compile(r"\[([*?\[])\]")  # a special character that stands for itself


def has_magic(pattern: str) -> bool:
    """Whether a pattern is more than one literal path."""
    return _MAGIC.search(pattern) is not None


def escaped(path: str) -> str:
    """A path as a pattern that matches it and nothing else."""
    return _MAGIC.sub(r"[\g<0>]", path)


def literal(pattern: str) -> str | None:
    """The one path that a pattern names, ``None`` where it can match others."""
    return None if has_magic(_HIDDEN.sub("", pattern)) else _HIDDEN.sub(r"\1", pattern)


def static_prefix(pattern: str) -> str:
    """The folder that everything a pattern can match lies in, empty for the starting folder itself."""
    parts = pattern.split("/")
    literal = []
    for part in parts[:-1]:
        if has_magic(part):
            break
        literal.append(part)
    return "/".join(literal)


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> re.Pattern[str]:
    """A compiled pattern for whole paths with ``/`` between parts.

    What follows a ``*`` or ``**`` is looked for once and from the left, as in any match a place further left does too.
    Only the last of them tries every place, so that the time a match takes never grows with a power of their number.
    """
    parts = pattern.rstrip("/").split("/")
    parts = [part for number, part in enumerate(parts) if part != "**" or parts[number + 1 : number + 2] != ["**"]]
    settled = _Settled()
    stretches: list[list[str]] = [[]]  # of parts between two **
    for part in parts[:-1]:
        if part == "**":
            stretches.append([])
        else:
            stretches[-1].append(_part(part, settled) + "/")
    end = ".*" if parts[-1] == "**" else _part(parts[-1], settled)
    first, *later = ("".join(stretch) for stretch in stretches)
    out = [first, *(settled.first(f"(?:[^/]+/)*?{stretch}") for stretch in later[:-1])]
    out += [f"(?:[^/]+/)*{stretch}" for stretch in later[-1:]]
    return re.compile("".join(out) + end + r"\Z", re.DOTALL)


class _Settled:
    """Makes patterns that keep to their first match, whatever follows; from Python 3.11 on that is ``(?>…)``."""

    def __init__(self) -> None:
        self._count = 0

    def first(self, pattern: str) -> str:
        self._count += 1
        return f"(?=(?P<_{self._count}>{pattern}))(?P=_{self._count})"


def _part(part: str, settled: _Settled) -> str:
    stretches: list[list[str]] = [[]]  # of characters between two *
    position = 0
    while position < len(part):
        char = part[position]
        position += 1
        if char == "*":
            stretches.append([])
            while part[position : position + 1] == "*":
                position += 1
        elif char == "?":
            stretches[-1].append("[^/]")
        elif char == "[" and (found := _class(part, position)):
            text, position = found
            stretches[-1].append(text)
        else:
            stretches[-1].append(re.escape(char))
    first, *later = ("".join(stretch) for stretch in stretches)
    out = [first, *(settled.first(f"[^/]*?{stretch}") for stretch in later[:-1])]
    out += [f"[^/]*{stretch}" for stretch in later[-1:]]
    return "".join(out)


def _class(part: str, start: int) -> tuple[str, int] | None:
    """The class that follows a bracket, and where it ends; ``None`` where the bracket stands for itself (``[z-a]``)."""
    negated = part.startswith("!", start)
    position = start + negated
    end = part.find("]", position + 1)
    if end < 0:
        return None
    items = []
    while position < end:
        low = high = part[position]
        if part[position + 1] == "-" and position + 2 < end:
            high = part[position + 2]
            position += 2
        position += 1
        if high < low:
            return None
        items.append(f"{re.escape(low)}-{re.escape(high)}")
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", end + 1


class Excludes:
    """Paths to leave out, in the manner of ``.gitignore``.

    A pattern without a slash (but at its end) holds at any depth, one with a slash from the starting folder.
    What lies in an excluded folder is excluded with it; a later ``!pattern`` takes a path back in.

    :param patterns: in order; the last that matches decides.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._rules = []
        for raw in patterns:
            keep = raw.startswith("!")
            pattern = raw[1:] if keep else raw
            only_folders = pattern.endswith("/")
            pattern = pattern.rstrip("/")
            if not pattern:
                continue
            anchored = "/" in pattern
            pattern = pattern.lstrip("/") if anchored else f"**/{pattern}"
            self._rules.append((matcher(pattern), keep, only_folders))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def excluded(self, path: str, *, folder: bool) -> bool:
        """Whether a path (whose folders are not excluded) is left out."""
        verdict = False
        for rule, keep, only_folders in self._rules:
            if (folder or not only_folders) and rule.match(path):
                verdict = not keep
        return verdict
