"""What a YAML parser finds wrong, in words for somebody who does not know YAML's own."""

from __future__ import annotations

import re

__all__ = ["plain_words"]

_KEY = re.compile(r"[ ]*(?:- +)*(?P<key>[A-Za-z0-9_-]+):[ ]+\S")
_INDENT = "wrong indentation; begin this line in the same column as the lines it belongs with"
_COLON = "a text holds ': '; put the whole text in quotes, or write '{key}: |' and the text in the line below"
_CLOSE = {"]": "list begun with '['", "}": "mapping begun with '{'"}
_QUOTED = "a text that begins with '{0}' must be put in quotes"

_KNOWN = (
    ("found unexpected end of stream", "the quotation mark in line {begun} is never closed"),
    ("unknown escape character", "a backslash in double quotes stands for more; use single quotes, or double it"),
    ("while scanning an alias", _QUOTED.format("*")),
    ("found undefined alias", _QUOTED.format("*")),
    ("while scanning an anchor", _QUOTED.format("&")),
    ("while scanning a tag", _QUOTED.format("!")),
    ("while parsing a tag", _QUOTED.format("!")),
    ("line break", "a text after '|' or '>' begins in the next line"),
    ("sequence entries are not allowed", "a list cannot begin here; begin each '- ' in a line of its own"),
    ("could not find expected ':'", "line {begun} has no ': '; write it as 'key: value'"),
    ("<document start>", _INDENT),
)


def plain_words(said: str, text: str, place: tuple[int, int], begun: int) -> str:
    """What is wrong and what to do; the parser's own words where it is nothing that is known.

    :param said: the parser's words, those of libyaml or of the Python one.
    :param place: line and column, from 1.
    :param begun: line, from 1, where what is broken began.
    """
    line, column = place
    row = (text.split("\n")[line - 1 : line] or [""])[0]
    before, char = row[: column - 1], row[column - 1 : column]
    if "found a tab character" in said or ("cannot start any token" in said and char == "\t"):
        return "a tab where YAML wants spaces; indent with spaces"
    if "cannot start any token" in said and char:
        return _QUOTED.format(char)
    if "mapping values are not allowed" in said:
        return _colon(before) or f"{_INDENT}, and see that a key above it has its ':'"
    for closing, what in _CLOSE.items():
        if f"',' or '{closing}'" in said:
            inside = char == ":" and begun == line
            return (
                _COLON.format(key="run") if inside else f"the {what} in line {begun} lacks a comma or its '{closing}'"
            )
    if "while parsing a block" in said and ("expected key" in said or "'-'" in said or "<block end>" in said):
        return (
            "text after a closing quotation mark or bracket; put the whole text in quotes"
            if before.strip()
            else _INDENT
        )
    for part, words in _KNOWN:
        if part in said:
            return words.format(begun=begun)
    return said


def _colon(before: str) -> str:
    """For a colon in the text of a key in the same line."""
    key = _KEY.match(before)
    return _COLON.format(key=key["key"]) if key else ""
