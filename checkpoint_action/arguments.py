"""The words of a command line, as what they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from checkpoint_action.errors import UsageError
from checkpoint_action.grammar import ABOUT_STEPS, VERBS, belongs, parser_of
from checkpoint_action.jobfile.values import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["STEPS_OF_WORDS", "VERBS", "parse_arguments"]

_APART = ("init", "schema", "completion", "doctor")
"""The verbs that know nothing of a job's steps."""

STEPS_OF_WORDS = "__steps"
"""Prints the step ids of the job that the words behind it mean; the completion scripts ask so. No verb for people."""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The words of a command line as a namespace whose ``verb`` is one of :data:`VERBS`.

    :raises UsageError: a word is unknown, or its value not usable.
    """
    words = list(argv)
    verb = None
    if words[:1] == [STEPS_OF_WORDS]:
        return argparse.Namespace(verb=STEPS_OF_WORDS, words=words[1:], directory=None)
    if words and not words[0].startswith("-"):
        verb = words.pop(0)
        if verb not in VERBS:
            raise UsageError(f"unknown verb '{verb}'{nearest(verb, VERBS)}; valid are {', '.join(VERBS)}")
    parser = parser_of(verb)
    options, rest = parser.parse_known_args(words)
    wanted = [name for name in ("status", "reset", "dry_run") if getattr(options, name)]
    if len(wanted) > 1 or (wanted and verb not in (None, "run")):
        raise UsageError("--status, --reset, --dry-run and the verbs exclude each other; give one of them")
    options.verb = {"dry_run": "plan"}.get(wanted[0], wanted[0]) if wanted else verb or "run"
    options.ids = []
    if options.verb in (*ABOUT_STEPS, "init"):  # by hand, as argparse takes no words on both sides of an option
        options.ids = [word for word in rest if not word.startswith("-")]
        rest = [word for word in rest if word.startswith("-")]
    if options.verb == "init" and len(options.ids) > 1:
        raise UsageError(f"init takes one file; leave '{options.ids[1]}' out")
    if rest:
        flags = [flag for action in parser._actions for flag in action.option_strings]  # noqa: SLF001  # the list of flags
        word = rest[0].partition("=")[0]
        kind = "option" if word.startswith("-") else "word"
        hint = nearest(word, flags) if kind == "option" else ""
        if word in VERBS and verb is None:
            hint = "; a verb comes first, before all options"
        if kind == "word" and word not in VERBS:
            raise UsageError(_stray(rest[0], verb, options.verb))
        raise UsageError(f"unknown {kind} '{rest[0]}'{hint}; see checkpoint-run --help")
    _check_selection(options)
    _check_apart(options, parser)
    return options


def _check_apart(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """See that a verb that knows nothing of steps is told nothing of them.

    :raises UsageError: it is.
    """
    if options.verb not in _APART:
        return
    for action in parser._actions:  # noqa: SLF001  # the list of options
        given = getattr(options, action.dest, parser.get_default(action.dest))
        if not belongs(action.dest, options.verb) and given != parser.get_default(action.dest):
            raise UsageError(f"{action.option_strings[-1]} is not for {options.verb}; leave it out")


def _stray(word: str, given: str | None, verb: str) -> str:
    """What to say of a word that belongs to no option."""
    if verb in ("run", "plan", "graph"):
        what = f"{given} takes no step ids" if given else f"unknown word '{word}'"
        return f"{what}; to choose steps write --only {word}"
    if verb == "logs":
        return f"logs takes the id of one step; leave '{word}' out"
    if verb in _APART:
        return f"{verb} takes no such word; leave '{word}' out"
    why = "it shows all steps" if verb == "status" else "it is about the step that calls it"
    return f"{verb} takes no step ids, {why}; leave '{word}' out"


def _check_selection(options: argparse.Namespace) -> None:
    """See that steps are chosen in the way of the verb: elsewhere it would go unheeded, and ``reset`` forget all.

    :raises UsageError: they are not.
    """
    if options.verb in ("run", "plan", "graph"):
        return
    named = {"--only": options.only, "--from": options.first, "--force": any(options.force or ())}
    for flag, given in named.items():
        if given:
            hint = f"; write {options.verb} ID" if options.verb in ABOUT_STEPS else ""
            raise UsageError(f"{flag} is for run and plan{hint}")
