"""The words of a command line, as what they mean."""

from __future__ import annotations

import argparse
import sys

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.grammar import ABOUT_STEPS, ABOUT_STORES, TOP, VERBS, belongs, parser_of
from checkpoint_action.jobfile.values import nearest
from checkpoint_action.report.lines import answer

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["STEPS_OF_WORDS", "VERBS", "parse_arguments"]

_APART = ("store", "init", "schema", "completion", "doctor")
"""The verbs that know nothing of a job's steps."""

_OF_WORDS = ("logs", *ABOUT_STEPS, "init", "report", "completion")
"""The verbs that take words, of which ``help`` may be one."""

STEPS_OF_WORDS = "__steps"
"""Prints the step ids of the job that the words behind it mean; the completion scripts ask so. No verb for people."""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The words of a command line as a namespace whose ``verb`` is one of :data:`VERBS`.

    :raises UsageError: a word is unknown, or its value not usable.
    :raises OutputError: help was asked for, and it cannot be written.
    """
    words = _asked_for_help(list(argv))
    _help_at_once(words)
    verb = None
    if words[:1] == [STEPS_OF_WORDS]:
        return argparse.Namespace(verb=STEPS_OF_WORDS, words=words[1:], directory=None)
    if words and not words[0].startswith("-"):
        verb = _verb(words.pop(0), words)
    parser = parser_of(verb)
    options, rest = parser.parse_known_args(words)
    wanted = [name for name in ("status", "reset", "dry_run") if getattr(options, name)]
    if verb == "store":  # where a dry run is one of the prune
        wanted = [name for name in wanted if name != "dry_run"]
    if len(wanted) > 1 or (wanted and verb not in (None, "run")):
        raise UsageError(
            "--status, --reset, --dry-run and the verbs exclude each other; give one of them", Kind.EXCLUSIVE
        )
    options.verb = {"dry_run": "plan"}.get(wanted[0], wanted[0]) if wanted else verb or "run"
    options.ids = []
    if options.verb in (
        *ABOUT_STEPS,
        "init",
        "store",
    ):  # by hand, as argparse takes no words on both sides of an option
        options.ids = [word for word in rest if not word.startswith("-")]
        rest = [word for word in rest if word.startswith("-")]
    if options.verb == "init" and len(options.ids) > 1:
        raise UsageError(f"init takes one file; leave '{options.ids[1]}' out", Kind.UNKNOWN_WORD)
    if options.verb == "store":
        _check_store(options)
    if rest:
        flags = [flag for action in parser._actions for flag in action.option_strings]  # noqa: SLF001  # the list of flags
        word = rest[0].partition("=")[0]
        kind = "option" if word.startswith("-") else "word"
        hint = nearest(word, flags) if kind == "option" else ""
        if word in VERBS and verb is None:
            raise UsageError(
                f"a verb comes first, before all options; write {_verb_first(words, word)}", Kind.UNKNOWN_WORD
            )
        if kind == "word" and word not in VERBS:
            raise UsageError(_stray(rest[0], verb, options.verb), Kind.UNKNOWN_WORD)
        raise UsageError(f"unknown {kind} '{rest[0]}'{hint}; see checkpoint-run --help", Kind.UNKNOWN_WORD)
    _check_selection(options)
    _check_apart(options, parser)
    return options


def _help_at_once(words: Sequence[str]) -> None:
    """Give the short help without a parser, which takes longer to make than all the rest."""
    if words in (["-h"], ["--help"]):
        for line in TOP.splitlines():
            answer(sys.stdout, line)
        sys.exit(0)


def _verb(word: str, rest: Sequence[str]) -> str:
    """A first word that is a verb.

    :raises UsageError: it is none.
    """
    if word in VERBS:
        return word
    if _is_job_file(word):
        line = _quoted(["checkpoint-run", "-f", word, *rest])
        raise UsageError(f"'{word}' is no verb; a job file is named with -f: {line}", Kind.UNKNOWN_WORD)
    raise UsageError(f"unknown verb '{word}'{nearest(word, VERBS)}; valid are {', '.join(VERBS)}", Kind.UNKNOWN_WORD)


def _asked_for_help(words: list[str]) -> list[str]:
    """What ``help``, ``help VERB``, ``--help VERB`` and ``VERB help`` mean, as argparse has it."""
    first, second = (*words, "", "")[:2]
    if len(words) <= 2 and first in ("help", "-h", "--help") and (second in VERBS or not second):
        return [second, "--help"] if second else ["--help"]
    if len(words) > 1 and first == "help":
        raise UsageError(
            f"help '{second}': no such verb{nearest(second, VERBS)}; valid are {', '.join(VERBS)}", Kind.UNKNOWN_WORD
        )
    if len(words) == 2 and second == "help" and first in VERBS and first not in _OF_WORDS:
        return [first, "--help"]
    return words


def _verb_first(words: Sequence[str], verb: str) -> str:
    """The command line that was meant, to be copied; its beginning where no line could show it."""
    for at in [place for place, word in enumerate(words) if word == verb]:
        meant = [verb, *words[:at], *words[at + 1 :]]
        try:
            parse_arguments(meant)
        except UsageError:
            continue
        if "\n" in "".join(meant):
            break
        return f"checkpoint-run {_quoted(meant)}"
    return f"checkpoint-run {verb} and then the options"


def _quoted(words: Sequence[str]) -> str:
    if sys.platform == "win32":
        from subprocess import list2cmdline  # noqa: PLC0415  # only for a mistake

        return list2cmdline(words)
    from shlex import join  # noqa: PLC0415  # only for a mistake

    return join(words)


def _check_store(options: argparse.Namespace) -> None:
    """See that the verb ``store`` is told what to do with which store.

    :raises UsageError: it is not.
    """
    what = options.ids[0] if options.ids else ""
    if what not in ABOUT_STORES:
        said = f"store '{what}': no such word{nearest(what, ABOUT_STORES)}" if what else "store needs a word"
        raise UsageError(f"{said}; write store ls URL, or store prune URL --older-than 7d --keep 3")
    if len(options.ids) > 2 or (len(options.ids) > 1 and options.store):
        raise UsageError(f"store {what} takes one URL; leave '{options.ids[-1]}' out", Kind.UNKNOWN_WORD)
    if len(options.ids) > 1:
        options.store = options.ids[1]
    if what == "prune" and options.older_than is None:
        raise UsageError("store prune deletes what is old, but no job's N newest; write --older-than 7d --keep N")
    if what == "ls" and (options.older_than is not None or options.dry_run):
        raise UsageError("--older-than and --dry-run are for store prune; leave them out", Kind.EXCLUSIVE)


def _check_apart(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """See that a verb that knows nothing of steps is told nothing of them.

    :raises UsageError: it is.
    """
    if options.verb not in _APART:
        return
    for action in parser._actions:  # noqa: SLF001  # the list of options
        given = getattr(options, action.dest, parser.get_default(action.dest))
        if not belongs(action.dest, options.verb) and given != parser.get_default(action.dest):
            raise UsageError(f"{action.option_strings[-1]} is not for {options.verb}; leave it out", Kind.EXCLUSIVE)


def _is_job_file(word: str) -> bool:
    """Whether a word is a job file's name rather than anything that may stand alone."""
    return word.endswith((".yml", ".yaml"))


def _stray(word: str, given: str | None, verb: str) -> str:
    """What to say of a word that belongs to no option."""
    if verb in ("run", "plan", "graph"):
        if _is_job_file(word):
            return (
                f"a job file is named with -f: {_quoted(['checkpoint-run', *([given] if given else []), '-f', word])}"
            )
        if word == "help":
            return f"for help write checkpoint-run help{f' {given}' if given else ''}"
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
            raise UsageError(f"{flag} is for run and plan{hint}", Kind.EXCLUSIVE)
