"""A shell script as a job: its top-level commands as steps, each with what it needs of those before it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.starting.draft import Draft, DraftStep, Names
from checkpoint_action.starting.naming import name_of_command
from checkpoint_action.starting.script_groups import Unit, groups_of, units_of
from checkpoint_action.starting.shell_effects import Effects, words_of
from checkpoint_action.starting.shell_text import Command, NotCutError, top_level

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["draft_of_script"]

_SHEBANG = re.compile(r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:\S*/)?(?P<program>[\w.+-]+)(?P<rest>[^\n]*)")
_FLAGS = {"e": "errexit", "u": "nounset", "x": "xtrace"}
_SELF = r"(?:\$\{BASH_SOURCE(?:\[0\])?\}|\$BASH_SOURCE\b|\$\{0\}|\$0(?!\d))"
_SELF_FOLDER = re.compile(rf"(?P<q>\"?)\$\([ \t]*dirname[ \t]+(?:--[ \t]+)?(?P<r>\"?){_SELF}(?P=r)[ \t]*\)")
_ARGUMENTS = re.compile(r"\$(?:[1-9@*#]|\{[1-9@*#])")
_SAFE_PATH = re.compile(r"[\w./+-]+\Z", re.ASCII)


@dataclass(slots=True)
class _Shell:
    """What the steps' shell is started with."""

    bash: bool
    options: set[str] = field(default_factory=set)

    def take(self, words: Sequence[str]) -> bool:
        """Take the words of a ``set`` command over; ``False`` where there is more in them than that."""
        found, left = set[str](), list(words)
        while left:
            word = left.pop(0)
            if not word.startswith("-") or not set(word[1:]) <= {*_FLAGS, "o"} or word == "-":
                return False
            found |= {_FLAGS[letter] for letter in word[1:] if letter != "o"}
            if "o" in word[1:]:
                if not left or left[0] not in {*_FLAGS.values(), "pipefail"}:
                    return False
                found.add(left.pop(0))
        if "pipefail" in found and not self.bash:
            return False
        self.options |= found
        return True

    def text(self) -> str:
        """The job file's ``shell``, empty for the default."""
        if self.bash and self.options == {"errexit", "pipefail"}:
            return ""
        if not self.bash and self.options == {"errexit"}:
            return "sh"
        letters = "".join(f" -{letter}" for letter, name in _FLAGS.items() if name in self.options)
        pipes = " -o pipefail" if "pipefail" in self.options else ""
        return f"{'bash --noprofile --norc' if self.bash else 'sh'}{letters}{pipes} {{0}}"


def draft_of_script(text: str, path: str, job: str) -> Draft:
    """The job that a shell script is.

    :param path: the script's, as seen from where the job will run, with ``/``.
    :param job: the job's name.
    :raises UsageError: it is written for something else than sh or bash, or there is nothing in it.
    """
    shell = _shell_of(text, path)
    begun = set(shell.options)
    text = text if text.endswith("\n") else text + "\n"
    notes: list[str] = []
    try:
        text = _without_self(text, path, notes)
        units = units_of(top_level(text))
    except NotCutError as error:
        step = DraftStep(Names().make(job), text, (f"Not split into steps: {error}.",))
        return Draft(job, path, (step,), shell=shell.text())
    units = _settings(units, shell)
    groups = groups_of(units)
    if not groups:
        raise UsageError(f"init {path}: there is no command in it", Kind.NO_DRAFT)
    env, units = _environment(units, groups[0][0])
    if "errexit" not in shell.options and begun == shell.options and len(groups) > 1:
        notes.append(
            "the script went on after a command that failed ('set -e' is not in it); a failed step ends the run"
        )
    if any(_ARGUMENTS.search(unit.command.live) for unit in units if unit.effects.kind != "function"):
        notes.append("the script takes arguments ($1 ...) and a step has none; give them another way, as with 'env:'")
    steps, last = _steps(units, groups)
    return Draft(job, path, tuple(steps), tuple(notes), env, shell.text(), last=last)


def _shell_of(text: str, path: str) -> _Shell:
    match = _SHEBANG.match(text)
    program = match["program"] if match else "bash"
    if program not in ("sh", "bash", "dash", "ash"):
        raise UsageError(
            f"init {path}: it is written for {program}; only scripts for sh and bash can be split", Kind.NO_DRAFT
        )
    shell = _Shell(program == "bash")
    if match:
        shell.take(match["rest"].split())
    return shell


def _without_self(text: str, path: str, notes: list[str]) -> str:
    """The script with its own name in the place of ``$0``, which is something else in a step."""
    live = "".join(command.live for command in top_level(text))
    if not re.search(_SELF, live):
        return text
    if not _SAFE_PATH.match(path):
        notes.append("$0 is not the script's name in a step")
        return text
    found = [(match, (match["q"] or "") + (dirname(path) or ".")) for match in _SELF_FOLDER.finditer(live)]
    taken = [match.span() for match, _ in found]
    found += [
        (match, path)
        for match in re.finditer(_SELF, live)
        if not any(begin <= match.start() < end for begin, end in taken)
    ]
    for match, instead in sorted(found, key=lambda pair: pair[0].start(), reverse=True):
        text = text[: match.start()] + instead + text[match.end() :]
    return text


def _settings(units: list[Unit], shell: _Shell) -> list[Unit]:
    """The units without the ``set`` commands at the beginning, where the shell's own options say the same."""
    kept = list(units)
    for unit in units:
        words = unit.command.text.split()
        if unit.effects.kind in ("comment", "function"):
            continue
        if words[:1] != ["set"] or not shell.take(words[1:]):
            break
        kept.remove(unit)
    return kept


def _environment(units: list[Unit], first: int) -> tuple[dict[str, str], list[Unit]]:
    """Variables that are exported before the first step and never change, and the units without them."""
    env: dict[str, str] = {}
    kept = list(units)
    for number, unit in enumerate(units[:first]):
        text = unit.command.text.strip()
        if unit.effects.kind != "setup" or len(unit.effects.sets) != 1 or re.search(r"[$`~\\(]|\+=", text):
            continue
        name = next(iter(unit.effects.sets))
        others = [other for at, other in enumerate(units) if at != number and name in other.effects.sets]
        used_before = any(name in words_of(before.command.live) for before in units[:number] if before in kept)
        words = shlex.split(text, comments=True)
        if len(words) == 2 and words[0] == "export" and not others and not used_before:
            env[name] = words[1].partition("=")[2]
            kept[kept.index(unit)] = _without_command(unit)
    return env, kept


def _without_command(unit: Unit) -> Unit:
    """A place holder, so that the numbers of the others stay."""
    return replace(unit, command=Command("", "", ""), effects=Effects("comment"), words=frozenset())


def _steps(units: Sequence[Unit], groups: Sequence[tuple[int, int]]) -> tuple[list[DraftStep], tuple[str, ...]]:
    names = Names()
    before: list[Unit] = []
    comments: list[str] = []
    folder, at = "", 0
    # Where something depends on the folder it is said in, each step goes the same way again.
    goes_again = any(unit.effects.placed for unit in units)
    steps = []
    for begin, end in groups:
        for unit in units[at:begin]:
            comments += _comment(unit)
            folder = _note(unit, before, folder, goes_again=goes_again)
        inside = list(units[begin : end + 1])
        lines = [*_prelude(before, inside), *(unit.command.text for unit in inside)]
        if all(unit.effects.kind != "work" for unit in inside):
            lines += _handed_on(inside)
        if begin < end and any(unit.effects.holds_on for unit in inside):
            comments.append("Not split further: what follows depends on the shell that it runs in.")
        text = "\n".join(line for line in lines if line.strip() or len(inside) > 1).strip("\n")
        steps.append(
            DraftStep(
                names.make(_name(inside)), text + ("\n" if "\n" in text else ""), tuple(comments), directory=folder
            )
        )
        for unit in inside:
            folder = _note(unit, before, folder, goes_again=goes_again)
        comments, at = [], end + 1
    return steps, tuple(line for unit in units[at:] for line in _comment(unit))


def _comment(unit: Unit) -> list[str]:
    if unit.effects.kind != "comment":
        return []
    lines = (line.strip() for line in unit.command.text.splitlines())
    return [line.lstrip("#").strip() for line in lines if line.strip("#- =*") and not line.startswith("#!")]


def _note(unit: Unit, before: list[Unit], folder: str, *, goes_again: bool) -> str:
    """Keep what a command does to the shell for the steps that follow; return the folder they run in."""
    if unit.effects.kind == "cd" and not goes_again:
        moved = normpath(join(folder, unit.effects.folder))
        return "" if moved == "." else moved
    if unit.effects.kind in ("setup", "function", "cd"):
        before.append(unit)
    return folder


def _prelude(before: Sequence[Unit], inside: Sequence[Unit]) -> list[str]:
    """What a step has to say again of the commands before it, in their order."""
    wanted = {unit for unit in before if unit.effects.everywhere or unit.effects.kind == "cd"}
    names = {name for unit in inside for name in (*words_of(unit.command.live), *unit.words)}
    while True:
        names |= {name for unit in wanted for name in words_of(unit.command.live)}
        more = {
            unit
            for unit in before
            if unit not in wanted and (unit.effects.sets & names or words_of(unit.effects.function) & names)
        }
        if not more:
            return [unit.command.text.strip("\n") for unit in before if unit in wanted]
        wanted |= more


def _handed_on(inside: Sequence[Unit]) -> list[str]:
    """What makes the values known to the steps that follow, whatever characters they hold."""
    names = [name for unit in inside if unit.effects.kind == "value" for name in sorted(unit.effects.sets)]
    return [f'printf \'%s<<END_OF_VALUE\\n%s\\nEND_OF_VALUE\\n\' {name} "${name}" >>"$GITHUB_ENV"' for name in names]


def _name(inside: Sequence[Unit]) -> str:
    """An id from the first command that does something."""
    works = [unit for unit in inside if unit.effects.kind == "work"]
    if not works:
        values = [name for unit in inside for name in sorted(unit.effects.sets)]
        return "-".join(values[:2]).lower().replace("_", "-") or "say"
    return name_of_command("\n".join(unit.command.live for unit in works))
