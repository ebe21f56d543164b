"""Jobs of workflows as job files: commands as steps, the rest as comments that say what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoint_action.errors import UsageError
from checkpoint_action.jobfile.resolve import JobDefaults, load_job
from checkpoint_action.starting.draft import draft_text
from checkpoint_action.starting.workflows import draft_of_workflow

REPOSITORY = Path(__file__).parents[2]
FLOW = """
on: push
env: {A: 1, REF: "${{ github.ref }}"}
defaults: {run: {working-directory: src}}
jobs:
  lint:
    steps: [{uses: x/y@v1}]
  build:
    runs-on: ubuntu-latest
    strategy: {matrix: {os: [a, b]}}
    env: {A: 2, B: on}
    steps:
      - uses: actions/checkout@v4
      - name: Set it up (fast)
        run: ./setup.sh
        timeout-minutes: 5
      - id: make-it
        name: Make
        if: always()
        working-directory: sub
        shell: sh
        env: {C: "x: y", TOKEN: "${{ secrets.TOKEN }}"}
        run: |
          make ${{ matrix.os }}
          make test
      - run: echo done
        shell: cmd
      - name: Upload
        uses: actions/upload-artifact@v4
  deploy:
    steps: [{run: ./deploy.sh}]
"""


def text_of(flow: str, job: str | None = None) -> str:
    return draft_text(draft_of_workflow(flow, "ci.yml", job))


def test_run_steps_become_steps_with_all_that_belongs_to_them() -> None:
    job = load_job(text_of(FLOW), "x", JobDefaults("x", Path("/r"), Path("/r")))
    first, second, third = job.steps
    assert (job.name, first.id, second.id, third.id) == ("build", "set-it-up-fast", "make-it", "echo-done")
    assert (first.command, first.timeout, first.cwd, first.shell) == ("./setup.sh", 300, Path("/r/src"), "bash -e {0}")
    assert (second.command, second.cwd, second.shell) == ("make ${{ matrix.os }}\nmake test\n", Path("/r/sub"), "sh")
    assert (second.env, second.inherited_env) == ({"C": "x: y"}, {"A": "2", "B": "on"})
    assert third.shell.startswith("cmd ")


@pytest.mark.parametrize(
    "said",
    [
        "left out: uses: actions/checkout@v4",
        "left out: uses: actions/upload-artifact@v4 (Upload)",
        "Set it up (fast)",
        "left out: if: always()",
        "write what they stand for: ${{ matrix.os }}",
        "set TOKEN outside; GitHub fills it in: ${{ secrets.TOKEN }}",
        "set REF outside",
        "'strategy' of the job is left out",
        "(init --job NAME takes another): deploy",
    ],
)
def test_what_only_github_can_do_is_said(said: str) -> None:
    assert said in text_of(FLOW)


def test_a_job_can_be_named() -> None:
    assert "run: ./deploy.sh" in text_of(FLOW, "deploy")


@pytest.mark.parametrize(
    ("flow", "job", "said"),
    [
        (FLOW, "depoly", "no job 'depoly'; did you mean 'deploy'"),
        (FLOW, "lint", "job 'lint' runs a command|its job 'lint'"),
        ("a: [", None, "ci.yml:.*not valid YAML"),
        ("steps: []", None, "no GitHub workflow"),
        ("- 1", None, "no GitHub workflow"),
        ("jobs: {a: {steps: [{uses: x}]}}", None, "none of its jobs"),
        ("jobs: {a: x, b: {steps: 3}}", None, "none of its jobs"),
    ],
)
def test_what_is_no_such_workflow_is_refused(flow: str, job: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        text_of(flow, job)


@pytest.mark.parametrize(
    "path",
    # Those of the fan-out only call others and the action: they have no command of their own.
    [path for path in sorted((REPOSITORY / ".github/workflows").glob("*.yml")) if "run: " in path.read_text()],
    ids=lambda path: path.name,
)
def test_this_repositorys_own_workflows(path: Path) -> None:
    job = load_job(text_of(path.read_text()), "x", JobDefaults("x", Path("/r"), Path("/r")))
    assert job.steps
