"""What people should know of a kind of trouble."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Page"]


@dataclass(frozen=True, slots=True)
class Page:
    """One kind of trouble.

    :param title: a few words.
    :param means: what has happened.
    :param remedy: what to do.
    :param example: a message, without what is printed before it.
    :param exit_code: what the command line ends with; ``None`` where it only warns.
    """

    title: str
    means: str
    remedy: str
    example: str
    exit_code: int | None = 2
