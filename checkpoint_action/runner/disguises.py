"""The forms in which secrets show up in logs, as patterns of a known length."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CREDENTIALS", "LONGEST_ENCODED", "Pattern", "disguised"]

LONGEST_ENCODED = 4096
"""Bytes of the longest line of a secret that is found in base64 too."""

_SHORTEST_ENCODED = 4  # of fewer bytes base64 leaves too little to know them by
_PIECE = 1024  # bytes of a long secret that are looked for together
_PER_BYTE = 4  # characters that a byte of a secret becomes at most
_LONGEST = 4096  # characters of a credential


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is to be hidden.

    :param regex: looks at nothing before its match; hides its group where it has one (the last), else the match.
    :param longest: bytes of the longest match.
    :param lead: bytes at most between the beginnings of match and group.
    """

    regex: re.Pattern[bytes]
    longest: int
    lead: int = 0


def _credential(before: bytes, secret: bytes, longest: int = _LONGEST, lead: int = 40) -> Pattern:
    """What is behind ``before``, or looks like ``secret`` where there is no such thing.

    Lengths have bounds, not only for the memory: each place where one may begin is looked at by itself.
    """
    if before:
        return Pattern(re.compile(before + b"(" + secret + b")"), lead + longest, lead)
    return Pattern(re.compile(secret), longest)


_IS = rb"(?:=|%3[dD])"
_QUERY = rb"[^\s&\"'<>]{1,4096}"

CREDENTIALS = (
    _credential(b"", rb"gh[oprsu]_[A-Za-z0-9_.-]{16,1024}"),
    _credential(b"", rb"github_pat_[A-Za-z0-9_]{16,1024}"),
    _credential(b"", rb"eyJ[A-Za-z0-9_-]{8,1000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}", 11100),
    _credential(
        rb"[aA][uU][tT][hH][oO][rR][iI][zZ][aA][tT][iI][oO][nN][\"']?[ \t]{0,8}[:=][ \t]{0,8}", rb"\S[^\r\n]{0,4095}"
    ),
    _credential(rb"::add-mask::", rb"[^\r\n]{1,4096}"),
    _credential(rb"[sS]ig" + _IS, _QUERY),
    _credential(rb"[sS]ignature" + _IS, _QUERY),
    _credential(rb"[xX]-[aA]mz-(?:[cC]redential|[sS]ecurity-[tT]oken)" + _IS, _QUERY),
    _credential(rb"[xX]-[gG]oog-[cC]redential" + _IS, _QUERY),
    _credential(rb"[?&](?:access_)?token=", _QUERY),
    _credential(rb"://[^\s/:@\"']{0,256}:", rb"[^\s/@\"']{1,1024}(?=@)", 1025, 260),
)
"""What is a secret by the look of it: GitHub's tokens, JSON web tokens, ``Authorization`` headers, arguments of
``::add-mask::``, the signatures of signed addresses (Azure, AWS, Google) and passwords in addresses."""


def disguised(values: Iterable[str]) -> list[Pattern]:
    """Patterns for secret values, each line of a longer one by itself: as they are, in addresses and in base64.

    In addresses any character may be percent-encoded that is not a letter or a digit, and a space may be a plus; such a
    character may also have a backslash before it, as in JSON. In base64 a value of four bytes and more is found with
    whatever is encoded before and behind it, in both alphabets, and with line breaks; a character at either end that
    is made of a few bits of the secret and of what is beside it stays.
    """
    lines = {line.strip() for value in values for line in (value, *value.splitlines())}
    lines = {line for line in lines if line and len(line.splitlines()) == 1}
    forms: set[tuple[int, tuple[bytes, ...]]] = set()
    for text in lines:
        line = text.encode("utf-8", "surrogateescape")
        for at in range(0, len(line), _PIECE):
            piece = line[at : at + _PIECE]
            forms.add((len(piece) * _PER_BYTE, tuple(_in_address(byte) for byte in piece)))
        if _SHORTEST_ENCODED <= len(line) <= LONGEST_ENCODED:
            forms.update(_in_base64(line))
    return [_joined(forms)] if forms else []


def _in_address(byte: int) -> bytes:
    char = bytes([byte])
    if char.isalnum():
        return char
    spaces = rb"|\+" if char == b" " else b""
    first, second = (f"[{digit}{digit.lower()}]" if digit.isalpha() else digit for digit in f"{byte:02X}")
    # The longer form first: a percent sign is the beginning of its own.
    return b"(?:%" + f"{first}{second}".encode() + rb"|\\?" + re.escape(char) + spaces + b")"


def _in_base64(line: bytes) -> Iterable[tuple[int, tuple[bytes, ...]]]:
    """Its characters for each of the places that it may have in a group of three bytes."""
    for before in range(3):
        whole = base64.b64encode(bytes(before) + line)
        first = -(-before * 8 // 6)
        for core in {whole[first : (before + len(line)) * 8 // 6], whole.rstrip(b"=")[first:]}:  # the latter at the end
            chars = [{b"+": rb"[+\-]", b"/": b"[/_]"}.get(char, char) for char in re.findall(b".", core)]
            yield len(core) * 3, (chars[0], *(rb"[\r\n]{0,2}" + char for char in chars[1:]))


def _joined(forms: set[tuple[int, tuple[bytes, ...]]]) -> Pattern:
    """One pattern of all, the longest first, in groups by their first byte: a search then looks at few of them."""
    groups: dict[bytes, list[bytes]] = {}
    for _, chars in sorted(forms, key=lambda form: (-len(form[1]), form)):
        groups.setdefault(chars[0], []).append(b"".join(chars[1:]))
    regex = b"|".join(first + b"(?:" + b"|".join(rests) + b")" for first, rests in groups.items())
    return Pattern(re.compile(regex), max(longest for longest, _ in forms))
