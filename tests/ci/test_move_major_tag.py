"""The script that moves the tag `v1`, with a `gh` that answers from a list and writes down what it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

WORKFLOW = Path(__file__).resolve().parents[2] / ".github" / "workflows" / "move-major-tag.yml"
GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$FOLDER/asked"
case "$*" in
*releases/tags/*) cat "$FOLDER/unfinished" ;;
*commits/tags/*) echo 0123abc ;;
*git/ref/tags/*) cat "$FOLDER/before" ;;
esac
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a script of an Ubuntu runner")


def move(folder: Path, release: str, *, before: str = "", unfinished: str = "false") -> tuple[int, str, list[str]]:
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    (folder / "unfinished").write_text(unfinished)
    if before:
        (folder / "before").write_text(before)
    [step] = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["move"]["steps"]
    env = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "FOLDER": str(folder),
        "RELEASE": release,
        "GITHUB_REPOSITORY": "octo/demo",
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    asked = (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []
    return done.returncode, done.stdout, [line for line in asked if "--method" in line]


def test_tag_that_is_there_is_moved(tmp_path: Path) -> None:
    code, said, changes = move(tmp_path, "v1.2.3", before="fedcba9")
    assert code == 0
    assert "v1: fedcba9 → 0123abc (v1.2.3)" in said
    [change] = changes
    assert "--method PATCH repos/octo/demo/git/refs/tags/v1 --raw-field sha=0123abc --field force=true" in change


def test_tag_that_is_not_there_is_made(tmp_path: Path) -> None:
    code, said, changes = move(tmp_path, "v2.0.0")
    assert code == 0
    assert "v2: nothing → 0123abc (v2.0.0)" in said
    [change] = changes
    assert "--method POST repos/octo/demo/git/refs --raw-field ref=refs/tags/v2 --raw-field sha=0123abc" in change


@pytest.mark.parametrize("release", ["1.2.3", "v1", "main", "v1.2.3-rc1", "v1.2.3; true", "v1.2.3\nv1.2.4"])
def test_anything_but_a_release_moves_nothing(tmp_path: Path, release: str) -> None:
    code, said, changes = move(tmp_path, release, before="fedcba9")
    assert (code, changes) == (1, [])
    assert "::error::" in said


def test_pre_release_moves_nothing(tmp_path: Path) -> None:
    code, said, changes = move(tmp_path, "v1.2.3", before="fedcba9", unfinished="true")
    assert (code, changes) == (1, [])
    assert "pre-release" in said
