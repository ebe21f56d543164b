"""The tutorial does what it says: its commands, in their order, print what stands below them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console import PROGRAM, environment

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the tutorial is for a POSIX shell")
def test_the_commands_of_the_tutorial_print_what_it_shows(tmp_path: Path) -> None:
    env = environment()
    env["PATH"] = f"{PROGRAM.parent}:{env['PATH']}"
    printed: str | None = None
    shown = 0
    for block in BLOCK.finditer(PAGE.read_text("utf-8")):
        text = block["text"]
        if block["title"]:
            (tmp_path / block["title"]).write_text(text)
        elif block["kind"] == "sh":
            assert printed in (None, ""), f"nothing on the page shows: {printed}"
            ended = subprocess.run(
                ["bash", "-c", text],
                cwd=tmp_path,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert ended.returncode == 0, f"{text}\n{ended.stdout}\n{ended.stderr}"
            printed = ended.stdout
        elif block["kind"] == "text":
            pattern = ".*?".join(re.escape(part) for part in text.split("…"))
            assert printed is not None
            assert re.fullmatch(pattern, printed), f"the page shows:\n{text}\nprinted was:\n{printed}"
            printed, shown = None, shown + 1
    assert shown >= 10
    assert (tmp_path / "report.txt").read_text().count("\n") == 5
