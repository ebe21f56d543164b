"""The check of a tag, and the notes of its release."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "release.py"
PACKAGE = '"""Text."""\n\n__version__ = "1.2.3"\n'
CHANGELOG = """\
# Changelog

## [Unreleased]

- Not yet.

## [1.2.3] - 2026-01-31

### Added

- A thing.

## [1.2.2] - 2026-01-01

- Another.
"""


def load() -> Any:
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load()


def test_notes_are_the_section_of_the_version() -> None:
    assert release.notes("v1.2.3", PACKAGE, CHANGELOG) == "### Added\n\n- A thing."


@pytest.mark.parametrize(
    ("tag", "package", "changelog", "message"),
    [
        ("1.2.3", PACKAGE, CHANGELOG, "not of the form"),
        ("v1.2.3rc1", PACKAGE, CHANGELOG, "not of the form"),
        ("v1.2.4", PACKAGE, CHANGELOG, "the package's version is 1.2.3"),
        ("v1.2.3", "", CHANGELOG, "the package's version is none"),
        ("v1.2.3", PACKAGE, "## [Unreleased]\n\n- x\n", "has no section"),
        ("v1.2.3", PACKAGE, "## [1.2.3] - 2026-01-31\n\n## [1.2.2] - 2026-01-01\n\n- x\n", "or an empty one"),
        ("v1.2.3", PACKAGE, "## [1.2.3]\n\n- x\n", "says no date"),
    ],
)
def test_what_does_not_fit_together_is_no_release(tag: str, package: str, changelog: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        release.notes(tag, package, changelog)


def test_runs_as_a_script(tmp_path: Path) -> None:
    (tmp_path / "checkpoint_action").mkdir()
    (tmp_path / "checkpoint_action" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run([*command, "v1.2.3", str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "### Added\n\n- A thing.\n"
    done = subprocess.run([*command, "v9.9.9", str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
