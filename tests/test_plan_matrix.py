"""``plan --matrix``: what can run next, for a workflow's matrix."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are shell scripts")

JOB = """\
job: demo
steps:
  - {id: login, needs: [], always: true, run: "true"}
  - {id: a, needs: [login], run: "echo a > a", outputs: [a]}
  - {id: b, needs: [], run: "echo b > b", outputs: [b]}
  - {id: c, needs: [a, b], run: "cat a b > c", outputs: [c]}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "checkpoint.yml").write_text(JOB)
    return Console(tmp_path)


def matrix(console: Console, *options: str) -> list[str]:
    """The steps that it names; all else that it prints is nothing."""
    done = console.run("plan", "--matrix", *options)
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    found = json.loads(line)
    assert list(found) == ["include"]
    assert all(list(one) == ["step"] for one in found["include"])
    return [one["step"] for one in found["include"]]


def test_it_names_what_can_run_next_and_nothing_at_the_end(console: Console) -> None:
    assert matrix(console) == ["a", "b"], "what runs always runs with what needs it"
    assert console.run("--quiet", "--only", "login", "a").returncode == 0
    assert matrix(console) == ["b"]
    assert console.run("--quiet", "--only", "b").returncode == 0
    assert matrix(console) == ["c"]
    assert console.run("--quiet").returncode == 0
    assert matrix(console) == []
    (console.folder / "a").write_text("another\n")
    assert matrix(console) == ["a"]


def test_the_steps_that_are_chosen_are_those_of_the_matrix(console: Console) -> None:
    assert console.run("--quiet").returncode == 0
    assert matrix(console, "--from", "b") == ["b"]
    assert matrix(console, "--force", "c") == ["c"]


def test_the_same_words_without_it_are_a_plan_as_ever(console: Console) -> None:
    assert console.run("--quiet").returncode == 0
    assert matrix(console) == []
    plans = [console.run("plan", "--json") for _ in range(2)]
    assert [json.loads(plan.stdout)["steps"][0]["id"] for plan in plans] == ["login", "login"]
    assert matrix(console) == []


def test_it_is_for_plan_alone(console: Console) -> None:
    done = console.run("run", "--matrix")
    assert done.returncode == 2
    assert "unknown option '--matrix'" in done.stderr
