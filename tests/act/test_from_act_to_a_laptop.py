"""A job that fails under the real act, is pulled home through REST, finished there, and known to the next act run."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.actions_service.server import ActionsService
from tests.actions_service.tokens import make_token
from tests.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.act.harness import Act

pytestmark = [pytest.mark.act, pytest.mark.slow]

JOB = """\
job: release
steps:
  - id: make
    run: mkdir -p out; date +%N > out/made; echo ran >> "$KEEP/make"
  - id: check
    run: echo ran >> "$KEEP/check"; test -e "$KEEP/allow"; echo VERSION=1.2 >> "$GITHUB_ENV"
  - id: zip
    run: echo ran >> "$KEEP/zip"; cat out/made > "zip-$VERSION"
"""

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
          file: checkpoint.yml
          store: ${{ env.STORE }}
          scope: ${{ env.SCOPE }}
          share: release
      - if: always()
        run: cat zip-1.2 >> "$KEEP/zips" || true
"""


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as service:
        yield service


def test_what_failed_in_act_is_finished_at_home_and_skipped_by_the_next_act_run(
    act: Act, service: ActionsService, tmp_path: Path
) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    store = f"file://{tmp_path}/store"
    env = {"KEEP": str(keep), **service.env(token=make_token([("refs/heads/main", 3)], run="run-77.1"))}
    env |= {"STORE": "artifact", "SCOPE": "run"}
    first = act.run(WORKFLOW, files={"checkpoint.yml": JOB}, env=env, run_id=77, cache_server=False)
    assert first.returncode != 0, first.log
    assert json.loads(first.outputs["job"]["failed"]) == ["check"], first.log

    subprocess.run(["git", "clone", "--quiet", str(act.repository), str(tmp_path / "home")], check=True)
    home = Console(tmp_path / "home")
    around = {"KEEP": str(keep), "GITHUB_API_URL": service.rest.url, "GITHUB_TOKEN": "rest-token"}
    pulled = home.run("pull", "--github", "octo/demo", "--run", "77", env=around)
    assert pulled.returncode == 0, pulled.stderr
    assert "make: done, with files put back" in pulled.stdout
    (keep / "allow").touch()
    finished = home.run("run", "--store", store, "--scope", "commit", env={"KEEP": str(keep)})
    assert finished.returncode == 0, finished.stderr
    counts = {step: (keep / step).read_text().count("ran") for step in ("make", "check", "zip")}
    assert counts == {"make": 1, "check": 2, "zip": 1}

    env = {"KEEP": str(keep), "STORE": store, "SCOPE": "commit"}
    second = act.run(WORKFLOW, env=env, run_id=78, cache_server=False)
    assert second.returncode == 0, second.log
    outputs = second.outputs["job"]
    told = [json.loads(outputs[name]) for name in ("ran", "restored", "skipped")]
    assert told == [[], ["make", "zip"], ["check"]], second.log
    assert (keep / "zips").read_text() == (home.folder / "out" / "made").read_text()
    assert {step: (keep / step).read_text().count("ran") for step in counts} == counts
