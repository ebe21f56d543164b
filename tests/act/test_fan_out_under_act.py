"""The reusable workflow that gives each step a job of its own, in the real act."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.act.harness import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.act.harness import Act, ActRun

pytestmark = [pytest.mark.act, pytest.mark.slow]

WORKFLOWS = ROOT / ".github" / "workflows"
CALLER = """
on: push
permissions: {}
jobs:
  build:
    permissions:
      contents: read
    uses: ./.github/workflows/fan-out.yml
    with:
      file: graph.yml
  after:
    needs: build
    runs-on: ubuntu-latest
    permissions: {}
    steps:
      - env:
          RESULT: ${{ needs.build.outputs.result }}
          OUTPUTS: ${{ needs.build.outputs.outputs }}
        run: echo "ended with $RESULT $OUTPUTS"
"""
GRAPH = {
    "fetch-a": [],
    "fetch-b": [],
    "fetch-c": [],
    "build-a": ["fetch-a"],
    "build-b": ["fetch-b"],
    "build-ab": ["fetch-a", "fetch-b"],
    "build-c": ["fetch-c"],
    "test-a": ["build-a", "build-ab"],
    "test-b": ["build-b"],
    "test-c": ["build-c"],
    "pack": ["test-a", "test-b"],
    "docs": ["test-c"],
}


def job_file(graph: Mapping[str, list[str]], only_if: Mapping[str, str] | None = None) -> str:
    """Steps that each write what they found, and where they ran."""
    steps = []
    for name, needs in graph.items():
        found = " ".join(f"out/{need}" for need in needs) or "/dev/null"
        lines = [
            f'echo "$PWD" >> "$KEEP/{name}"',
            *([only_if[name]] if only_if and name in only_if else []),
            "mkdir -p out",
            f'cat {found} > "out/{name}"',
            f'echo {name} >> "out/{name}"',
            f'echo "size=$(wc -l < out/{name} | tr -d " ")" >> "$GITHUB_OUTPUT"',
        ]
        steps.append({"id": name, "needs": needs, "run": "\n".join(lines)})
    return json.dumps({"job": "graph", "steps": steps})


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    folder = tmp_path / "keep"
    folder.mkdir()
    return folder


def fan_out(act: Act, keep: Path, graph: str, *, attempt: int = 1, caller: str = CALLER) -> ActRun:
    # Copies: act looks for the `./` of a called workflow in the caller's repository, GitHub in the called one's.
    names = ("fan-out.yml", "fan-out-level.yml")
    files: dict[str, str] = {f".github/workflows/{name}": (WORKFLOWS / name).read_text("utf-8") for name in names}
    return act.run(caller, files={**files, "graph.yml": graph}, env={"KEEP": str(keep)}, attempt=attempt, timeout=600)


def runs(keep: Path) -> dict[str, list[str]]:
    """By step, the workspaces in which it ran."""
    return {path.name: path.read_text().splitlines() for path in keep.iterdir() if path.name in GRAPH}


def test_twelve_steps_run_once_each_on_machines_of_their_own_and_never_again(act: Act, keep: Path) -> None:
    first = fan_out(act, keep, job_file(GRAPH))
    assert first.returncode == 0, first.log
    places = runs(keep)
    assert {step: len(where) for step, where in places.items()} == dict.fromkeys(GRAPH, 1), first.log
    assert len({where[0] for where in places.values()}) == len(GRAPH), "each has a workspace of its own"
    ended = re.search(r"ended with success (\{.*\})", first.log)
    assert ended, first.log
    sizes: dict[str, Any] = json.loads(ended[1])
    assert sizes["pack"] == {"size": "10"}
    assert sizes.keys() == GRAPH.keys()

    second = fan_out(act, keep, job_file(GRAPH), attempt=2)
    assert second.returncode == 0, second.log
    assert runs(keep) == places


BROKEN = {"build-b": 'test -e "$KEEP/allow"'}


def test_a_failed_step_stops_what_follows_and_a_rerun_does_only_what_is_left(act: Act, keep: Path) -> None:
    first = fan_out(act, keep, job_file(GRAPH, BROKEN))
    assert first.returncode != 0, first.log
    level = {"fetch-a", "fetch-b", "fetch-c", "build-a", "build-b", "build-ab", "build-c"}
    assert runs(keep).keys() == level, "the others of its level came to their ends, and nothing after it ran"
    assert not (keep / "after").exists()

    (keep / "allow").touch()
    second = fan_out(act, keep, job_file(GRAPH, BROKEN), attempt=2)
    assert second.returncode == 0, second.log
    assert {step: len(where) for step, where in runs(keep).items()} == dict.fromkeys(GRAPH, 1) | {"build-b": 2}


def test_what_is_below_the_last_level_runs_in_the_last_job(act: Act, keep: Path) -> None:
    names = [name for name in GRAPH if name != "docs"]
    chain = {name: names[at - 1 : at] if at else [] for at, name in enumerate(names)}
    done = fan_out(act, keep, job_file(chain))
    assert done.returncode == 0, done.log
    places = runs(keep)
    assert {step: len(where) for step, where in places.items()} == dict.fromkeys(names, 1)
    assert len({places[name][0] for name in names[8:]}) == 1
    assert len({places[name][0] for name in names}) == 9
