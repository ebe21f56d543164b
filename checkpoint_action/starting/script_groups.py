"""Which commands of a script have to stay together in one step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkpoint_action.starting.shell_effects import (
    ENVIRONMENT,
    Effects,
    effects_of,
    folder_of_cd,
    function_effects,
    words_of,
)
from checkpoint_action.starting.shell_text import Command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Unit", "groups_of", "units_of"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A top-level command and what it does, the functions it calls counted in.

    :param words: all names in it and in the functions it calls.
    """

    command: Command
    effects: Effects
    words: frozenset[str]


def units_of(commands: Sequence[Command]) -> list[Unit]:
    """The commands with what they do."""
    commands = [part for command in commands for part in _parts(command)]
    known = [(command, effects_of(command)) for command in commands]
    functions = {effects.function: command for command, effects in known if effects.kind == "function"}
    return [_unit(command, effects, functions) for command, effects in known]


def _parts(command: Command) -> list[Command]:
    """``cd a && make`` as two commands, so that the first is seen as what it is."""
    bare = command.bare.rstrip("\n")
    if "&&" not in bare or re.search(r"\|\||[;\n]|(?<!&)&(?!&)", bare):
        return [command]
    edges = [match.start() for match in re.finditer("&&", bare)]
    parts, begin = [], 0
    for end in [*edges, len(bare)]:
        at = slice(begin, end)
        parts.append(Command(command.text[at].strip(), command.live[at].strip(" \t"), command.bare[at].strip(" \t")))
        begin = end + 2
    if any(folder_of_cd(part) for part in parts) and not any(
        re.match(r"\s*(?:if|while|until|for|case|\{|\()", part.bare) for part in parts
    ):
        return parts
    return [command]


def _unit(command: Command, effects: Effects, functions: Mapping[str, Command]) -> Unit:
    words = set(words_of(command.live))
    if effects.kind in ("comment", "function"):
        return Unit(command, effects, frozenset())
    called: dict[str, Command] = {}
    todo = [command]
    while todo:
        text = todo.pop().live
        for name, body in functions.items():
            if name not in called and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text):
                called[name] = body
                todo.append(body)
    sets, holds_on = set(effects.sets), effects.holds_on
    for body in called.values():
        words |= words_of(body.live)
        more, held = function_effects(body)
        sets |= more
        holds_on = holds_on or held
    if not called or (effects.kind in ("talk", "cd", "setup") and not holds_on and sets == effects.sets):
        return Unit(command, effects, frozenset(words))
    kind = effects.kind if effects.kind == "value" and not holds_on and sets == effects.sets else "work"
    return Unit(
        command,
        Effects(kind, frozenset(sets), holds_on=holds_on, about_last=effects.about_last),
        frozenset(words),
    )


def groups_of(units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Begin and end (the last one, included) of each run of commands that becomes one step.

    What is in no group changes the shell for those that follow.
    """
    starters = [number for number, unit in enumerate(units) if unit.effects.kind in ("work", "value", "talk")]
    spans: list[list[int]] = []
    for number in starters:
        spans.append([number, _end(units, number)])
        if units[number].effects.about_last and len(spans) > 1:
            spans[-2][1] = max(spans[-2][1], number)
    merged = _merge(units, spans)
    while True:  # a value in the midst of other commands is handed on to nobody: whoever uses it belongs to them
        for span in merged:
            inside = range(span[0], span[1] + 1)
            if any(units[number].effects.kind == "work" for number in inside):
                ends = [_last_use(units, number) for number in inside if units[number].effects.kind == "value"]
                span[1] = max(span[1], *ends, span[1])
        again = _merge(units, merged)
        if again == merged:
            return [(begin, end) for begin, end in merged]
        merged = again


def _end(units: Sequence[Unit], number: int) -> int:
    effects = units[number].effects
    if effects.kind == "talk":  # what is said is said of the next command
        return next((at for at in range(number + 1, len(units)) if units[at].effects.kind in ("work", "value")), number)
    if effects.kind == "value":
        nexts = number + 1
        while nexts < len(units) and units[nexts].effects.kind in ("setup", "comment"):
            nexts += 1
        return nexts if nexts < len(units) and units[nexts].effects.kind == "value" else number
    exported = {
        name for unit in units if unit.effects.kind == "setup" and unit.effects.everywhere for name in unit.effects.sets
    }
    if effects.holds_on or effects.sets & (exported | ENVIRONMENT):
        return len(units) - 1
    return _last_use(units, number)


def _last_use(units: Sequence[Unit], number: int) -> int:
    """The last command that may see what this one sets."""
    sets = units[number].effects.sets
    uses = (at for at in range(len(units) - 1, number, -1) if sets & units[at].words)
    return next(uses, number)


def _merge(units: Sequence[Unit], spans: Sequence[Sequence[int]]) -> list[list[int]]:
    """Spans that overlap become one; one that only says something joins the one before, where it is the last."""
    merged: list[list[int]] = []
    for begin, end in sorted((span[0], span[1]) for span in spans):
        alone = all(units[at].effects.kind in ("talk", "comment") for at in range(begin, end + 1))
        if merged and (begin <= merged[-1][1] or (alone and end >= _last_real(units))):
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def _last_real(units: Sequence[Unit]) -> int:
    return max((number for number, unit in enumerate(units) if unit.effects.kind in ("work", "value")), default=-1)
