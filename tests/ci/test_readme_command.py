"""The helper that takes commands out of the README."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "readme_command.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("readme_command", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


readme_command = load()

README = """\
# Title

<!-- first command -->
```console
tool --first
tool --second
```

Text about `<!-- test command -->` in a line of its own prose.

<!-- test command -->

~~~~bash
run ```
tests
~~~~
"""


def test_block_directly_below_the_marker() -> None:
    assert readme_command.command(README, "first command") == "tool --first\ntool --second"


def test_blank_lines_other_fences_and_prose_that_names_the_marker() -> None:
    assert readme_command.command(README, "test command") == "run ```\ntests"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found 0"),
        ("<!-- x -->\n```\na\n```\n<!-- x -->\n```\nb\n```\n", "found 2"),
        ("<!-- x -->", "no fenced block"),
        ("<!-- x -->\ntext\n```\na\n```\n", "no fenced block"),
        ("<!-- x -->\n```\na\n", "never closed"),
        ("<!-- x -->\n```\n\n```\n", "is empty"),
    ],
)
def test_anything_doubtful_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        readme_command.command(text, "x")


def test_main_prints_the_command_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README, encoding="utf-8")
    assert readme_command.main(["first command", str(readme)]) == 0
    assert capsys.readouterr() == ("tool --first\ntool --second\n", "")


def test_main_reports_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "README.md"
    assert readme_command.main(["first command", str(missing)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert readme_command.main([]) == 2


def test_runs_as_a_script(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, SCRIPT, "first command", readme], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines() == ["tool --first", "tool --second"]
