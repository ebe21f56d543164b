"""A Makefile as a job: what its default target needs, a ``make TARGET`` each."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from posixpath import basename, dirname, join
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.values import nearest
from checkpoint_action.starting.draft import Draft, DraftStep, Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["MAKEFILES", "draft_of_makefile"]

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which make looks for them."""

_ASSIGNMENT = re.compile(
    r"(?:override[ \t]+|export[ \t]+)*(?P<name>[\w.-]+)[ \t]*(?P<how>::?:?=|\?=|\+=|=)[ \t]*(?P<value>.*)"
)
_RULE = re.compile(r"(?P<targets>[^\t#:=][^#:=]*?)[ \t]*&?::?(?!=)(?P<rest>.*)")
_VARIABLE = re.compile(r"\$(?:\((?P<a>[\w.-]+)\)|\{(?P<b>[\w.-]+)\}|(?P<c>\w))")
_DEEPEST = 10  # of variables in variables
_NAMED = 10  # targets in a sentence


@dataclass(slots=True)
class _Makefile:
    """What is known of the targets.

    :param needs: for each target what it needs, in order.
    :param made: targets that have a recipe, with its text.
    :param phony: targets that are no files.
    """

    needs: dict[str, list[str]] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    phony: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def draft_of_makefile(text: str, path: str, job: str, goals: Sequence[str] = ()) -> Draft:
    """The job that a Makefile is.

    :param path: the Makefile's, as seen from where the job will run, with ``/``.
    :param job: the job's name.
    :param goals: the targets to make; without one, what make would take by itself.
    :raises UsageError: it has no such target.
    """
    makefile = _read(text)
    default = makefile.variables.get(".DEFAULT_GOAL", "") or next(iter(_for_people(makefile)), "")
    for goal in goals:
        if goal not in makefile.needs:
            hint = nearest(goal, makefile.needs) or f"; it has {_some(_for_people(makefile))}"
            raise UsageError(f"init {path}: it has no target '{goal}'{hint}", Kind.NO_DRAFT)
    if not default and not goals:
        raise UsageError(f"init {path}: it has no target that 'make' would make", Kind.NO_DRAFT)
    folder, name = dirname(path), basename(path)
    make = "make" + (f" -C {shlex.quote(folder)}" if folder else "")
    make += "" if name in MAKEFILES else f" -f {shlex.quote(name)}"
    wanted = list(dict.fromkeys(goals or [default]))
    targets = list(dict.fromkeys(target for goal in wanted for target in _steps_of(makefile, goal)))
    names = Names()
    steps = []
    for target in targets:
        is_file = _makes_itself(makefile, target) and not re.search(r"[*?\[!~]", target)
        outputs = (join(folder, target),) if is_file else ()
        steps.append(DraftStep(names.make(target.replace("/", "-")), f"{make} {shlex.quote(target)}", outputs=outputs))
    notes = ["a step that is done is skipped without asking make: list its sources as 'inputs', or it misses a change"]
    others = [target for target in _for_people(makefile) if target not in _reached(makefile, wanted)]
    if others:
        notes.append(f"targets that are not in it: {_some(others)} ('init --target NAME' takes another)")
    if makefile.unknown:
        notes.append(
            f"these depend on more than the Makefile tells and are left out: {' '.join(makefile.unknown[:10])}"
        )
    what = "target" if len(wanted) == 1 else "targets"
    source = f"{path} (what its {what} {' and '.join(map(repr, wanted))} {'needs' if len(wanted) == 1 else 'need'})"
    return Draft(job, source, tuple(steps), tuple(notes))


def _steps_of(makefile: _Makefile, goal: str) -> list[str]:
    """What a goal needs, and itself where there is something to do for it."""
    targets = [need for need in dict.fromkeys(makefile.needs[goal]) if need in makefile.needs and need != goal]
    return [*targets, goal] if goal in makefile.made or not targets else targets


def _makes_itself(makefile: _Makefile, target: str) -> bool:
    """Whether a target is a file that its recipe makes; many that are none are not listed as phony."""
    if target in makefile.phony or target not in makefile.made:
        return False
    if "/" in target or "." in target:
        return True
    recipe = makefile.made[target]
    written = rf"(?:>|-[oO]|\btouch|\bmkdir|--out\S*[ =])[ ]*(?:-\w+ )*{re.escape(target)}(?![\w./-])"
    return re.search(r"\$@|\$[({]@", recipe) is not None or re.search(written, recipe) is not None


def _for_people(makefile: _Makefile) -> list[str]:
    """The targets that somebody may want to name."""
    return [name for name in makefile.needs if "%" not in name and (not name.startswith(".") or "/" in name)]


def _reached(makefile: _Makefile, goals: Sequence[str]) -> set[str]:
    found: set[str] = set()
    left = list(goals)
    while left:
        target = left.pop()
        if target not in found:
            found.add(target)
            left += makefile.needs.get(target, [])
    return found


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _read(text: str) -> _Makefile:
    makefile = _Makefile()
    current: list[str] = []
    for line in _lines(text):
        if line.startswith("\t"):
            for target in current:
                makefile.made[target] = f"{makefile.made.get(target, '')}{line}\n"
            continue
        assignment = _ASSIGNMENT.match(line)
        if assignment:
            _assign(makefile, assignment)
            continue
        rule = _RULE.match(line)
        if rule is None:
            current = current if not line.strip() or re.match(r"[ ]*(?:if|else|endif)", line) else []
            continue
        rest, semicolon, command = rule["rest"].partition(";")
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
            makefile.made.update(dict.fromkeys(current, command))
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
