"""A job file to be: its steps as found, and as a commented text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from checkpoint_action.jobfile.values import name_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Draft", "DraftStep", "Names", "command_for", "draft_text"]

_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_PLAIN = re.compile(r"[A-Za-z0-9_./][^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]*\Z")
_NULLS = frozenset({"null", "Null", "NULL", "~", ""})
_NOT_IN_A_BLOCK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]|(?m:^[ \t]+$)")
_HEAD = """\
# A job file for checkpoint-run, written by 'checkpoint-run init' from {source}. Look it through, then:
#   {plan}     what would run, and why
#   {run}     run what is left
# The steps are a chain: when one changes, all after it run again. 'needs: []' makes a step independent. Worth adding:
#   inputs: [src/**]        files that count: a change runs the step again
#   outputs: [dist/]        files that must be there for the step to be skipped
#   timeout: 45m            and retry: 2
"""


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step to be.

    :param comments: lines to put above it, without ``#``.
    :param directory: its folder, empty for the job's.
    """

    id: str
    run: str
    comments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    shell: str = ""
    timeout: str = ""
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A job file to be.

    :param source: where it comes from, for the first line.
    :param notes: what a person should know, a line each; they become comments.
    :param shell: empty for the default.
    :param last: comments below the last step.
    """

    job: str
    source: str
    steps: tuple[DraftStep, ...]
    notes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    shell: str = ""
    directory: str = ""
    timeout: str = ""
    last: tuple[str, ...] = ()


class Names:
    """Makes ids that are valid and differ in more than upper and lower case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, text: str, default: str = "step") -> str:
        """The id nearest to a text, with a number behind it where it is taken."""
        base = name_from(text, default)
        name, number = base, 1
        while name.casefold() in self._taken:
            number += 1
            name = f"{base[: 99 - len(str(number))]}-{number}"
        self._taken.add(name.casefold())
        return name


def command_for(verb: str, file: str) -> str:
    """A command about the job file, to be copied.

    :param verb: empty for ``run``.
    :param file: empty where it is found without being named.
    """
    named = f"-f {shlex.quote(file)}" if file else ""
    return " ".join(word for word in ("checkpoint-run", verb, named) if word)


def draft_text(draft: Draft, file: str = "") -> str:
    """The job file's text, which the job file's parser takes as it is.

    :param file: as it has to be named on the command line; empty where it is found without that.
    """
    plan, run = (_comment_text(command_for(verb, file)) for verb in ("plan", ""))
    lines = _HEAD.format(source=_comment_text(draft.source), plan=plan, run=run.ljust(len(plan))).splitlines()
    lines += _comments(draft.notes, "# Note: ")
    lines += ["", f"job: {_inline(draft.job)}"]
    lines += _entry("shell", draft.shell, "")
    lines += _entry("working-directory", draft.directory, "")
    lines += _entry("timeout", draft.timeout, "  ", above="defaults:")
    lines += _mapping("env", draft.env, "")
    lines += ["", "steps:"]
    for number, step in enumerate(draft.steps):
        lines += [""] if number else []
        lines += _comments(step.comments, "  # ")
        lines += [f"  - id: {_inline(step.id)}", *_entry("shell", step.shell, "    ")]
        lines += _entry("working-directory", step.directory, "    ")
        lines += _mapping("env", step.env, "    ")
        lines += _entry("timeout", step.timeout, "    ")
        lines += _entry("run", step.run, "    ")
        lines += [f"    outputs: [{', '.join(_quoted(path) for path in step.outputs)}]"] if step.outputs else []
    lines += _comments(draft.last, "  # ")
    return "\n".join(lines) + "\n"


def _comments(texts: Iterable[str], before: str) -> list[str]:
    return [f"{before}{_comment_text(text)}".rstrip() for text in texts]


def _comment_text(text: str) -> str:
    """A text on one line that a YAML document may hold."""
    plain = re.sub(r"\s+", " ", text).strip()
    return _ODD.sub("?", plain)


def _mapping(key: str, values: Mapping[str, str], indent: str) -> list[str]:
    if not values:
        return []
    lines = [f"{indent}{key}:"]
    for name, value in values.items():
        shown = name if re.fullmatch(r"[A-Za-z_][\w.-]*", name, re.ASCII) and name not in _NULLS else _quoted(name)
        lines += [f"{indent}  {shown}: {line}" for line in [_inline(value)]]
    return lines


def _entry(key: str, text: str, indent: str, above: str = "") -> list[str]:
    """A key and its text; nothing where there is no text. Long and odd texts stand in a block of their own."""
    if not text:
        return []
    first = [above] if above else []
    if "\n" not in text and _is_plain(text):
        return [*first, f"{indent}{key}: {text}"]
    if key != "run" or _NOT_IN_A_BLOCK.search(text) or not text.strip():
        return [*first, f"{indent}{key}: {_inline(text)}"]
    body = text.rstrip("\n")
    end = text[len(body) :]
    keep = {"": "-", "\n": ""}.get(end, "+")
    lines = body.split("\n") + [""] * max(len(end) - 1, 0)
    number = "2" if lines[0][:1] in (" ", "\t", "") else ""
    return [*first, f"{indent}{key}: |{number}{keep}", *(f"{indent}  {line}" if line else "" for line in lines)]


def _inline(text: str) -> str:
    return text if _is_plain(text) else _quoted(text)


def _quoted(text: str) -> str:
    """The text in YAML's double quotes."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + _ODD.sub(lambda match: f"\\U{ord(match[0]):08x}", inner) + '"'


def _is_plain(text: str) -> bool:
    """Whether YAML takes the text as it stands, without quotes, for itself."""
    return (
        _PLAIN.match(text) is not None
        and text not in _NULLS
        and ": " not in text
        and " #" not in text
        and not text.endswith((":", " ", "\t"))
        and not text.startswith(("...", "---"))
        and "\t" not in text
    )
