"""The copies of the script for other CI systems."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "integrations.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("integrations", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


integrations = load()


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the files that take part."""
    for path in ("checkpoint_action/__init__.py", *integrations.copies(ROOT)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    monkeypatch.setattr(integrations, "ROOT", tmp_path)
    return tmp_path


def test_the_copies_are_those_of_this_version(sources: Path) -> None:
    assert integrations.main(["--check"]) == 0


def test_a_stale_copy_is_named_and_made_anew(sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = sources / "integrations" / "run.sh"
    script.write_text(script.read_text().replace("set -eu\n", "set -eu # or so\n"))
    assert integrations.main(["--check"]) == 1
    stale = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in stale] == [
        "integrations/circleci/src/scripts/run.sh",
        "integrations/jenkins/resources/checkpoint-run/run.sh",
        "templates/checkpoint-run.yml",
    ]
    assert integrations.main([]) == 0
    assert integrations.main(["--check"]) == 0
    assert "set -eu # or so" in (sources / "templates" / "checkpoint-run.yml").read_text()


def test_another_version_makes_all_of_them_stale(sources: Path) -> None:
    package = sources / "checkpoint_action" / "__init__.py"
    package.write_text('__version__ = "7.8.9"\n')
    assert integrations.main(["--check"]) == 1
    assert integrations.main([]) == 0
    assert all("release=7.8.9\n" in (sources / path).read_text() for path in integrations.copies(sources))


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("checkpoint_action/__init__.py", "", "checkpoint_action/__init__.py says no version"),
        ("integrations/run.sh", "set -eu\n", "integrations/run.sh has 0 lines with the release"),
        ("templates/checkpoint-run.yml", "a: b\n", "templates/checkpoint-run.yml has 0 places for the script"),
    ],
)
def test_a_file_without_its_place_is_an_error(
    sources: Path, capsys: pytest.CaptureFixture[str], path: str, text: str, message: str
) -> None:
    (sources / path).write_text(text)
    assert integrations.main([]) == 1
    assert capsys.readouterr().err.strip() == message
