"""Files that git ignores come with a restored step, too, and are no inputs of those after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.action.machine import Workflow

STEPS = """\
- id: build
  inputs: [src/**]
  run: mkdir src/out && cp src/main.c src/out/app
- id: test
  inputs: [src/**]
  run: echo ran >> "$KEEP/test"; cat src/out/app
- id: ship
  run: test -e "$KEEP/allow"
"""


@pytest.mark.slow
def test_what_a_restored_step_left_in_an_ignored_folder_runs_no_later_step_again(workflow: Workflow) -> None:
    workflow.sources = {".gitignore": "out/\n", "src/main.c": "int main;\n"}
    workflow.commit_sources()
    assert workflow.run(STEPS).outputs["failed"] == ["ship"]
    (workflow.keep / "allow").touch()
    second = workflow.run(STEPS)
    assert second.outputs["restored"] == ["build"]
    assert second.outputs["skipped"] == ["test"]
    assert second.outputs["ran"] == ["ship"]
    assert workflow.kept("test") == ["ran"]
