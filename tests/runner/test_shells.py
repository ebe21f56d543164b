"""The programs that run steps, as they are looked for before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from checkpoint_action.errors import UsageError
from checkpoint_action.model import Step
from checkpoint_action.runner.shells import check_shells, programs_of

HERE = Path.cwd()


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are others there")
def test_each_program_is_named_once_with_the_path_of_its_first_step() -> None:
    steps = (
        Step("a", "true", "sh", HERE),
        Step("b", "true", "bash", HERE, env={"PATH": "/one"}),
        Step("c", "true", "bash", HERE),
        Step("d", "true", "my tool {0}", HERE, inherited_env={"PATH": "/two"}),
    )
    assert programs_of(steps) == [("sh", ""), ("bash", "/one"), ("my", "/two")]


def test_it_is_those_that_are_looked_for(tmp_path: Path) -> None:
    for number in range(3):
        steps = [Step("a", "true", f"none{number} {{0}}", HERE, env={"PATH": str(tmp_path)})]
        [(program, path)] = programs_of(steps)
        with pytest.raises(UsageError, match=f"the shell '{program}' is not on PATH"):
            check_shells(tuple(steps), {"PATH": ""})
        assert path == str(tmp_path)
