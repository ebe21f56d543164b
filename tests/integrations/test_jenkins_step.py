"""The Jenkins shared step, run by Groovy itself with Jenkins' steps stood in for, and its script by a real shell."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integrations.machines import ROOT, SAYS_WHAT_IT_GETS, checkout, command_on_path, plain, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="the step is for sh"), pytest.mark.slow]

LIBRARY = ROOT / "integrations" / "jenkins"
HARNESS = ROOT / "tests" / "integrations" / "jenkins.groovy"
STEPS = """
    - id: build
      run: echo "built in $BUILD_NUMBER" >built.txt
    - id: test
      run: test "$(cat built.txt)" = "built in 77" && test "$MAY_PASS" = yes
"""


@dataclass(frozen=True)
class Answer:
    """How the step ended.

    :ivar error: what it failed with, or ``None``.
    """

    error: str | None
    unstable: list[str]
    archived: list[str]
    scripts: int
    returned: int | None
    said: str


class Jenkins:
    """A controller with one agent."""

    def __init__(self, folder: Path, groovy: list[str], tools: Path) -> None:
        self.folder, self._groovy = folder, groovy
        self._env = {
            **plain(folder / "machine", tools),
            "JENKINS_URL": "https://jenkins.example/",
            "JOB_NAME": "tool/main",
        }
        self.workspace = checkout(folder / "workspace", {"checkpoint.yml": f"job: tool\nsteps:{STEPS}"})

    def build(self, options: Mapping[str, Any], number: int = 77, **more: str) -> Answer:
        """Run the step in a fresh workspace of the same commit."""
        return self.calls([options], number, **more)[0]

    def calls(self, options: list[Mapping[str, Any]], number: int = 77, **more: str) -> list[Answer]:
        """Run the step once for each of some options, one after the other in a build."""
        run(["git", "clean", "-fdxq"], self.workspace, self._env)
        asked, answered = self.folder / "asked.json", self.folder / "answered.json"
        asked.write_text(json.dumps(options))
        step = LIBRARY / "vars" / "checkpointRun.groovy"
        command = [*self._groovy, HARNESS, step, LIBRARY / "resources", asked, answered]
        env = {**self._env, "STAGE_NAME": "Build", "BUILD_NUMBER": str(number), **more}
        ended = run([str(word) for word in command], self.workspace, env)
        assert ended.code == 0, ended.said
        return [Answer(**answer, said=ended.said) for answer in json.loads(answered.read_text())]


@pytest.fixture
def jenkins(tmp_path: Path, groovy: list[str], tools: Path) -> Jenkins:
    """Return Jenkins with our command on its agent."""
    return Jenkins(tmp_path, groovy, tools)


def test_a_later_build_of_the_commit_goes_on_from_the_store(jenkins: Jenkins, tmp_path: Path) -> None:
    options = {"store": (tmp_path / "kept").as_uri(), "steps": STEPS}
    first = jenkins.build(options, MAY_PASS="no")
    assert first.error == "checkpoint-run: exit code 1", first.said
    assert first.archived == ["checkpoint-run-logs/**"]
    again = jenkins.build(options, 78, MAY_PASS="yes")
    assert again.error is None, again.said
    assert again.returned == 0
    assert again.archived == []
    assert "[1/2] build: restored" in again.said


def test_the_job_file_of_the_workspace_is_used_where_nothing_is_named(jenkins: Jenkins, tmp_path: Path) -> None:
    answer = jenkins.build({"store": (tmp_path / "kept").as_uri(), "logs": "never"}, MAY_PASS="yes")
    assert answer.error is None, answer.said
    assert "job tool: 2 done" in answer.said
    assert not (jenkins.workspace / "checkpoint-run-logs").exists()


def test_a_used_up_budget_is_what_was_asked_for(tmp_path: Path, groovy: list[str]) -> None:
    jenkins = Jenkins(tmp_path, groovy, command_on_path(tmp_path / "ends", "#!/bin/sh\nexit 75\n"))
    unstable, failed = jenkins.calls([{"store": "s3://b"}, {"store": "s3://b", "onBudget": "failure"}])
    assert unstable.unstable == ["checkpoint-run: stopped by its budget; build again to go on from here"]
    assert (unstable.error, unstable.returned) == (None, 75)
    assert (failed.error, failed.unstable) == ("checkpoint-run: exit code 75", [])


def test_every_option_reaches_the_command_as_it_is(tmp_path: Path, groovy: list[str]) -> None:
    jenkins = Jenkins(tmp_path, groovy, command_on_path(tmp_path / "told", SAYS_WHAT_IT_GETS))
    nasty = 'it\'s "q" $HOME ${BUILD_NUMBER} `id` $(id) \\ * ; & <x>'
    steps = [{"id": "a", "run": f"echo {nasty}\n"}]
    said = {f"SAID_{name}": str(tmp_path / name) for name in ("ARGUMENTS", "ENVIRONMENT", "FILE", "PID")}
    answer = jenkins.build(
        {
            "steps": yaml.safe_dump(steps), "job": "release", "store": "s3://bucket/x", "exclude": ["*.o", nasty],
            "jobs": 3, "budget": "50m", "arguments": ["--verify", "stat"], "logs": "always",
        },
        77,
        **said,
    )  # fmt: skip
    assert answer.error is None, answer.said
    assert answer.archived == ["checkpoint-run-logs/**"]
    pairs = list(pairwise((tmp_path / "ARGUMENTS").read_text().split("\0")))
    for pair in [
        ("--job", "release"), ("--store", "s3://bucket/x"), ("--scope", "commit"), ("--exclude", "*.o"),
        ("--exclude", nasty), ("--jobs", "3"), ("--budget", "50m"), ("--verify", "stat"),
    ]:  # fmt: skip
        assert pair in pairs
    assert yaml.safe_load((tmp_path / "FILE").read_text()) == {"steps": steps}


def test_a_wrong_option_is_said_before_anything_runs(jenkins: Jenkins) -> None:
    missing, word, unknown = jenkins.calls(
        [{}, {"store": "s3://b", "logs": "allways"}, {"store": "s3://b", "bugdet": "5m"}]
    )
    assert missing.error == "checkpointRun: the option store is missing, for example s3://bucket/prefix"
    assert word.error == "checkpointRun: logs: 'allways' is none of on-failure, always, never"
    assert unknown.error is not None
    assert unknown.error.startswith("checkpointRun: there is no option bugdet; there are steps, file, job, ")
    assert (missing.scripts, word.scripts, unknown.scripts) == (0, 0, 0)
