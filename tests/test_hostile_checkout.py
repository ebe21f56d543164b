"""A checkout that anybody may have made: looking at its job runs nothing that it brings along."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, environment

if TYPE_CHECKING:
    from pathlib import Path

JOB = "job: x\nsteps:\n- id: a\n  run: 'true'\n  inputs: ['**']\n- id: b\n  run: 'true'\n  outputs: ['*.out']\n"
LOOKS = [
    ("plan",),
    ("plan", "--verify", "stat"),
    ("plan", "--scope", "content", "--store", "file:///nowhere-at-all"),
    ("status",),
    ("graph",),
    ("doctor",),
]

posix = pytest.mark.skipif(sys.platform == "win32", reason="what git would run is a command for sh")


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=Octo", "-c", "user.email=octo@example.com"]
    env = environment({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull})
    subprocess.run(
        ["git", *who, *words], cwd=folder, env=env, check=True, stdin=subprocess.DEVNULL, capture_output=True
    )


def booby_trap(repository: Path, canary: Path) -> None:
    """Have the repository's settings name programs for all that git may do when it lists files."""
    hooks = repository.parent / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (hooks / name).chmod(0o755)
    git(repository, "config", "core.hooksPath", str(hooks))
    git(repository, "config", "core.pager", f"touch {canary}")
    git(repository, "config", "diff.external", f"touch {canary}")
    git(repository, "config", "core.fsmonitor", f"touch {canary}; false")


def looked(folder: Path, words: tuple[str, ...]) -> None:
    ended = Console(folder).run(*words, env={"HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"})
    assert ended.returncode in (0, 2), ended.stderr
    assert "Traceback" not in ended.stderr


@posix
@pytest.mark.slow
@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_repositorys_settings_run_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    work = tmp_path / "work"
    git(tmp_path, "init", "--quiet", str(work))
    (work / "checkpoint.yml").write_text(JOB)
    (work / ".gitignore").write_text("*.out\n")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "--message", "first")
    (work / "b.out").write_text("ignored")
    booby_trap(work, tmp_path / "canary")
    looked(work, words)
    assert not (tmp_path / "canary").exists()


@posix
@pytest.mark.slow
@pytest.mark.parametrize("words", LOOKS[:3], ids=" ".join)
def test_a_folder_that_only_looks_like_a_repository_runs_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A clone can bring one along as plain files."""
    work = tmp_path / "work"
    git(tmp_path, "init", "--quiet", "--bare", str(work))
    git(work, "config", "core.bare", "false")
    git(work, "config", "core.worktree", str(work))
    (work / "checkpoint.yml").write_text(JOB)
    booby_trap(work, tmp_path / "canary")
    looked(work, words)
    assert not (tmp_path / "canary").exists()


@pytest.mark.slow
@pytest.mark.parametrize("words", [("plan",), ("status",), ("run",)], ids=" ".join)
def test_its_python_files_are_no_modules_of_ours(tmp_path: Path, words: tuple[str, ...]) -> None:
    for name in ("yaml", "signal", "psutil", "argparse", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the checkout')\n")
    (tmp_path / "checkpoint.yml").write_text(JOB.replace("outputs: ['*.out']", "outputs: []"))
    for start in ([sys.executable, "-m", "checkpoint_action"], [sys.executable, "-P", "-m", "checkpoint_action"]):
        if "-P" in start and sys.version_info < (3, 11):
            continue
        done = subprocess.run(
            [*start, *words],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
