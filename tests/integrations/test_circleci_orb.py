"""The CircleCI orb: packed, expanded, held against CircleCI's schema, and its steps done as CircleCI does them."""

from __future__ import annotations

import shutil
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integrations.machines import ROOT, SAYS_WHAT_IT_GETS, Ended, checkout, command_on_path, plain, run, valid
from tests.integrations.orb import expanded, packed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps run in bash")

SOURCE = ROOT / "integrations" / "circleci" / "src"
STEPS = """
- id: build
  run: echo "built in $CIRCLE_BUILD_NUM" >built.txt
- id: test
  run: test "$(cat built.txt)" = "built in 41" && test "$MAY_PASS" = yes
"""


def config(given: Mapping[str, Any]) -> dict[str, Any]:
    """A pipeline whose one job is the orb's."""
    return {
        "version": 2.1,
        "jobs": {"made": expanded(packed(SOURCE), "run", given)},
        "workflows": {"w": {"jobs": ["made"]}},
    }


class Machine:
    """Does a job's steps: real commands in real bash, and caches as CircleCI keeps them.

    :ivar caches: what each key has; a key is never written twice.
    """

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder, self.store = folder, folder / "store"
        self._env = plain(folder / "machine", tools)
        self.caches: dict[str, Path] = {}
        self.artifacts: list[str] = []
        # The folder for the store is each test's own.
        orb = yaml.safe_dump(packed(SOURCE)).replace("/tmp/checkpoint-run-store", str(self.store))
        self._orb: dict[str, Any] = yaml.safe_load(orb)

    def job(self, given: Mapping[str, Any], number: int, workspace: str = "w-1", **more: str) -> Ended:
        """A job on a fresh machine.

        :param number: of the job; another one for each try.
        :param workspace: that of the workflow that was run first.
        """
        shutil.rmtree(self.store, ignore_errors=True)
        sources = checkout(self.folder / "project", {"checkpoint.yml": f"steps:{STEPS}"})
        env = {
            **self._env,
            "CIRCLECI": "true",
            "CIRCLE_PROJECT_ID": "p-1",
            "CIRCLE_WORKFLOW_ID": f"{workspace}-of-{number}",
            "CIRCLE_WORKFLOW_WORKSPACE_ID": workspace,
            "CIRCLE_JOB": "made",
            "CIRCLE_NODE_INDEX": "0",
            "CIRCLE_BUILD_NUM": str(number),
            **more,
        }
        ended = Ended(0, "")
        for step in expanded(self._orb, "run", given)["steps"]:
            kind, told = (step, {}) if isinstance(step, str) else next(iter(step.items()))
            if ended.code and told.get("when") != "always":
                continue
            if kind == "run":
                assert set(told) == {"name", "environment", "command"}
                (self.folder / "command").write_text(told["command"])
                environment = {name: str(value) for name, value in told["environment"].items()}
                ended = run(["bash", "-eo", "pipefail", self.folder / "command"], sources, {**env, **environment})
            elif kind == "restore_cache":
                self._restore([self._key(key, env) for key in told["keys"]], sources)
            elif kind == "save_cache":
                self._save(self._key(told["key"], env), [sources / path for path in told["paths"]])
            elif kind == "store_artifacts":
                self.artifacts += [path.name for path in sorted((sources / told["path"]).rglob("*"))]
            else:
                assert kind == "checkout"
        return ended

    def _key(self, text: str, env: Mapping[str, str]) -> str:
        for name, value in env.items():
            text = text.replace(f"{{{{ .Environment.{name} }}}}", value)
        assert "{{" not in text
        return text

    def _save(self, key: str, paths: list[Path]) -> None:
        if key in self.caches or not paths[0].exists():
            return
        self.caches[key] = self.folder / f"cache-{len(self.caches)}"
        shutil.copytree(paths[0], self.caches[key])

    def _restore(self, keys: list[str], _sources: Path) -> None:
        found = [kept for prefix in keys for key, kept in reversed(self.caches.items()) if key.startswith(prefix)]
        if found:
            shutil.copytree(found[0], self.store)


@pytest.fixture
def machine(tmp_path: Path, tools: Path) -> Machine:
    """Return machines of CircleCI with our command."""
    return Machine(tmp_path, tools)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {
            "steps": STEPS,
            "jobs": 4,
            "scope": "commit",
            "store": "s3://bucket/x",
            "executor": {"name": "default", "tag": "3.14"},
        },
    ],
)
def test_what_the_orb_makes_is_a_circleci_configuration(tmp_path: Path, given: dict[str, Any]) -> None:
    valid("vendor.circle-ci", config(given), tmp_path)


def test_the_packed_orb_may_stand_in_a_configuration(tmp_path: Path) -> None:
    orb = {key: value for key, value in packed(SOURCE).items() if key not in ("version", "display", "examples")}
    document = {
        "version": 2.1,
        "orbs": {"checkpoint-run": orb},
        "workflows": {"build": {"jobs": [{"checkpoint-run/run": {"steps": STEPS}}]}},
    }
    valid("vendor.circle-ci", document, tmp_path)


def test_the_examples_are_configurations_that_the_orb_takes(tmp_path: Path) -> None:
    orb = packed(SOURCE)
    assert orb["examples"]
    for example in orb["examples"].values():
        usage = example["usage"]
        valid("vendor.circle-ci", usage, tmp_path)
        for job in usage["workflows"]["build"]["jobs"]:
            given = {key: value for key, value in job["checkpoint-run/run"].items() if key != "context"}
            assert expanded(orb, "run", given)["steps"]


def test_everything_is_described() -> None:
    orb = packed(SOURCE)
    for kind in ("commands", "jobs", "executors", "examples"):
        for one in orb[kind].values():
            assert one["description"]
            assert all(parameter["description"] for parameter in one.get("parameters", {}).values())


def test_the_job_hands_on_every_parameter_of_the_command() -> None:
    orb = packed(SOURCE)
    of_job, of_command = orb["jobs"]["run"]["parameters"], orb["commands"]["run-steps"]["parameters"]
    assert {name: one for name, one in of_job.items() if name != "executor"} == of_command
    assert orb["jobs"]["run"]["steps"][1]["run-steps"] == {name: f"<< parameters.{name} >>" for name in of_command}


def test_no_parameter_stands_in_a_command() -> None:
    for step in packed(SOURCE)["commands"]["run-steps"]["steps"]:
        assert "<<" not in step.get("run", {}).get("command", "")


def test_a_bucket_needs_no_cache() -> None:
    steps = expanded(packed(SOURCE), "run", {"store": "s3://bucket/x"})["steps"]
    assert [step if isinstance(step, str) else next(iter(step)) for step in steps] == [
        "checkout",
        "run",
        "store_artifacts",
    ]


def test_every_parameter_reaches_the_command_as_it_is(tmp_path: Path) -> None:
    nasty = 'it\'s "q" $HOME `id` $(id) \\ * ; & x'
    told = Machine(tmp_path, command_on_path(tmp_path / "told", SAYS_WHAT_IT_GETS))
    said = {f"SAID_{name}": str(tmp_path / name) for name in ("ARGUMENTS", "ENVIRONMENT", "FILE", "PID")}
    steps = [{"id": "a", "run": f"echo {nasty}\n"}]
    given = {
        "steps": yaml.safe_dump(steps), "job": "release", "store": "s3://bucket/x", "scope": "content", "jobs": 3,
        "exclude": f"*.o\n{nasty}\n", "budget": "50m", "arguments": "--verify\nstat\n",
    }  # fmt: skip
    ended = told.job(given, 41, **said)
    assert ended.code == 0, ended.said
    pairs = list(pairwise((tmp_path / "ARGUMENTS").read_text().split("\0")))
    for pair in [
        ("--job", "release"), ("--store", "s3://bucket/x"), ("--scope", "content"), ("--jobs", "3"),
        ("--exclude", "*.o"), ("--exclude", nasty), ("--budget", "50m"), ("--verify", "stat"),
        ("--logs-dir", "checkpoint-run-logs"),
    ]:  # fmt: skip
        assert pair in pairs
    assert yaml.safe_load((tmp_path / "FILE").read_text()) == {"steps": steps}


@pytest.mark.slow
def test_a_rerun_from_failed_goes_on_from_the_cache(machine: Machine) -> None:
    first = machine.job({"steps": STEPS}, 41, MAY_PASS="no")
    assert first.code == 1, first.said
    assert "test.log" in machine.artifacts
    second = machine.job({"steps": STEPS}, 42, MAY_PASS="no")
    assert second.code == 1
    assert "[1/2] build: restored" in second.said
    third = machine.job({"steps": STEPS}, 43, MAY_PASS="yes")
    assert third.code == 0, third.said
    assert "[1/2] build: restored" in third.said
    assert len(machine.caches) == 3


@pytest.mark.slow
def test_a_rerun_from_start_starts_from_nothing(machine: Machine) -> None:
    assert machine.job({}, 41, MAY_PASS="no").code == 1
    assert "[1/2] build: done" in machine.job({}, 44, "w-2", MAY_PASS="no").said
