"""A YAML text as values that know where they stand, so that every complaint names file, line and column."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from checkpoint_action.errors import JobFileError, Kind
from checkpoint_action.jobfile.composing import Node, compose
from checkpoint_action.jobfile.values import nearest, parse_duration, parse_limit
from checkpoint_action.jobfile.yaml_words import plain_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["Value", "parse"]

_KINDS = {"scalar": "a text", "sequence": "a list", "mapping": "a mapping"}
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
# YAML 1.1, 5.1: what a document may not hold. Looked for here, as the two loaders count differently where they find it.
_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


_OF_WORKFLOWS = {
    "name": "; a step's name here is its 'id'",
    "if": "; a step runs unless it is done: put the condition into its command",
    "uses": "; steps here are commands ('run'): use an action in a step of the workflow, before or after these",
    "with": "; steps here are commands ('run'), which take what they need from 'env'",
    "timeout-minutes": "; write timeout: 45m",
    "continue-on-error": "; it is a key of the whole job, above 'steps'",
}
"""What people know from GitHub's workflows, and what to write instead."""

_OF_THE_JOB = ("secrets", "budget", "max-failures", "defaults", "job")
_ELSEWHERE = {"needs": ("depends", "depends-on", "depends_on", "deps", "after")}
_ELSEWHERE |= {"run": ("cmd", "cmds", "command", "commands", "script")}
_HERE = {theirs: ours for ours, words in _ELSEWHERE.items() for theirs in words}
"""Other tools' words for our keys."""

_FREE, _FOR_EACH = 20_000, 2
"""Values that a document may be read as: so many, and so many more for each character. Only aliases make more of it."""

_HOW = {"a mapping": "; write 'key: value', one in a line"}


@dataclass(slots=True)
class _Allowance:
    """How many more values a document may be read as."""

    left: int


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the document.

    :param what: how to call it in a message, for example ``step 'build': timeout``.
    """

    node: Node
    source: str
    what: str
    allowance: _Allowance = field(compare=False, repr=False)

    def named(self, what: str) -> Value:
        """The same value under a better name."""
        return Value(self.node, self.source, what, self.allowance)

    def fail(self, message: str, kind: Kind = Kind.JOB_FILE_VALUE) -> NoReturn:
        """Raise :class:`JobFileError` at this value."""
        raise JobFileError(message, source=self.source, line=self.node.line, column=self.node.column, kind=kind)

    def _wrong(self, wanted: str) -> NoReturn:
        kind = "nothing" if self.is_null else _KINDS[self.node.kind]
        self.fail(f"{self.what} must be {wanted}, not {kind}{_HOW.get(wanted, '')}")

    def _spend(self) -> None:
        """Count the values in this one."""
        self.allowance.left -= len(self.node.value)
        if self.allowance.left < 0:
            self.fail("not usable YAML: its aliases make too many values of it; write fewer of them", Kind.NOT_YAML)

    @property
    def is_null(self) -> bool:
        """Whether nothing was written here (also ``~`` and ``null``)."""
        return self.node.is_null

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.node.kind == "sequence"

    @property
    def is_scalar(self) -> bool:
        """Whether it is a single text, number or word."""
        return self.node.kind == "scalar" and not self.node.is_null

    def text(self) -> str:
        """The text exactly as written: ``on``, ``1.10`` and ``010`` are never turned into other things."""
        if not self.is_scalar:
            self._wrong("a text")
        value = str(self.node.value)
        if "\0" in value:
            self.fail(f"{self.what} holds a NUL character")
        if not value.isascii() and _SURROGATE.search(value):
            self.fail(f"{self.what} holds half of a character (a surrogate)")
        return value

    def boolean(self) -> bool:
        """``true`` or ``false``."""
        text = self.text() if self.is_scalar else self._wrong("true or false")
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        self.fail(f"{self.what} must be true or false, not '{text}'")

    def integer(self, least: int = 0) -> int:
        """A whole number, at least ``least``."""
        text = self.text() if self.is_scalar else self._wrong("a whole number")
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < least:
            self.fail(f"{self.what} must be a whole number from {least}, not '{text}'")
        return int(text)

    def limit(self) -> float:
        """Seconds that something may take, more than none."""
        seconds = self.duration()
        try:
            return seconds if seconds > 0 else parse_limit(self.text())
        except ValueError as error:
            self.fail(f"{self.what}: {error}")

    def duration(self) -> float:
        """Seconds."""
        text = self.text() if self.is_scalar else self._wrong("a duration such as 90s, 10m or 1h30m")
        try:
            return parse_duration(text)
        except ValueError as error:
            self.fail(f"{self.what}: {error}")

    def items(self) -> list[Value]:
        """The members of a list."""
        if not self.is_list:
            self._wrong("a list")
        self._spend()
        return [Value(node, self.source, self.what, self.allowance) for node in self.node.value]

    def members(self) -> list[Value]:
        """The members of a list; a single text stands for a list of one."""
        return [self] if self.is_scalar else self.items()

    def pairs(self) -> Iterator[tuple[Value, Value]]:
        """Keys and values of a mapping, in order; a key that comes twice is refused."""
        if self.node.kind != "mapping":
            self._wrong("a mapping")
        self._spend()
        seen: dict[str, Node] = {}
        what = f"{self.what}: a key"
        for key_node, value_node in self.node.value:
            key = Value(key_node, self.source, what, self.allowance)
            name = key.text()
            if name in seen:
                first = seen[name].line
                key.fail(
                    f"{self.what}: key '{name}' is there twice (first in line {first}); remove one", Kind.DUPLICATE_KEY
                )
            seen[name] = key_node
            yield key, Value(value_node, self.source, f"{self.what}: {name}", self.allowance)

    def peek(self, key: str) -> str:
        """The text under a key of a mapping that has not been checked yet; empty where there is none."""
        if self.node.kind == "mapping":
            for key_node, value_node in self.node.value:
                if key_node.kind == "scalar" and value_node.kind == "scalar" and key_node.value == key:
                    return str(value_node.value)
        return ""

    def fields(self, valid: Collection[str]) -> dict[str, Value]:
        """A mapping all of whose keys must be among ``valid``."""
        fields = {}
        for key, value in self.pairs():
            name: str = key.node.value  # a text, as the pairs have seen
            if name not in valid:
                key.fail(f"{self.what}: unknown key '{name}'{_instead(name, valid)}", Kind.UNKNOWN_KEY)
            fields[name] = value
        return fields


def _instead(name: str, valid: Collection[str]) -> str:
    """What to write for a key that is none of ``valid``."""
    if name in _OF_WORKFLOWS:
        return _OF_WORKFLOWS[name]
    if name in _OF_THE_JOB and "run" in valid:
        return "; it is a key of the whole job, above 'steps'"
    if _HERE.get(name) in valid:
        return f"; did you mean '{_HERE[name]}'?"
    return nearest(name, valid) or f"; valid are {', '.join(valid)}"


def parse(text: str, source: str, what: str) -> Value:
    """The one document of a YAML text.

    :param source: the file's name, for messages.
    :param what: how to call the whole, for messages.
    :raises JobFileError: it is not YAML, empty, or more than one document.
    """
    import yaml  # noqa: PLC0415  # only YAML users pay for it

    wrong = _NOT_ALLOWED.search(text)
    if wrong is not None:
        line, column = _place(text, wrong.start())
        message = f"not valid YAML: the character U+{ord(wrong[0]):04X} is not allowed"
        raise JobFileError(message, source=source, line=line, column=column, kind=Kind.NOT_YAML)
    try:
        node = compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        begun = error.context_mark.line + 1 if error.context_mark else line
        said = " ".join(part for part in (error.context, error.problem) if part)
        message = plain_words(said, text, (line, column), begun)
        raise JobFileError(
            f"not valid YAML: {message}", source=source, line=line, column=column, kind=Kind.NOT_YAML
        ) from None
    except RecursionError:
        raise JobFileError("not usable YAML: nested too deeply", source=source, kind=Kind.NOT_YAML) from None
    if node is None:
        raise JobFileError(f"{what} is empty", source=source, kind=Kind.NOT_YAML)
    return Value(node, source, what, _Allowance(_FREE + _FOR_EACH * len(text)))


def _place(text: str, position: int) -> tuple[int, int]:
    """Line and column, both from 1, of a position."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
