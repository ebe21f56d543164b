"""A page on each kind of trouble: what it is called, what it means, what to do, and what it looks like.

``docs/errors.md`` is made of these. Nothing that runs reads them.
"""

from __future__ import annotations

from checkpoint_action.error_texts.commands import COMMANDS
from checkpoint_action.error_texts.page import Page
from checkpoint_action.error_texts.places import PLACES

__all__ = ["CHAPTERS", "PAGES", "Page"]

CHAPTERS = {
    "CPR1": "The command line and the Python interface",
    "CPR2": "The job file",
    "CPR3": "Steps and the machine",
    "CPR4": "The state",
    "CPR5": "Stores",
    "CPR6": "The action",
    "CPR9": "Faults of checkpoint-run",
}
"""Headings, by how the codes below them begin."""

PAGES = COMMANDS | PLACES
