"""Lines of ours on a stream that somebody reads: a person, a terminal or a CI system."""

from __future__ import annotations

import io
import json
import re

import pytest

from checkpoint_action.report.lines import answer, say

OLD_COMMANDS = [
    "##[error]x",
    "a ##[add-mask]x",
    "###[group]x",
    "##vso[task.setvariable variable=LD_PRELOAD]x",
    "##teamcity[buildStatus text='x']",
    "##[##[x",
]


@pytest.mark.parametrize("text", OLD_COMMANDS)
def test_no_line_has_a_command_of_a_ci_system_in_it(text: str) -> None:
    stream = io.StringIO()
    say(stream, f"checkpoint-run: the file {text} is missing")
    assert not re.search(r"##\w*\[", stream.getvalue())


@pytest.mark.parametrize("text", OLD_COMMANDS)
def test_json_still_says_the_same(text: str) -> None:
    stream = io.StringIO()
    answer(stream, json.dumps({"detail": text}))
    assert not re.search(r"##\w*\[", stream.getvalue())
    assert json.loads(stream.getvalue()) == {"detail": text}


@pytest.mark.parametrize("text", ["## heading", "a#[b]", "##", "#[x]", "# # [x]"])
def test_other_signs_stay(text: str) -> None:
    stream = io.StringIO()
    say(stream, text)
    assert stream.getvalue() == f"{text}\n"
