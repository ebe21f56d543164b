"""``core`` writes byte for byte what others of its kind write: the PyPI package actions-toolkit and @actions/core.

Where it does not, the case stands in :data:`EXCEPTIONS` (or :data:`JS_EXCEPTIONS`) with what each of them writes and
why ours is another, so that neither side can change unseen.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.peers.core_calls import ROOT, Case, Driver, comparable
from tests.peers.npm import node
from tests.peers.pypi import actions_toolkit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.peers.npm import Node

__all__ = ["actions_toolkit", "node"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OURS = "checkpoint_action.toolkit.core"


@pytest.fixture(scope="module")
def ours() -> Iterator[Driver]:
    driver = Driver(Path(sys.executable), OURS, PYTHONPATH=str(ROOT))
    yield driver
    driver.end()


@pytest.fixture(scope="module")
def theirs(actions_toolkit: Path) -> Iterator[Driver]:
    driver = Driver(actions_toolkit, "actions_toolkit.core")
    yield driver
    driver.end()


TEXTS = [
    "plain",
    "",
    " spaces ",
    "two\nlines\n",
    "cr\r\nlf",
    "50% of %0A",
    "a:b,c::d",
    "::error::x",
    "grün ✓ 🚀",
    'say "hi"',
    "a=b<<c",
    "tab\there",
]
PLACES: list[dict[str, Any]] = [
    {"title": "T", "file": "f.py", "start_line": 1, "end_line": 2, "start_column": 3, "end_column": 4},
    {"title": "a,b:c%\r\n", "file": "d:/x,y.py", "start_line": 10, "end_line": 10, "start_column": 1, "end_column": 99},
]
FILE_FUNCTIONS = ("set_output", "export_variable", "save_state")

# What Python and JavaScript have in common: no options, no floats.
COMMON = [
    *(Case(name, ("NAME", text), files=files) for name in FILE_FUNCTIONS for text in TEXTS for files in (True, False)),
    *(Case(name, ("NAME", value)) for name in FILE_FUNCTIONS for value in (None, True, False, 0, 12345678901)),
    *(Case(name, ("a:b,c%", "x"), files=False) for name in FILE_FUNCTIONS if name != "export_variable"),
    *(Case("add_path", (text,), files=files) for text in ("/a b", "C:\\x", "ü,:%") for files in (True, False)),
    *(Case(name, (text,)) for name in ("debug", "notice", "warning", "error", "info", "start_group") for text in TEXTS),
    *(Case(name, ({"exception": text},)) for name in ("notice", "warning", "error") for text in TEXTS),
    *(Case("set_secret", (text,)) for text in TEXTS if text),
    Case("end_group"),
    Case("set_command_echo", (True,)),
    Case("set_command_echo", (False,)),
    *(Case("get_state", ("n",), env={"STATE_n": text} if text else {}) for text in TEXTS),
    *(Case("is_debug", (), env={"RUNNER_DEBUG": text}) for text in ("1", "0", "true")),
    *(Case("get_input", ("my name",), env={"INPUT_MY_NAME": text}) for text in TEXTS),
    *(Case("get_multiline_input", ("x",), env={"INPUT_X": text}) for text in (*TEXTS, "a\n\n b \n", "\n \n")),
    *(
        Case("get_boolean_input", ("x",), env={"INPUT_X": text})
        for text in ("true", "True", "TRUE", "false", "False", "FALSE", " true ", "yes", "1", "tRue", "")
    ),
]
CASES = [
    *COMMON,
    *(Case(name, ("m",), place) for name in ("notice", "warning", "error") for place in PLACES),
    *(
        Case("get_input", ("x",), {"trim_whitespace": trim, "required": required}, env={"INPUT_X": text})
        for text in (*TEXTS, "\n x\n")
        for trim in (True, False)
        for required in (True, False)
    ),
    *(Case("get_multiline_input", ("x",), {"trim_whitespace": False}, env={"INPUT_X": t}) for t in (*TEXTS, "a\n\n b")),
    Case("get_input", ("x",), {"required": True}, env={}),
    Case("to_command_value", ("x",)),
    Case("to_command_value", (None,)),
    Case("to_command_value", (True,)),
    Case("to_command_value", (1.5,)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ours_writes_what_the_pypi_package_writes(case: Case, ours: Driver, theirs: Driver) -> None:
    assert ours.call(case) == theirs.call(case)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
names = texts.filter(lambda name: bool(name) and not re.search(r"=|<<|[\r\n]", name))


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["set_output", "save_state"]), names, texts, st.booleans())
def test_nor_does_any_text_make_a_difference(
    ours: Driver, theirs: Driver, function: str, name: str, text: str, files: bool
) -> None:
    case = Case(function, (name, text), files=files)
    assert ours.call(case) == theirs.call(case)


@dataclass(frozen=True)
class Exceptional:
    """A case that is another with us: where, what each side does, and why."""

    case: Case
    where: str
    ours: object
    theirs: object
    reason: str

    def __str__(self) -> str:
        return f"{self.case}-{self.where}"


def at(outcome: dict[str, Any], where: str) -> object:
    """A part of an outcome: one of its fields, the text of a file, or a variable."""
    if where.startswith("GITHUB_"):
        return outcome["files"].get(where, "")
    return outcome["env"].get(where) if where.isupper() else outcome[where]


_COMPACT = "the official toolkit writes JSON without blanks and without \\u escapes"
_MISREAD = "the runner splits a line at the first '=' or '<<': the name and the value would be others"
_NO_MASK = "the runner masks nothing for it, but warns"
_EMPTY_PLACE = "the official toolkit leaves out what is not given; 'line=' is no line"

EXCEPTIONS = [
    Exceptional(
        Case("set_output", ("n", {"a": [1, "ü"]})),
        "GITHUB_OUTPUT",
        'n<<DELIMITER\n{"a":[1,"\xc3\xbc"]}\nDELIMITER\n',
        'n<<DELIMITER\n{"a": [1, "\\u00fc"]}\nDELIMITER\n',
        _COMPACT,
    ),
    Exceptional(Case("to_command_value", ([1, 2],)), "value", "[1,2]", "[1, 2]", _COMPACT),
    Exceptional(
        Case("error", ("m",), {"file": "f"}),
        "stdout",
        "::error file=f::m\n",
        "::error title=,file=f,line=,endLine=,col=,endColumn=::m\n",
        _EMPTY_PLACE,
    ),
    Exceptional(
        Case("warning", ("m",), {"title": "", "start_line": 3}),
        "stdout",
        "::warning line=3::m\n",
        "::warning title=,file=,line=3,endLine=,col=,endColumn=::m\n",
        _EMPTY_PLACE,
    ),
    Exceptional(Case("set_secret", ("",)), "stdout", "", "::add-mask::\n", _NO_MASK),
    *(
        Exceptional(
            Case("set_output", (name, "v")), "GITHUB_OUTPUT", "", f"{name}<<DELIMITER\nv\nDELIMITER\n", _MISREAD
        )
        for name in ("", "a=b", "a<<b", "a\nb", "a\rb")
    ),
    Exceptional(
        Case("add_path", ("/a\n/b",)), "GITHUB_PATH", "", "/a\n/b\n", "the runner would take it for two folders"
    ),
    Exceptional(
        Case("add_path", ("/a",), env={}), "PATH", "/a", f"/a{os.pathsep}None", "a folder named None was never meant"
    ),
    Exceptional(
        Case("set_failed", ("m",)),
        "ended_with",
        None,
        1,
        "the caller ends the process, with the exit code it gets: nothing is cut short by a message",
    ),
    Exceptional(
        Case("info", ("caf\udce9",)),
        "failed",
        False,
        True,
        "bytes that are no text, as file names have them, are printed as they were",
    ),
]


@pytest.mark.parametrize("exception", EXCEPTIONS, ids=str)
def test_exceptions_are_what_they_are_said_to_be(exception: Exceptional, ours: Driver, theirs: Driver) -> None:
    assert at(ours.call(exception.case), exception.where) == exception.ours
    assert at(theirs.call(exception.case), exception.where) == exception.theirs


def test_failing_says_the_same_before_it_ends(ours: Driver, theirs: Driver) -> None:
    for message in ("50%\nm", {"exception": "no\ngood"}):
        case = Case("set_failed", (message,))
        assert ours.call(case)["stdout"] == theirs.call(case)["stdout"]


def in_javascript(case: Case) -> dict[str, Any]:
    name = re.sub(r"_(\w)", lambda match: match[1].upper(), case.function)
    options = {
        re.sub(r"_(\w)", lambda match: match[1].upper(), option): value for option, value in case.options.items()
    }
    return {**case.data(), "function": name, "arguments": [*case.arguments, *([options] if options else [])]}


def javascript_outcomes(node: Node, cases: list[Case]) -> list[dict[str, Any]]:
    answer = node.run("core.mjs", [in_javascript(case) for case in cases], env={})
    assert answer.error is None, answer
    return [comparable(outcome) for outcome in answer.value]


JS_CASES = [
    *(case for case in COMMON if case.arguments != ({"exception": ""},)),  # stands in the list of exceptions
    *(Case("set_output", ("n", value)) for value in ({"a": [1, "ü"]}, [1, 2], {"b": None, "a": '"'}, [])),
    *(Case(name, ("m",), place) for name in ("notice", "warning", "error") for place in (*PLACES, {"file": "f"})),
    Case("warning", ("m",), {"title": "", "start_line": 3}),
    *(Case("set_failed", (message,)) for message in ("m", {"exception": "no\ngood"})),
    *(
        Case("get_input", ("x",), {"trim_whitespace": trim}, env={"INPUT_X": t})
        for t in TEXTS
        for trim in (True, False)
    ),
]


def test_ours_writes_what_the_official_toolkit_writes(node: Node, ours: Driver) -> None:
    compared = ("stdout", "files", "env", "failed")
    for case, theirs in zip(JS_CASES, javascript_outcomes(node, JS_CASES), strict=True):
        mine = ours.call(case)
        assert {name: mine[name] for name in compared} == {name: theirs[name] for name in compared}, str(case)
        if case.function.startswith(("get_", "is_")):
            assert mine["value"] == theirs["value"], str(case)


JS_EXCEPTIONS = [
    Exceptional(
        Case("error", ({"exception": ""},)),
        "stdout",
        "::error::Error: \n",
        "::error::Error\n",
        "as the PyPI package; it means nothing either way",
    ),
    Exceptional(Case("set_secret", ("",)), "stdout", "", "::add-mask::\n", _NO_MASK),
    Exceptional(Case("set_output", ("a=b", "v")), "GITHUB_OUTPUT", "", "a=b<<DELIMITER\nv\nDELIMITER\n", _MISREAD),
    Exceptional(
        Case("add_path", ("/a\n/b",)), "GITHUB_PATH", "", "/a\n/b\n", "the runner would take it for two folders"
    ),
    Exceptional(
        Case("add_path", ("/a",), env={}), "PATH", "/a", f"/a{os.pathsep}undefined", "no folder of that name was meant"
    ),
    Exceptional(
        Case("error", ("m",), {"start_line": 0}),
        "stdout",
        "::error line=0::m\n",
        "::error ::m\n",
        "JavaScript takes 0 for nothing; the number is the caller's to choose",
    ),
    Exceptional(
        Case("error", ("m",), {"title": ""}), "stdout", "::error::m\n", "::error ::m\n", "a blank that means nothing"
    ),
    Exceptional(
        Case("set_output", ("n", 1.0)),
        "GITHUB_OUTPUT",
        "n<<DELIMITER\n1.0\nDELIMITER\n",
        "n<<DELIMITER\n1\nDELIMITER\n",
        "a number that is no whole number in Python stays one",
    ),
]


def test_exceptions_from_the_official_toolkit_are_what_they_are_said_to_be(node: Node, ours: Driver) -> None:
    outcomes = javascript_outcomes(node, [exception.case for exception in JS_EXCEPTIONS])
    for exception, theirs in zip(JS_EXCEPTIONS, outcomes, strict=True):
        assert at(ours.call(exception.case), exception.where) == exception.ours, str(exception)
        assert at(theirs, exception.where) == exception.theirs, str(exception)
