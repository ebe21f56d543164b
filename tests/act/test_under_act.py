"""The script with which people try a workflow on their own machine: as documented, with the real act."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.act.harness import ROOT
from tests.act.proxy import free_port

SCRIPT = ROOT / "examples" / "workflows" / "under-act.sh"
# For the commands of the workflow in the README.
MAKEFILE = """
out/app:
\tmkdir out; echo made >$@; echo built >>"$(KEEP)/built"
test: out/app
\tgrep made out/app; grep -q fine state
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its commands are those of Linux")


def call(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPT), *words],
        cwd=folder,
        env={"PATH": path, "LANG": "C.UTF-8", "HOME": str(folder.parent / "home"), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Octo", "-c", "user.email=octo@example.com", "-c", "commit.gpgsign=false"]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(
        ["git", "-C", str(folder), *who, *words],
        env=env, check=True, input=str(folder), capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of somebody else with the workflow of the README, and one commit."""
    folder = tmp_path / "demo"
    (folder / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    readme = (ROOT / "README.md").read_text("utf-8")
    workflow = re.search(r"<!-- workflow -->\n```yaml\n(.*?)\n```", readme, re.DOTALL)
    assert workflow is not None
    (folder / ".github" / "workflows" / "ci.yml").write_text(workflow[1])
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "state").write_text("bad\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


@pytest.mark.act
@pytest.mark.slow
def test_a_run_that_failed_goes_on_at_the_next_call(repository: Path, tmp_path: Path, tool_cache: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    cache, keep = tmp_path / "cache", tmp_path / "keep"
    keep.mkdir()
    number = git(repository, "hash-object", "--stdin")[:8]
    actions = cache / "checkpoint-run-act" / f"demo-{number}" / "actions"
    actions.mkdir(parents=True)
    (actions / "tool_cache").symlink_to(tool_cache)

    def again(*words: str) -> subprocess.CompletedProcess[str]:
        port = str(free_port())
        own = ["--artifact-server-port", port, "--env", f"KEEP={keep}", "--pull=false"]
        return call(
            repository, "--here", *words, ".github/workflows/ci.yml", "--", *own,
            XDG_CACHE_HOME=str(cache), HTTPS_PROXY="http://127.0.0.1:9", NO_PROXY="127.0.0.1,localhost",
        )  # fmt: skip

    first = again()
    assert first.returncode != 0, first.stdout + first.stderr
    assert "it goes on with attempt 2" in first.stderr
    (repository / "state").write_text("fine\n")
    second = again()
    assert second.returncode == 0, second.stdout + second.stderr
    assert "run 1, attempt 2" in second.stdout
    assert "[1/2] build: restored" in second.stdout
    assert "[2/2] test: done" in second.stdout
    assert (keep / "built").read_text() == "built\n"
    third = again()
    assert "run 2, attempt 1" in third.stdout, "what is done is not gone on with"
    assert (keep / "built").read_text() == "built\n" * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name the workflow: under-act.sh .github/workflows/ci.yml"),
        (("none.yml",), "there is no file 'none.yml' here"),
        (("--hear", "ci.yml"), "unknown option '--hear'; options of act stand behind --"),
        (("--event",), "--event needs a name: --event workflow_dispatch"),
        (("a.yml", "b.yml"), "one workflow at a time; leave 'b.yml' out"),
    ],
)
def test_a_mistake_is_one_line(repository: Path, words: tuple[str, ...], said: str) -> None:
    ended = call(repository, *words)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"under-act.sh: {said}\n")


def test_without_a_commit_nothing_is_tried(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "ci.yml").write_text("")
    git(folder, "init", "--quiet")
    ended = call(folder, "ci.yml")
    assert (ended.returncode, "git commit first" in ended.stderr) == (2, True)
