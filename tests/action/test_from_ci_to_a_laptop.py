"""A run of CI that failed, gone on with elsewhere: pulled through REST, finished, and pushed for the next run."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.action.test_stores import attempt
from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path

    from tests.action.machine import Workflow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash")

STEPS = """\
- id: build
  run: mkdir -p dist/empty; printf app > dist/app; chmod 750 dist/app; ln -s app dist/link; echo >> "$KEEP/build"
- {id: edit, run: 'printf +edited >> dist/app; echo NAME=world >> "$GITHUB_ENV"; echo >> "$KEEP/edit"'}
- {id: test, run: 'echo >> "$KEEP/test"; test -e fixed'}
- {id: last, run: 'printf "$NAME" > greeting; echo >> "$KEEP/last"'}
"""


class Laptop(Console):
    """A folder with the job file of the run, and what the REST interface needs."""

    def __init__(self, folder: Path, workflow: Workflow, steps: str = STEPS) -> None:
        super().__init__(folder)
        folder.mkdir()
        lines = "".join(f"  {line}\n" for line in steps.splitlines())
        (folder / "checkpoint.yml").write_text(f"job: build\nsteps:\n{lines}")
        self.env = {
            "GITHUB_API_URL": workflow.service.rest.url,
            "GITHUB_TOKEN": "rest-token",
            "KEEP": str(workflow.keep),
        }

    def say(self, *words: str, code: int = 0, **env: str) -> str:
        """Run it; both its outputs."""
        ended = self.run(*words, env={**self.env, **env})
        assert ended.returncode == code, ended.stderr
        return ended.stdout + ended.stderr


PULL = ("pull", "--github", "octo/demo", "--run", "77")


@pytest.fixture
def failed(workflow: Workflow) -> Workflow:
    """The run, with its first attempt made: two steps are done, one has failed."""
    first = attempt(workflow, 1, STEPS, store="artifact")
    assert (first.outputs["ran"], first.outputs["failed"]) == (["build", "edit", "test"], ["test"])
    return workflow


@pytest.fixture
def laptop(failed: Workflow, tmp_path: Path) -> Laptop:
    return Laptop(tmp_path / "laptop", failed)


def test_only_the_failed_step_and_what_follows_run_after_a_pull(failed: Workflow, laptop: Laptop) -> None:
    said = laptop.say(*PULL)
    assert "build, edit: done, with files put back" in said
    assert "go on with: checkpoint-run" in said
    app = laptop.folder / "dist" / "app"
    assert (app.read_text(), oct(app.stat().st_mode & 0o777)) == ("app+edited", "0o750")
    assert (laptop.folder / "dist" / "link").readlink().name == "app"
    assert (laptop.folder / "dist" / "empty").is_dir()
    planned = json.loads(laptop.run("plan", "--json", env=laptop.env).stdout)
    assert [(one["id"], one["action"], one["reason"]) for one in planned["steps"]] == [
        ("build", "skip", "done"),
        ("edit", "skip", "done"),
        ("test", "run", "failed-before"),
        ("last", "run", "never-ran"),
    ]
    (laptop.folder / "fixed").touch()
    laptop.say()
    assert (laptop.folder / "greeting").read_text() == "world"
    assert [len(failed.kept(step)) for step in ("build", "edit", "test", "last")] == [1, 1, 2, 1]


def test_what_the_steps_printed_comes_along(laptop: Laptop) -> None:
    laptop.say(*PULL)
    # Only the failed step's log was kept; the other's lay on the machine, whose paths mean nothing here.
    assert "cannot read the log build.log" in laptop.say("logs", "build", code=2)
    assert laptop.say("logs", "test") == ""


def test_a_second_pull_changes_nothing(laptop: Laptop) -> None:
    laptop.say(*PULL)
    before = (laptop.folder / ".checkpoint-run-build.json").read_bytes()
    assert "build, edit: done, with files as they are" in laptop.say(*PULL)
    assert (laptop.folder / ".checkpoint-run-build.json").read_bytes() == before


def test_a_file_of_ones_own_is_only_written_over_when_that_is_asked_for(laptop: Laptop) -> None:
    (laptop.folder / "dist").mkdir()
    (laptop.folder / "dist" / "app").write_text("mine")
    assert "dist/app; give --overwrite" in laptop.say(*PULL, code=2)
    assert (laptop.folder / "dist" / "app").read_text() == "mine"
    assert not list(laptop.folder.glob(".checkpoint-run-*"))
    laptop.say(*PULL, "--overwrite")
    assert (laptop.folder / "dist" / "app").read_text() == "app+edited"


def test_what_an_attempt_left_can_be_pulled_though_a_later_one_went_on(failed: Workflow, laptop: Laptop) -> None:
    second = attempt(failed, 2, STEPS.replace("test -e fixed", "true"), store="artifact")
    assert second.code == 0
    assert "test: to run: failed-before" in laptop.say(*PULL, "--attempt", "1")


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (("pull", "--github", "octo/demo"), {}, "--github needs the run"),
        (("pull", "--github", "octo", "--run", "77"), {}, "owner/name"),
        (("pull", "--github", "octo/demo", "--run", "78"), {}, "no checkpoints among its artifacts"),
        (PULL, {"GITHUB_TOKEN": "wrong"}, "set GITHUB_TOKEN"),
        ((*PULL, "--job", "other"), {}, "name one with --job: build-"),
        ((*PULL, "--store", "file:///x"), {}, "leave --store"),
        (("pull", "--run", "77"), {}, "--run is for --github"),
    ],
)
def test_a_mistake_is_one_line(laptop: Laptop, words: tuple[str, ...], env: dict[str, str], said: str) -> None:
    ended = laptop.run(*words, env={**laptop.env, **env})
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert said in ended.stderr


SHARED = STEPS.replace("- {id: test,", "- {id: test, outputs: [],").replace(
    "- {id: last,", "- {id: last, outputs: [greeting],"
)


@pytest.mark.parametrize("way", ["push", "run"])
def test_what_is_finished_at_home_is_skipped_by_the_next_run(way: str, workflow: Workflow, tmp_path: Path) -> None:
    """A step that says what it leaves can be pushed; what it leaves is looked at where it runs with the store."""
    steps, url = SHARED if way == "push" else STEPS, f"file://{tmp_path}/shared"
    assert attempt(workflow, 1, steps, store="artifact").outputs["failed"] == ["test"]
    laptop = Laptop(tmp_path / "laptop", workflow, steps)
    laptop.say(*PULL)
    (laptop.folder / "fixed").touch()
    shared = ("--store", url, "--scope", "commit")
    if way == "push":
        laptop.say()
        assert "git tells no commit" in laptop.say("push", *shared, code=2)
    laptop.env |= {"GITHUB_SHA": workflow.commit, "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "1"}
    laptop.env |= {"RUNNER_OS": "Linux", "RUNNER_ARCH": "X64"}
    said = laptop.say("push" if way == "push" else "run", *shared)
    assert "stays here" not in said
    if way == "push":
        assert "in the store already" in laptop.say("push", *shared)
    workflow.sources = {**workflow.sources, "fixed": ""}
    again = attempt(workflow, 2, steps, store=url, scope="commit", share="build")
    assert again.code == 0, again.log
    assert again.outputs["ran"] == []
    assert [len(workflow.kept(step)) for step in ("build", "edit", "test", "last")] == [1, 1, 2, 1]
    workspace = workflow.machines[-1].workspace
    assert (workspace / "dist" / "app").read_text() == "app+edited"
    assert (workspace / "greeting").read_text() == "world"
