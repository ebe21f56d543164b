"""What a look at one thing found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkpoint_action.errors import Kind

__all__ = ["Finding", "Level", "good", "problem", "warning"]


class Level(str, Enum):
    """How bad it is: a ``problem`` keeps a run from working, a ``warning`` may."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    :param what: what was looked at; part of the documented ``--json`` output.
    :param found: what there is.
    :param remedy: what to do about it, empty where all is well.
    :param code: of the error that a run would end with.
    """

    what: str
    level: Level
    found: str
    remedy: str = ""
    code: str = ""


def good(what: str, found: str) -> Finding:
    """All is well."""
    return Finding(what, Level.OK, found)


def warning(what: str, found: str, remedy: str) -> Finding:
    """Something may go wrong."""
    return Finding(what, Level.WARNING, found, remedy)


def problem(what: str, found: str, remedy: str, kind: Kind | None = None) -> Finding:
    """Something will go wrong.

    :param kind: the trouble that a run would end with.
    """
    return Finding(what, Level.PROBLEM, found, remedy, "" if kind is None else kind.value)
