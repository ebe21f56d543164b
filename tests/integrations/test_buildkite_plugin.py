"""The Buildkite plugin: its hooks, sourced by bash with the variables that an agent sets."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integrations.machines import ROOT, SAYS_WHAT_IT_GETS, Ended, checkout, command_on_path, plain, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="hooks for bash")

STEPS = [
    {"id": "build", "run": "echo built >built.txt"},
    {"id": "test", "run": 'test -e built.txt && test "$MAY_PASS" = yes'},
]
# What the plugin linter asks of plugin.yml, as its readers know it.
ASKED = {
    "name": str, "description": str, "author": str, "requirements": list, "configuration": dict,
}  # fmt: skip


def variables(configuration: Mapping[str, Any], name: str = "CHECKPOINT_RUN") -> dict[str, str]:
    """The variables that an agent makes of a plugin's configuration."""
    found = {"BUILDKITE_PLUGIN_NAME": name, "BUILDKITE_PLUGIN_CONFIGURATION": json.dumps(configuration)}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                walk(f"{prefix}_{key.upper().replace('-', '_').replace(' ', '_')}", one)
        elif isinstance(value, list):
            for number, one in enumerate(value):
                walk(f"{prefix}_{number}", one)
        else:
            found[prefix] = str(value).lower() if isinstance(value, bool) else str(value)

    walk(f"BUILDKITE_PLUGIN_{name}", configuration)
    return found


class Agent:
    """An agent and its machine.

    :ivar uploads: what its command ``buildkite-agent`` was called with.
    """

    def __init__(self, folder: Path, tools: Path) -> None:
        self.uploads = folder / "uploads"
        command_on_path(folder / "agent").joinpath("checkpoint-run").unlink()
        program = folder / "agent" / "buildkite-agent"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{self.uploads}"\n')
        program.chmod(0o755)
        self._env = plain(folder / "machine", tools)
        self._env["PATH"] = f"{folder / 'agent'}:{self._env['PATH']}"
        self.folder = folder
        self.temporary = folder / "machine" / "tmp"

    def job(self, configuration: Mapping[str, Any], attempt: int = 0, build: int = 88, **more: str) -> Ended:
        """Check out, and go through the hooks of a job."""
        sources = checkout(self.folder / "checkout", {"checkpoint.yml": yaml.safe_dump({"steps": STEPS})})
        env = {
            **self._env,
            "BUILDKITE": "true",
            "BUILDKITE_ORGANIZATION_SLUG": "acme",
            "BUILDKITE_PIPELINE_SLUG": "tool",
            "BUILDKITE_BUILD_NUMBER": str(build),
            "BUILDKITE_BUILD_ID": f"0195-{build}",
            "BUILDKITE_JOB_ID": f"0195-{build}-{attempt}",
            "BUILDKITE_STEP_KEY": "build",
            "BUILDKITE_RETRY_COUNT": str(attempt),
            "BUILDKITE_COMMIT": "HEAD",
            **variables(configuration),
            **more,
        }
        ended = self._hook("command", sources, env)
        last = self._hook("pre-exit", sources, {**env, "BUILDKITE_COMMAND_EXIT_STATUS": str(ended.code)})
        assert last.code == 0, last.said
        assert not list(self.temporary.glob("checkpoint-run-0195*"))
        return ended

    def _hook(self, name: str, sources: Path, env: dict[str, str]) -> Ended:
        # As the agent's own wrapper does: the hook runs in the wrapper's shell.
        wrapper = self.folder / f"wrapper-{name}"
        wrapper.write_text(f'. "{ROOT / "hooks" / name}"\nexit $?\n')
        return run(["bash", wrapper], sources, env)


def test_a_character_that_json_writes_as_two_escapes_reaches_the_job_file(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "checkout", {"a": ""})
    env = {**plain(tmp_path / "machine", command_on_path(tmp_path / "told", SAYS_WHAT_IT_GETS)), "LC_ALL": "C"}
    env |= {f"SAID_{name}": str(tmp_path / name) for name in ("ARGUMENTS", "ENVIRONMENT", "FILE", "PID")}
    steps = [{"id": "a", "run": "echo '\U0001f389 \u00e9 \\ud83c\\udf89 \x7f \u2028'"}]
    env |= {**variables({"store": "s3://x", "steps": steps}), "BUILDKITE_JOB_ID": "0195"}
    ended = run(["bash", ROOT / "hooks" / "command"], folder, env)
    assert ended.code == 0, ended.said
    assert yaml.safe_load((tmp_path / "FILE").read_text("utf-8"))["steps"] == steps


def test_the_hooks_python_takes_no_modules_from_the_checkout(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "checkout", {"json.py": "open('canary', 'w')\n", "os.py": "open('canary', 'w')\n"})
    env = {**plain(tmp_path / "machine", command_on_path(tmp_path / "told", SAYS_WHAT_IT_GETS))}
    env |= {f"SAID_{name}": str(tmp_path / name) for name in ("ARGUMENTS", "ENVIRONMENT", "FILE", "PID")}
    env |= {**variables({"store": "s3://x", "steps": STEPS}), "BUILDKITE_JOB_ID": "0195"}
    ended = run(["bash", ROOT / "hooks" / "command"], folder, env)
    assert ended.code == 0, ended.said
    assert not (folder / "canary").exists()
    assert yaml.safe_load((tmp_path / "FILE").read_text())["steps"] == STEPS


@pytest.fixture
def agent(tmp_path: Path, tools: Path) -> Agent:
    """Return an agent on a machine with our command."""
    return Agent(tmp_path, tools)


@pytest.fixture
def listener(tmp_path: Path) -> Agent:
    """Return an agent on a machine with a command that tells what it gets."""
    return Agent(tmp_path, command_on_path(tmp_path / "told", SAYS_WHAT_IT_GETS))


def told(listener: Agent, configuration: Mapping[str, Any], **more: str) -> list[str]:
    """The arguments that the command gets."""
    said = {f"SAID_{name}": str(listener.folder / name) for name in ("ARGUMENTS", "ENVIRONMENT", "FILE", "PID")}
    ended = listener.job(configuration, 0, 88, **said, **more)
    assert ended.code == 0, ended.said
    return (listener.folder / "ARGUMENTS").read_text().split("\0")[:-1]


def test_plugin_yml_has_what_the_linter_asks_for() -> None:
    document = yaml.safe_load((ROOT / "plugin.yml").read_text())
    assert {name: type(value) for name, value in document.items()} == ASKED
    configuration = document["configuration"]
    assert configuration["additionalProperties"] is False
    assert set(configuration["required"]) <= set(configuration["properties"])
    assert all(one["description"] for one in configuration["properties"].values())


def test_the_schema_tells_right_from_wrong(tmp_path: Path) -> None:
    right: list[dict[str, Any]] = [
        {"store": "s3://bucket/x", "steps": STEPS},
        {"store": "file:///kept", "steps": "- id: a\n", "exclude": ["*.o"], "jobs": 2, "budget": "50m"},
    ]
    wrong: list[dict[str, Any]] = [
        {"steps": STEPS},
        {"store": "/kept"},
        {"store": "s3://b", "scope": "branch"},
        {"store": "s3://b", "jobs": 0},
        {"store": "s3://b", "step": []},
    ]
    schema = yaml.safe_load((ROOT / "plugin.yml").read_text())["configuration"]
    (tmp_path / "schema.json").write_text(json.dumps({"type": "object", **schema}))
    for number, configuration in enumerate([*right, *wrong]):
        (tmp_path / f"{number}.json").write_text(json.dumps(configuration))
    files = [f"{number}.json" for number in range(len(right + wrong))]
    command = [sys.executable, "-m", "check_jsonschema", "-o", "json", "--schemafile", "schema.json", *files]
    errors = json.loads(run(command, tmp_path, plain(tmp_path, None)).said)["errors"]
    assert {error["filename"] for error in errors} == set(files[len(right) :])


def test_every_option_is_read() -> None:
    options = yaml.safe_load((ROOT / "plugin.yml").read_text())["configuration"]["properties"]
    hook = (ROOT / "hooks" / "command").read_text()
    assert [name for name in options if f"option {name.upper()})" not in hook and name != "steps"] == []


def test_every_option_reaches_the_command_as_it_is(listener: Agent) -> None:
    nasty = 'it\'s "q" $HOME `id` $(id) \\ * ; & <x>'
    configuration = {
        "file": "ci/a b.yml", "job": "release", "store": "s3://bucket/x", "scope": "commit", "exclude": ["*.o", nasty],
        "jobs": 3, "budget": 90, "arguments": ["--verify", "stat"], "logs": "always",
    }  # fmt: skip
    arguments = told(listener, configuration)
    pairs = list(pairwise(arguments))
    for pair in [
        ("--file", "ci/a b.yml"), ("--job", "release"), ("--store", "s3://bucket/x"), ("--scope", "commit"),
        ("--exclude", "*.o"), ("--exclude", nasty), ("--jobs", "3"), ("--budget", "90"), ("--verify", "stat"),
        ("--logs-dir", "checkpoint-run-logs"),
    ]:  # fmt: skip
        assert pair in pairs
    environment = (listener.folder / "ENVIRONMENT").read_text()
    assert "CPR_" not in environment


@pytest.mark.parametrize("form", ["list", "text"])
def test_steps_may_be_a_list_or_its_text(listener: Agent, form: str) -> None:
    told(listener, {"store": "s3://b", "steps": STEPS if form == "list" else yaml.safe_dump(STEPS)})
    assert yaml.safe_load((listener.folder / "FILE").read_text()) == {"steps": STEPS}


def test_a_list_may_be_given_as_text_too(listener: Agent) -> None:
    pairs = list(pairwise(told(listener, {"store": "s3://b", "exclude": "*.o\n*.a\n"})))
    assert ("--exclude", "*.o") in pairs
    assert ("--exclude", "*.a") in pairs


def test_a_fork_with_another_name_reads_its_own_options(listener: Agent) -> None:
    arguments = told(listener, {}, **variables({"store": "s3://fork"}, "OUR_RUN"))
    assert ("--store", "s3://fork") in pairwise(arguments)


def test_a_missing_store_is_said_in_one_line(agent: Agent) -> None:
    ended = agent.job({"steps": STEPS})
    assert ended.code == 2
    assert ended.said == (
        "checkpoint-run: error: the plugin's option store is missing, for example s3://bucket/prefix\n"
    )


@pytest.mark.slow
def test_a_retried_job_goes_on_from_the_store(agent: Agent, tmp_path: Path) -> None:
    configuration = {"store": (tmp_path / "kept").as_uri(), "steps": STEPS}
    first = agent.job(configuration, MAY_PASS="no")
    assert first.code == 1, first.said
    assert agent.uploads.read_text() == "artifact upload checkpoint-run-logs/**/*\n"
    again = agent.job(configuration, attempt=1, MAY_PASS="yes")
    assert again.code == 0, again.said
    assert "[1/2] build: restored" in again.said
    assert agent.uploads.read_text().count("\n") == 1  # a good one uploads none

    rebuilt = agent.job(configuration, build=89, MAY_PASS="yes")
    assert "[1/2] build: done" in rebuilt.said


@pytest.mark.slow
def test_the_job_file_of_the_sources_is_used_where_nothing_is_named(agent: Agent, tmp_path: Path) -> None:
    ended = agent.job({"store": (tmp_path / "kept").as_uri(), "logs": "never"}, MAY_PASS="no")
    assert ended.code == 1
    assert "[1/2] build: done" in ended.said
    assert not agent.uploads.exists()


@pytest.mark.slow
def test_a_used_up_budget_is_exit_code_75(agent: Agent, tmp_path: Path) -> None:
    steps = [{"id": "a", "run": "sleep 600"}]
    ended = agent.job({"store": (tmp_path / "kept").as_uri(), "steps": steps, "budget": 2})
    assert ended.code == 75, ended.said
    assert ended.said.endswith("--- checkpoint-run: stopped by its budget; a retry goes on from here\n")
