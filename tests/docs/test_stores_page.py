"""The example on the page about stores does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console import PROGRAM, environment

PAGE = Path(__file__).parents[2] / "docs" / "stores.md"
EXAMPLE = re.compile(
    r'title="checkpoint.yml"\n(?P<job>.*?)^```\n\n```sh\n(?P<commands>.*?)^```', re.MULTILINE | re.DOTALL
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
def test_two_machines_go_on_with_one_job(tmp_path: Path) -> None:
    found = EXAMPLE.search(PAGE.read_text("utf-8"))
    assert found is not None
    (tmp_path / "checkpoint.yml").write_text(found["job"])
    env = environment()
    env["PATH"] = f"{PROGRAM.parent}:{env['PATH']}"
    ended = subprocess.run(
        ["bash", "-e", "-c", found["commands"]],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.splitlines()
    assert said[0] == "count failed on machine one"
    assert [line.split() for line in said if re.match("(list|count) +(skip|run)", line)] == [
        ["list", "skip", "done"],
        ["count", "skip", "done"],
    ]
    assert re.search(r"\[1/2\] list: restored.*\[2/2\] count: done", ended.stderr, re.DOTALL)
    assert (tmp_path / "one" / "count").read_text().strip() == "10000"
    assert said[-1].startswith("the folder ")
