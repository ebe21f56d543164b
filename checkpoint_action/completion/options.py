"""What a completion script has to know of the grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from checkpoint_action.grammar import ABOUT_STEPS, ABOUT_STORES, SHELLS, VERBS, belongs, parser_of

if TYPE_CHECKING:
    import argparse

__all__ = [
    "FILE_VERBS",
    "FIRST",
    "ID_VERBS",
    "WORDS_OF",
    "Option",
    "all_options",
    "filled",
    "flags",
    "options_of",
    "with_value",
]

ID_VERBS = ("logs", *ABOUT_STEPS)
"""The verbs whose words are ids of steps."""

FILE_VERBS = ("init", "report")
"""The verbs whose word is a file."""

WORDS_OF = {"store": ABOUT_STORES, "completion": SHELLS, "help": tuple(VERBS)}
"""The words of which one may stand right behind a verb."""

FIRST = (*VERBS, "help")
"""What may stand first."""

_Value = Literal["none", "file", "folder", "step", "choice", "other"]


@dataclass(frozen=True, slots=True)
class Option:
    """An option as a shell has to know it.

    :param flags: as they are written, the long one last.
    :param value: what follows it.
    :param choices: of which the value is one.
    :param several: whether more values may follow.
    :param optional: whether the value may be left out.
    """

    flags: tuple[str, ...]
    help: str
    value: _Value
    choices: tuple[str, ...] = ()
    several: bool = False
    optional: bool = False


def options_of(verb: str) -> list[Option]:
    """The options that are for a verb."""
    actions = parser_of(verb)._actions  # noqa: SLF001  # argparse has no other list of them
    return [_option(action) for action in actions if action.option_strings and belongs(action.dest, verb)]


def _option(action: argparse.Action) -> Option:
    named: dict[object, _Value] = {"ID": "step", "FILE": "file", "FILE.html": "file", "DIR": "folder"}
    value: _Value = "choice" if action.choices else named.get(action.metavar, "other")
    return Option(
        flags=tuple(action.option_strings),
        help=re.sub(r"\s+", " ", action.help or ""),
        value="none" if action.nargs == 0 else value,
        choices=tuple(action.choices or ()),
        several=action.nargs in ("+", "*"),
        optional=action.nargs in ("?", "*"),
    )


def all_options() -> dict[str, Option]:
    """Each option by each of its flags, whatever verb it is for."""
    return {flag: option for verb in VERBS for option in options_of(verb) for flag in option.flags}


def flags(verb: str) -> list[str]:
    """All flags of a verb."""
    return [flag for option in options_of(verb) for flag in option.flags]


def with_value(value: str) -> str:
    """The flags with such a value, as a shell's pattern."""
    return "|".join(flag for flag, option in all_options().items() if option.value == value)


def filled(template: str, **values: str) -> str:
    """A template with its ``@NAME@`` filled in."""
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template
