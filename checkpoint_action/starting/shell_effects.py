"""What a command of a shell script does to the shell itself, so that others depend on it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from checkpoint_action.starting.shell_text import Command

__all__ = ["ENVIRONMENT", "Effects", "effects_of", "folder_of_cd", "function_effects", "words_of"]

_NAME = r"[A-Za-z_]\w*"
_BEFORE = r"(?:^|[\s;&|({!])"
_FUNCTION = re.compile(r"\s*(?:function[ \t]+(?P<a>[^\s;&|<>()]+)|(?P<b>[A-Za-z_][\w.:-]*)[ \t]*\([ \t]*\))", re.ASCII)
_ASSIGNED = re.compile(rf"{_BEFORE}(?P<name>{_NAME})(?:\[[^]\n]*\])?\+?=", re.ASCII)
_NAMED = re.compile(
    rf"{_BEFORE}(?P<word>read|export|declare|typeset|readonly|local|unset|mapfile|readarray|getopts|let|printf[ \t]+-v"
    r"|for|select)(?P<names>(?:[ \t]+[^\s;&|<>()]+)+)",
    re.ASCII,
)
_ONE = rf"{_NAME}\+?=(?:[^\s;&|<>()]*|\([^()]*\))"
_ASSIGNMENTS = re.compile(rf"\s*(?:export[ \t]+|readonly[ \t]+)?(?:{_ONE}\s*)+\Z", re.ASCII)
_SETTING = re.compile(
    r"\s*(?:set[ \t]+[-+][A-Za-z][^\n;&|<>]*|(?:shopt|umask|ulimit|alias|unalias|export|unset|source|\.|declare|"
    r"typeset|readonly|hash|cd)[ \t][^\n;&|<>]*)\s*\Z",
    re.ASCII,
)
# Only what cannot change from one step to the next: a file may have come.
_GUARD = re.compile(r"\s*!?\s*(?:\[|\[\[|test|:|true|false)(?![\w./-])(?:(?![ \t]-[^zn])[^\n])*\s*\Z", re.ASCII)
_CHANGING = re.compile(r"\$(?:\{?(?:RANDOM|SECONDS|EPOCH\w*|BASHPID|LINENO)\b|\$)")
_TALK = re.compile(r"\s*(?:echo|printf|:|true|date|clear)(?:[ \t][^\n;&|<>]*)?(?:1?>&2)?\s*\Z", re.ASCII)
_STATEFUL = re.compile(rf"{_BEFORE}(?:trap|exec|eval|shift|cd|pushd|popd|wait|bg|fg|disown|set[ \t]+--)(?![\w./-])")
_ENDS = re.compile(rf"{_BEFORE}(?:exit|return)(?!(?:[ \t]+[1-9]\d*)(?:[\s;&|)}}]|\Z))(?![\w./-])")
_EXITS = re.compile(rf"{_BEFORE}exit(?!(?:[ \t]+[1-9]\d*)(?:[\s;&|)}}]|\Z))(?![\w./-])")
_BACKGROUND = re.compile(r"(?<![&>|<])&(?![&>])")
_SUBSTITUTED = re.compile(r"\$\((?!\()|`|[<>]\(")
_PLACED = re.compile(r"\$\{?(?:OLD)?PWD\b|^\s*(?:source|\.|cd)[ \t]")
_LAST = re.compile(r"\$\?|\$\{?PIPESTATUS|\$!|\$\{!\}")
_LOCAL = re.compile(rf"{_BEFORE}(?:local|declare|typeset)(?P<names>(?:[ \t]+[^\s;&|<>()]+)+)", re.ASCII)

# fmt: off
ENVIRONMENT = frozenset({
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "IFS", "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS",
    "LDFLAGS", "MAKEFLAGS", "LD_LIBRARY_PATH", "PYTHONPATH", "GOFLAGS", "RUSTFLAGS", "JAVA_HOME", "NODE_OPTIONS",
})
# fmt: on
"""Variables that matter to programs which never name them: most are in the environment from the start."""

_Kind = Literal["comment", "talk", "setup", "value", "function", "cd", "work"]


@dataclass(frozen=True, slots=True)
class Effects:
    """What a command does.

    :param kind: ``talk`` only says something, ``setup`` changes the shell and may be repeated, ``value`` sets variables
        from what a program prints, ``cd`` goes to a folder that is known, ``work`` is all the rest.
    :param sets: names of variables that have another value after it.
    :param everywhere: of setup: whether it matters also to commands that do not name what it sets.
    :param placed: of setup: whether it says something else in another folder.
    :param holds_on: whether all that follows belongs to it: it changes the shell in a way that cannot be repeated.
    :param about_last: whether it asks how the command before it ended.
    """

    kind: _Kind
    sets: frozenset[str] = frozenset()
    function: str = ""
    folder: str = ""
    everywhere: bool = False
    placed: bool = False
    holds_on: bool = False
    about_last: bool = False


def words_of(text: str) -> frozenset[str]:
    """All names in a text, whatever they stand for."""
    return frozenset(re.findall(_NAME, text, re.ASCII))


def effects_of(command: Command) -> Effects:
    """What one top-level command does."""
    if command.comment:
        return Effects("comment")
    function = _FUNCTION.match(command.bare)
    if function:
        return Effects("function", function=function["a"] or function["b"])
    folder = folder_of_cd(command)
    if folder:
        return Effects("cd", folder=folder)
    bare, live, sets = command.bare, command.live, _sets(command)
    about_last = bool(_LAST.search(live))
    background, substituted = bool(_BACKGROUND.search(bare)), bool(_SUBSTITUTED.search(live) or _CHANGING.search(live))
    if not about_last and not background:
        parts = [part for part in re.split(r"&&|\|\||;", bare.replace("\0", "q").replace("\\\n", "  ")) if part.strip()]
        placed = bool(_PLACED.search(live))
        if all(_ASSIGNMENTS.match(part) or _GUARD.match(part) for part in parts):
            if not substituted and sets:
                return Effects(
                    "setup", sets, everywhere="export" in words_of(bare) or bool(sets & ENVIRONMENT), placed=placed
                )
            if substituted and len(parts) == 1 and "(" not in bare and "readonly" not in words_of(bare):
                return Effects("value", sets)
        if not substituted and len(parts) == 1 and _SETTING.match(parts[0]):
            return Effects("setup", sets, everywhere=True, placed=placed)
        if not substituted and not sets and all(_TALK.match(part) for part in parts):
            return Effects("talk")
    held = background or bool(_STATEFUL.search(bare) or _ENDS.search(bare) or (sets and "export" in words_of(bare)))
    return Effects("work", sets, holds_on=held, about_last=about_last)


def function_effects(command: Command) -> tuple[frozenset[str], bool]:
    """What calling a function does: names it sets outside itself, and whether all that follows belongs to the call."""
    own = {name for match in _LOCAL.finditer(command.bare) for name in words_of(match["names"])}
    held = bool(_STATEFUL.search(command.bare) or _EXITS.search(command.bare) or _BACKGROUND.search(command.bare))
    return _sets(command) - own, held


def folder_of_cd(command: Command) -> str:
    """The folder of a plain ``cd FOLDER``; empty where it is another command, or the folder not known beforehand."""
    text = command.text.strip()
    if "\n" in text or not text.startswith("cd") or re.search(r"[$`*?\[;&]|\|(?!\|)|(?<!\|)\|(?!\|)", command.live):
        return ""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return ""
    if words[2:3] == ["||"] and words[3:4] in (["exit"], ["return"]):
        del words[2:]
    plain = len(words) == 2 and words[0] == "cd" and words[1] and not words[1].startswith(("-", "~"))
    return words[1] if plain else ""


def _sets(command: Command) -> frozenset[str]:
    names = {match["name"] for match in _ASSIGNED.finditer(command.bare)}
    for match in _NAMED.finditer(command.bare):
        listed = match["names"].partition(" in ")[0].split()
        plain = [word for word in listed if not word.startswith("-")]
        names.update(name for word in plain for name in words_of(re.split(r"[+[]?=|\[", word)[0]))
    names.update(re.findall(rf"\$\{{({_NAME}):?=", command.live))
    names.update(re.findall(rf"\(\([^)]*?\b({_NAME})[ \t]*(?:[-+*/%]?=(?!=)|\+\+|--)", command.live))
    return frozenset(names)
