"""The GitLab component under gitlab-ci-local: a job that failed goes on from where it was."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integrations.gitlab import COMPONENT, GitLab
from tests.integrations.machines import SAYS_WHAT_IT_GETS, command_on_path, valid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the jobs run in a POSIX shell")

STEPS = r"""
- id: build
  run: |
    echo "built by '$CI_JOB_ID' for $((6 * 7))" >built.txt
    mkdir -p out/deep && ln -s ../../built.txt out/deep/link
- id: test
  run: |
    test "$(cat out/deep/link)" = "built by '1' for 42"
    test "$MAY_PASS" = yes
    echo tested >tested.txt
"""


def project(inputs: dict[str, object], more: dict[str, object] | None = None) -> dict[str, str]:
    include = {"local": "templates/checkpoint-run.yml", "inputs": inputs}
    return {".gitlab-ci.yml": yaml.safe_dump({"include": [include], **(more or {})})}


def component() -> tuple[dict[str, Any], str]:
    head, body = COMPONENT.read_text().split("\n---\n")
    return yaml.safe_load(head)["spec"]["inputs"], body


def filled(given: dict[str, object]) -> dict[str, Any]:
    """The component as GitLab makes it: a string that is an input alone takes its type, else its text."""
    inputs, body = component()
    values = {name: given.get(name, one.get("default")) for name, one in inputs.items()}

    def fill(node: Any) -> Any:
        if isinstance(node, dict):
            return {fill(key): fill(value) for key, value in node.items()}
        if isinstance(node, list):
            return [fill(value) for value in node]
        if not isinstance(node, str):
            return node
        alone = re.fullmatch(r"\$\[\[ inputs\.([a-z-]+) ]]", node)
        if alone:
            return values[alone[1]]
        return re.sub(r"\$\[\[ inputs\.([a-z-]+) ]]", lambda match: str(values[match[1]]), node)

    document = fill(yaml.safe_load(body))
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(
    "inputs",
    [{}, {"steps": STEPS, "jobs": 4, "retries": 0, "name": "build it", "logs": "ci/logs", "store": "s3://bucket/x"}],
)
def test_what_the_component_makes_is_a_gitlab_configuration(tmp_path: Path, inputs: dict[str, object]) -> None:
    made = filled(inputs)
    job = made[str(inputs.get("name", "checkpoint-run"))]
    valid("vendor.gitlab-ci", made, tmp_path)
    assert job["retry"]["exit_codes"] == [75]


def test_every_input_is_described_and_used() -> None:
    inputs, body = component()
    used = set(re.findall(r"\$\[\[ inputs\.([a-z-]+) ]]", body))
    assert set(inputs) == used
    assert all(one["description"] and "default" in one for one in inputs.values())


def test_no_input_stands_in_shell_text() -> None:
    for job in yaml.safe_load(component()[1]).values():
        assert not [line for line in job["script"] if "$[[" in line]


@pytest.mark.slow
def test_a_retried_job_has_back_what_its_first_try_finished(gitlab: Callable[[dict[str, str]], GitLab]) -> None:
    lab = gitlab(project({"steps": STEPS, "logs-when": "always"}))  # it knows no other artifacts of a failed job
    first = lab.job(7, 1, "--variable=MAY_PASS=no")
    assert first.code == 1, first.said
    assert "[2/2] test: failed" in first.said
    assert lab.artifact("checkpoint-run-logs/test.log").is_file()
    assert "test" in lab.artifact("checkpoint-run-logs/report.html").read_text()

    again = lab.job(7, 2, "--variable=MAY_PASS=yes")
    assert again.code == 0, again.said
    assert "[1/2] build: restored" in again.said
    assert "[2/2] test: done" in again.said


@pytest.mark.slow
def test_another_pipeline_starts_from_nothing(gitlab: Callable[[dict[str, str]], GitLab]) -> None:
    lab = gitlab(project({"steps": STEPS, "cache-key": "shared"}))
    assert lab.job(7, 1, "--variable=MAY_PASS=yes").code == 0
    other = lab.job(8, 1, "--variable=MAY_PASS=yes")
    assert other.code == 0
    assert "[1/2] build: done" in other.said


@pytest.mark.slow
def test_with_scope_commit_another_pipeline_of_the_commit_goes_on(gitlab: Callable[[dict[str, str]], GitLab]) -> None:
    lab = gitlab(project({"steps": STEPS, "scope": "commit", "cache-key": "of-$CI_COMMIT_SHA"}))
    assert lab.job(7, 1, "--variable=MAY_PASS=no").code == 1
    other = lab.job(8, 5, "--variable=MAY_PASS=yes")
    assert other.code == 0, other.said
    assert "[1/2] build: restored" in other.said


@pytest.mark.slow
def test_a_retried_job_goes_on_from_a_bucket(gitlab: Callable[[dict[str, str]], GitLab], moto: dict[str, str]) -> None:
    lab = gitlab(project({"steps": STEPS, "store": "s3://bucket/gitlab"}))
    variables = [f"--variable={name}={value}" for name, value in moto.items()]
    assert lab.job(7, 1, "--variable=MAY_PASS=no", *variables).code == 1
    again = lab.job(7, 2, "--variable=MAY_PASS=yes", *variables)
    assert again.code == 0, again.said
    assert "[1/2] build: restored" in again.said
    assert not list((lab.project / ".gitlab-ci-local").rglob("*.tar.zst"))


@pytest.mark.slow
def test_two_jobs_of_a_pipeline_keep_to_their_own(gitlab: Callable[[dict[str, str]], GitLab], tmp_path: Path) -> None:
    include = [
        {"local": "templates/checkpoint-run.yml", "inputs": {**inputs, "store": (tmp_path / "kept").as_uri()}}
        for inputs in (
            {"name": "one", "job": "same", "steps": "[{id: a, run: echo one >of.txt}]"},
            {"name": "two", "job": "same", "steps": "[{id: a, run: 'test ! -e of.txt; echo two >of.txt'}]"},
        )
    ]
    lab = gitlab({".gitlab-ci.yml": yaml.safe_dump({"include": include})})
    assert lab.job(7, 1, "one").code == 0
    other = lab.job(7, 2, "two")
    assert other.code == 0, other.said
    assert "[1/1] a: done" in other.said
    assert "restored" in lab.job(7, 3, "one").said


@pytest.mark.slow
def test_a_used_up_budget_is_exit_code_75_which_a_project_may_allow(
    gitlab: Callable[[dict[str, str]], GitLab],
) -> None:
    steps = "[{id: a, run: echo a >a.txt}, {id: b, run: '[ $MODE = fail ] && exit 1; sleep 600'}]"
    allowed: dict[str, object] = {"checkpoint-run": {"allow_failure": {"exit_codes": [75]}}}
    lab = gitlab(project({"steps": steps, "budget": "3s"}, allowed))
    first = lab.job(7, 1, "--variable=MODE=fail", "--variable=CPR_BUDGET=1h")
    assert "FAIL 1" in first.said  # of the job: gitlab-ci-local itself ends well wherever some code is allowed
    stopped = lab.job(7, 2, "--variable=MODE=wait")
    assert stopped.code == 0, stopped.said
    assert re.search(r"checkpoint-run finished in .* WARN 75", stopped.said), stopped.said
    again = lab.job(7, 3, "--variable=MODE=fail", "--variable=CPR_BUDGET=1h")
    assert "[1/2] a: restored" in again.said, again.said


@pytest.mark.slow
def test_inputs_reach_the_command_as_they_are(gitlab: Callable[[dict[str, str]], GitLab], tmp_path: Path) -> None:
    nasty = 'it\'s "q" $HOME ${CI_JOB_ID} `id` $(id) \\ * ; & <x> # %'
    steps = [{"id": "a", "run": f"echo {nasty}\n", "env": {"A": "$CI_PIPELINE_ID $$"}}]
    lab = gitlab(
        project({"steps": yaml.safe_dump(steps), "exclude": f"*.o\n{nasty}\n", "arguments": f"--verify\n{nasty}"})
    )
    said = {f"SAID_{name}": str(tmp_path / name) for name in ("ARGUMENTS", "ENVIRONMENT", "FILE", "PID")}
    path = f"{command_on_path(tmp_path / 'other', SAYS_WHAT_IT_GETS)}:/usr/bin:/bin"
    ended = lab.job(7, 1, **said, PATH=path)
    assert ended.code == 0, ended.said
    arguments = (tmp_path / "ARGUMENTS").read_text().split("\0")
    assert arguments[-3:-1] == ["--verify", nasty]
    assert nasty in [value for flag, value in pairwise(arguments) if flag == "--exclude"]
    assert yaml.safe_load((tmp_path / "FILE").read_text()) == {"steps": steps}
