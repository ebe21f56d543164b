"""A Makefile as a job: what its default target needs, a ``make TARGET`` each."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from posixpath import basename, dirname, join
from typing import TYPE_CHECKING

from checkpoint_action.errors import UsageError
from checkpoint_action.starting.draft import Draft, DraftStep, Names

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAKEFILES", "draft_of_makefile"]

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which make looks for them."""

_ASSIGNMENT = re.compile(
    r"(?:override[ \t]+|export[ \t]+)*(?P<name>[\w.-]+)[ \t]*(?P<how>::?:?=|\?=|\+=|=)[ \t]*(?P<value>.*)"
)
_RULE = re.compile(r"(?P<targets>[^\t#:=][^#:=]*?)[ \t]*&?::?(?!=)(?P<rest>.*)")
_VARIABLE = re.compile(r"\$(?:\((?P<a>[\w.-]+)\)|\{(?P<b>[\w.-]+)\}|(?P<c>\w))")
_DEEPEST = 10  # of variables in variables


@dataclass(slots=True)
class _Makefile:
    """What is known of the targets.

    :param needs: for each target what it needs, in order.
    :param made: targets that have a recipe.
    :param phony: targets that are no files.
    """

    needs: dict[str, list[str]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    phony: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def draft_of_makefile(text: str, path: str, job: str) -> Draft:
    """The job that a Makefile is.

    :param path: the Makefile's, as seen from where the job will run, with ``/``.
    :param job: the job's name.
    :raises UsageError: it has no target that make would take by itself.
    """
    makefile = _read(text)
    default = makefile.variables.get(".DEFAULT_GOAL", "") or next(
        (name for name in makefile.needs if "%" not in name and (not name.startswith(".") or "/" in name)), ""
    )
    if not default:
        raise UsageError(f"init {path}: it has no target that 'make' would make")
    folder, name = dirname(path), basename(path)
    make = "make" + (f" -C {shlex.quote(folder)}" if folder else "")
    make += "" if name in MAKEFILES else f" -f {shlex.quote(name)}"
    targets = [need for need in dict.fromkeys(makefile.needs.get(default, [])) if need in makefile.needs]
    if default in makefile.made or not targets:
        targets = [target for target in targets if target != default] + [default]
    names = Names()
    steps = []
    for target in targets:
        is_file = target not in makefile.phony and target in makefile.made
        outputs = (join(folder, target),) if is_file and not re.search(r"[*?\[!~]", target) else ()
        steps.append(DraftStep(names.make(target.replace("/", "-")), f"{make} {shlex.quote(target)}", outputs=outputs))
    notes = ["a step that is done is skipped without asking make: list its sources as 'inputs', or it misses a change"]
    if makefile.unknown:
        notes.append(
            f"these depend on more than the Makefile tells and are left out: {' '.join(makefile.unknown[:10])}"
        )
    return Draft(job, f"{path} (what its target '{default}' needs)", tuple(steps), tuple(notes))


def _read(text: str) -> _Makefile:
    makefile = _Makefile()
    current: list[str] = []
    for line in _lines(text):
        if line.startswith("\t"):
            makefile.made.update(current)
            continue
        assignment = _ASSIGNMENT.match(line)
        if assignment:
            _assign(makefile, assignment)
            continue
        rule = _RULE.match(line)
        if rule is None:
            current = current if not line.strip() or re.match(r"[ ]*(?:if|else|endif)", line) else []
            continue
        rest, semicolon, _ = rule["rest"].partition(";")
        needs, of_one_target = (
            _words(makefile, rest.partition("#")[0].replace("|", " ")),
            _ASSIGNMENT.match(rest.strip()),
        )
        current = _words(makefile, rule["targets"])
        if of_one_target:  # target: VARIABLE = value
            continue
        if ".PHONY" in current:
            makefile.phony.update(needs)
            current = []
        for target in current:
            makefile.needs.setdefault(target, []).extend(needs)
        if semicolon:
            makefile.made.update(current)
    return makefile


def _lines(text: str) -> Iterator[str]:
    """Lines with their continuations joined; what stands between ``define`` and ``endef`` is left out."""
    inside = False
    for line in re.sub(r"\\\r?\n[ \t]*", " ", text).splitlines():
        if re.match(r"[ ]*define\b", line):
            inside = True
        if not inside and (line.startswith("\t") or not line.lstrip().startswith("#")):
            yield line
        if re.match(r"[ ]*endef\b", line):
            inside = False


def _assign(makefile: _Makefile, match: re.Match[str]) -> None:
    name, value = match["name"], match["value"].partition(" #")[0].strip()
    if match["how"] == "?=" and name in makefile.variables:
        return
    before = makefile.variables.get(name, "") if match["how"] == "+=" else ""
    makefile.variables[name] = f"{before} {value}".strip()


def _words(makefile: _Makefile, text: str) -> list[str]:
    """The words of a text with its variables put in; those that need more of make than that are left out."""
    for _ in range(_DEEPEST):
        changed = _VARIABLE.sub(
            lambda match: makefile.variables.get(match["a"] or match["b"] or match["c"], match[0]), text
        )
        if changed == text:
            break
        text = changed
    if "$" in text:
        plain = re.sub(r"\$\([^()]*(?:\([^()]*\)[^()]*)*\)|\$\{[^{}]*\}|\$.", "\0", text)
        makefile.unknown += [word.replace("\0", "...") for word in plain.split() if "\0" in word]
        return [word for word in plain.split() if "\0" not in word and "$" not in word]
    return text.split()
