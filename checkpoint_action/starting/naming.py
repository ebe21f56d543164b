"""An id for a step that a shell command is, made of the words in it that say most."""

from __future__ import annotations

import re

__all__ = ["name_of_command"]

_LONGEST = 40
_INNER = re.compile(r"\$\([^()]*\)|`[^`]*`|\$\{[^}]*\}|\$\w+|\d*[<>]+&?[-\s]*[^\s;&|]*")
_BETWEEN = re.compile(r"[;&|\n(){}]+")
_BEFORE = re.compile(r"(?:sudo|time|env|exec|nice|nohup|command|builtin|if|elif|while|until|!|then|else|do|in)\Z")
"""What stands before the command that counts."""

_KEYWORDS = re.compile(r"(?:for|case|select|done|fi|esac)\Z")
_MINOR = re.compile(r"(?:\[|\[\[|test|:|true|false|echo|printf|cd|pushd|popd|exit|return|sleep|wait|mkdir|set)\Z")
"""What only makes ready or looks, where there is more than that."""

_RUN_SCRIPTS = re.compile(r"(?:python|python3|bash|sh|node|perl|ruby)\Z")
_NAME_ALONE = re.compile(r"(?:grep|find|sed|awk|xargs|cat)\Z")  # what follows them is no name of anything
_SCRIPT = re.compile(r"\.(?:sh|bash|py|pl|rb|js|ts)\Z")


def name_of_command(live: str) -> str:
    """The words for an id; empty where there are none.

    :param live: the command with what is quoted or inside of other commands left blank.
    """
    text = _INNER.sub(" ", live.replace("\\\n", " ").replace("\0", " "))
    simple = [words for part in _BETWEEN.split(text) if (words := _words(part))]
    main = [words for words in simple if not _KEYWORDS.match(words[0]) and not _MINOR.match(words[0])]
    minor = [words for words in simple if _MINOR.match(words[0])]
    words = next(iter([*main, *minor, *simple]), [])
    return "-".join(_picked(words))[:_LONGEST].rstrip("-.")


def _words(part: str) -> list[str]:
    """The words of a simple command from the one that says what it does."""
    words = [word for word in re.findall(r"[^\s\"']+", part) if not re.match(r"\w+\+?=", word)]
    if words[:2] == ["command", "-v"]:  # looks whether it is there
        return ["test", *words[2:]]
    while words and (_BEFORE.match(words[0]) or words[0].startswith("-")):
        del words[0]
    return words


def _picked(words: list[str]) -> list[str]:
    if not words:
        return []
    command, rest = _base(words[0]), words[1:]
    if command in ("[", "[["):
        command = "test"
    if _RUN_SCRIPTS.match(command):
        script = next((at for at, word in enumerate(rest) if not word.startswith("-")), None)
        if script is None:
            return [command]
        module = script > 0 and rest[script - 1] == "-m"
        command, rest = _base(rest[script]), rest[script + 1 :] if module else []
    if command == "tar":  # its first word is a bundle of flags, with or without the dash
        rest = rest[1:]
    if _NAME_ALONE.match(command):
        rest = []
    more = (word for word in rest[:3] if re.match(r"[\w.][\w.:@+-]*\Z", word) and word not in (".", ".."))
    return [_SCRIPT.sub("", command), *[_base(word) for word in more][:1]]


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]
