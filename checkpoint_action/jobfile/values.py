"""The small languages of the job file and the command line: names, durations, sizes, retry causes."""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

__all__ = [
    "NAME_RULE",
    "NO_VARIABLE",
    "SHELLS",
    "is_name",
    "is_variable",
    "log_name",
    "name_from",
    "nearest",
    "parse_duration",
    "parse_endpoint",
    "parse_limit",
    "parse_retry_cause",
    "parse_shell",
    "parse_size",
    "unknown_id",
]

NAME_RULE = "letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100 characters"

NO_VARIABLE = "cannot be the name of a variable; write letters, digits and '_', no wildcards"

SHELLS = ("bash", "sh", "pwsh", "python")
"""The shells known by name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_NO_NAME = re.compile(r"[=*?\s\0]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_DURATION = re.compile(r"(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?\Z", re.ASCII)
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]*)\Z", re.ASCII)
_UNITS = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
_UNITS |= {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_SHOWN = 10
_LONGEST = 10 * 365 * 86400.0
_LARGEST = 10**15


def is_name(text: str) -> bool:
    """Whether ``text`` can be the id of a step or the name of a job."""
    return _NAME.match(text) is not None


def is_variable(text: str) -> bool:
    """Whether ``text`` can be the name of a variable, as any system may have it: also ``ProgramFiles(x86)``."""
    return bool(text) and not _NO_NAME.search(text)


def name_from(text: str, default: str) -> str:
    """The nearest valid name to ``text`` (a folder's name, say); ``default`` where nothing is left of it."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")
    name = re.sub(r"^[^A-Za-z0-9]+", "", name)[:100]
    return name or default


def nearest(word: str, valid: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the one of ``valid`` that was meant, or an empty text when none is close.

    Close is what a slip of the fingers makes of it, or what it begins with.
    """
    import difflib  # noqa: PLC0415  # only mistakes pay for it

    folded = {name.casefold().lstrip("-"): name for name in valid}
    key = word.casefold().lstrip("-")
    for close in difflib.get_close_matches(key, folded, n=5, cutoff=0.6):
        shorter, longer = sorted((key, close), key=len)
        slips = max(1, min(3, len(longer) // 3))
        if _slips(key, close) <= slips or (len(shorter) > 2 and longer.startswith(shorter)):
            return f"; did you mean '{folded[close]}'?"
    return ""


def _slips(one: str, other: str) -> int:
    """How many letters are left out, put in, exchanged or swapped with the next to make the one of the other."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, there in enumerate(other, 1):
            least = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != there))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == there:
                least = min(least, before[column - 2] + 1)
            now.append(least)
        before, last = last, now
    return last[-1]


def unknown_id(word: str, valid: Iterable[str], several: str = "give ids with a space between them") -> str:
    """What to say of a word that is the id of no step: the nearest id, or which there are.

    :param several: what to do to name several steps at once.
    """
    if "," in word:
        return f"; {several}"
    ids = list(dict.fromkeys(valid))
    hint = nearest(word, ids)
    if hint or not ids:
        return hint
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"; the ids are {', '.join(ids[:_SHOWN])}{more}"


def parse_duration(text: str) -> float:
    """Seconds of ``90``, ``1.5``, ``90s``, ``10m`` or ``1h30m``.

    :raises ValueError: it is none of these, or not a time between 0 and ten years.
    """
    text = text.strip()
    if _NUMBER.match(text):
        seconds = float(text)
    else:
        match = _DURATION.match(text)
        if match is None or not text:
            raise ValueError(f"'{text}' is not a duration; write 90, 90s, 10m or 1h30m")
        seconds = 3600 * float(match.group("h") or 0) + 60 * float(match.group("m") or 0) + float(match.group("s") or 0)
    if not math.isfinite(seconds) or not 0 <= seconds <= _LONGEST:
        raise ValueError(f"'{text}' is not a duration between 0 and ten years")
    return seconds


def parse_size(text: str) -> int:
    """Bytes of ``1000000``, ``500MB`` (powers of 1000) or ``2GiB`` (powers of 1024); letter case apart.

    :raises ValueError: it is none of these, or no byte at all.
    """
    text = text.strip()
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"'{text}' is not a size; write 500MB, 2GiB or a number of bytes")
    units = {unit.casefold(): unit for unit in _UNITS}
    unit = units.get((match.group("unit") or "B").casefold())
    if unit is None:
        hint = nearest(match.group("unit"), _UNITS)
        raise ValueError(f"'{text}' is not a size{hint or '; write 500MB, 2GiB or a number of bytes'}")
    size = float(match.group("number")) * _UNITS[unit]
    if not 1 <= size <= _LARGEST:
        raise ValueError(f"'{text}' is not a size between a byte and 1000 TB")
    return int(size)


def parse_retry_cause(text: str) -> Literal["error", "timeout"] | int:
    """One word of a retry list: ``error``, ``timeout`` or an exit code.

    :raises ValueError: it is none of these.
    """
    if text == "error":
        return "error"
    if text == "timeout":
        return "timeout"
    if re.fullmatch(r"[0-9]{1,10}", text) and int(text) > 0:
        return int(text)
    raise ValueError(f"'{text}' is neither error, timeout nor an exit code{nearest(text, ('error', 'timeout'))}")


def parse_limit(text: str) -> float:
    """Seconds of a duration that something may take, so more than none.

    :raises ValueError: it is no duration, or nothing could ever happen in it.
    """
    seconds = parse_duration(text)
    if seconds <= 0:
        raise ValueError(f"'{text}' leaves no time at all; leave the limit out to have none")
    return seconds


def parse_shell(text: str) -> str:
    """A shell: one of :data:`SHELLS`, or a command with ``{0}`` for the script.

    :raises ValueError: it is neither. A program without ``{0}`` would end well without having seen the step's command.
    """
    if text in SHELLS:
        return text
    import shlex  # noqa: PLC0415  # only a shell of one's own needs it

    if "{0}" not in text:
        raise ValueError(
            f"unknown shell '{text}'{nearest(text, SHELLS)} "
            f"(valid are {', '.join(SHELLS)} or a command with {{0}} for the script)"
        )
    try:
        shlex.split(text)
    except ValueError:
        raise ValueError(f"the shell '{text}' has a quotation mark too few or too many") from None
    return text


def parse_endpoint(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` or ``[IPV6]:PORT``.

    :raises ValueError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"'{text}' is not HOST:PORT, such as example.com:443")
    return host, int(port)


def log_name(step: str) -> str:
    """A step's log file: its id, away from the names that Windows keeps for devices."""
    device = re.match(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z)", step, re.IGNORECASE)
    return f"_{step}.log" if device else f"{step}.log"
