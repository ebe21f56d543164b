"""The workflow that uses the action on this repository: as much of it as runs on this machine."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.act.harness import ROOT

if TYPE_CHECKING:
    from tests.act.harness import Act

pytestmark = [pytest.mark.act, pytest.mark.slow]

WORKFLOWS = ROOT / ".github" / "workflows"


def load(name: str) -> dict[Any, Any]:
    content = yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))
    assert isinstance(content, dict)
    return content


def test_second_machine_goes_on_where_the_first_was_lost(act: Act) -> None:
    calling, called = load("ci.yml"), load("self-test.yml")
    calling["jobs"] = {name: calling["jobs"][name] for name in ("lose", "resume")}
    for job in calling["jobs"].values():
        assert job["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
        job["strategy"]["matrix"]["os"] = ["ubuntu-latest"]
    if shutil.which("pwsh") is None:
        del called["jobs"]["powershell"]
    shutil.copytree(act.action, act.repository, dirs_exist_ok=True)
    shutil.rmtree(act.repository / ".github")
    workflow = yaml.safe_dump(calling, allow_unicode=True).replace("true:", "on:", 1)
    assert "\non:" in workflow

    files = {".github/workflows/self-test.yml": yaml.safe_dump(called, allow_unicode=True).replace("true:", "on:", 1)}
    done = act.run(workflow, files=files)
    assert done.returncode == 0, done.log
    assert "Attempt: lose" in done.log
    assert 'failure failure ["make","refine","last"] ["last"]' in done.log
    assert "Attempt: resume" in done.log
    assert 'success success ["last"] ["make","refine"]' in done.log
