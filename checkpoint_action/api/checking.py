"""What a caller hands in, looked at before anything is begun: a value of the wrong kind is one line that names it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from checkpoint_action.errors import Kind, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "boolean",
    "called",
    "environment",
    "number",
    "of_kind",
    "path_text",
    "several",
    "text",
    "variables",
    "whole",
]

_T = TypeVar("_T")
_LONGEST = 80  # characters of a value that is shown


def of_kind(what: str, given: object, kind: type[_T], words: str) -> _T:
    """A value that has to be of a kind.

    :param words: what it has to be.
    :raises UsageError: it is not.
    """
    if not isinstance(given, kind) or (isinstance(given, bool) and kind is not bool):
        shown = ascii(given)
        shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
        raise UsageError(f"{what} must be {words}, not {shown}", Kind.BAD_VALUE)
    return given


def text(what: str, given: object) -> str:
    """A text that a command or a path may have in it.

    :raises UsageError: it is none, or holds a NUL character.
    """
    found = of_kind(what, given, str, "a text")
    if "\0" in found:
        raise UsageError(f"{what} holds a NUL character", Kind.BAD_VALUE)
    return found


def boolean(what: str, given: object) -> bool:
    """True or false, and nothing that merely counts as one of them.

    :raises UsageError: it is neither.
    """
    return of_kind(what, given, bool, "True or False")


def whole(what: str, given: object, least: int) -> int:
    """A whole number.

    :raises UsageError: it is none, or too small.
    """
    words = f"a whole number from {least}"
    found = of_kind(what, given, int, words)
    return found if found >= least else of_kind(what, str(found), int, words)


def number(what: str, given: object) -> float:
    """A number of seconds, from nothing on.

    :raises UsageError: it is none, or without end.
    """
    words = "a number of seconds"
    found: float = of_kind(what, given, (int, float), words)  # type: ignore[arg-type]  # isinstance takes both
    if not math.isfinite(found) or found < 0:
        of_kind(what, repr(found), float, words)
    return float(found)


def path_text(what: str, given: object) -> str:
    """A path as a text.

    :raises UsageError: it is none.
    """
    found = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(found, str):
        of_kind(what, given, str, "a path")
    return text(what, found)


def several(what: str, given: object, words: str = "a list of texts") -> Iterator[Any]:
    """The members of a collection, of which a text is none.

    :raises UsageError: it is none.
    """
    if isinstance(given, (str, bytes)):
        of_kind(what, given, list, words)
    return iter(of_kind(what, given, Iterable, words))  # type: ignore[type-abstract]  # isinstance takes it


def variables(what: str, given: object) -> dict[str, str]:
    """Variables and their values.

    :raises UsageError: they are no mapping of texts.
    """
    found = of_kind(what, given, Mapping, "a mapping of texts")  # type: ignore[type-abstract]  # isinstance takes it
    return {text(f"{what}: a name", name): text(f"{what}: {name}", value) for name, value in found.items()}


def environment(given: object) -> dict[str, str]:
    """A whole environment.

    :raises UsageError: no process could have it.
    """
    found = variables("env", given)
    for name in found:
        if not name or "=" in name[1:]:  # Windows has some that begin with it
            raise UsageError(f"env: '{name}' cannot be the name of a variable", Kind.VARIABLE_NAME)
    return found


def called(what: str, given: object) -> None:
    """See that something can be called, where it is there.

    :raises UsageError: it cannot.
    """
    if given is not None and not callable(given):
        of_kind(what, given, type(None), "a function")
