"""Where checkpoints are kept with the real act: in its artifacts where it has no cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.act.harness import Act

pytestmark = [pytest.mark.act, pytest.mark.slow]

WORKFLOW = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - id: job
        uses: agenticaotearoa/checkpoint-run@v1
        with:
          STORE
          steps: |
            - id: make
              run: |
                echo ran >> "$KEEP/make"
                mkdir -p out
                head -c 20000000 /dev/urandom > out/random.bin
                sha256sum out/random.bin > out/sum
            - id: check
              run: |
                sha256sum --check out/sum
                test -e "$KEEP/allow"
            - id: zip
              run: echo ran >> "$KEEP/zip"
"""


@pytest.mark.parametrize("store", ["auto", "artifact", "auto with both"])
def test_a_second_machine_restores_from_the_artifacts_of_act(act: Act, tmp_path: Path, store: str) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    workflow = WORKFLOW.replace("STORE", f"store: {store.split(maxsplit=1)[0]}")
    both = store == "auto with both"
    options: dict[str, Any] = {"artifact_server": True, "cache_server": both, "env": {"KEEP": str(keep)}}
    first = act.run(workflow, **options)
    assert first.returncode != 0, first.log
    (keep / "allow").touch()
    second = act.run(workflow, **options)
    assert second.returncode == 0, second.log
    outputs = second.outputs["job"]
    assert (json.loads(outputs["restored"]), json.loads(outputs["ran"])) == (["make"], ["check", "zip"]), second.log
    third = act.run(workflow, **options)  # the same run and attempt for act: its keys must be newer all the same
    assert json.loads(third.outputs["job"]["ran"]) == [], third.log
    assert (keep / "make").read_text() == (keep / "zip").read_text() == "ran\n"
    zips = [path for path in act.artifacts.rglob("*.zip") if not path.name.startswith("checkpoint-run-logs-")]
    assert bool(zips) != both
    assert "::warning" not in third.log
