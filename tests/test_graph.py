"""``graph``: the steps with what a run would do, in each of its forms."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh")

JOB = """\
job: demo
steps:
- {id: fetch, run: echo x >got}
- {id: build, run: cat got}
- {id: docs, run: "true", needs: []}
- {id: publish, run: "exit 1", needs: [build, docs]}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "checkpoint.yml").write_text(JOB)
    return Console(tmp_path)


def test_text_says_what_a_run_would_do(console: Console) -> None:
    console.run()
    (console.folder / "checkpoint.yml").write_text(JOB.replace("cat got", "cat ./got"))
    shown = console.run("graph")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == (
        "job demo, 4 steps: 2 skip, 2 run\n"
        "1  = fetch    skip\n"
        "1  = docs     skip\n"
        "2  > build    run  < fetch\n"
        "3  > publish  run  < build docs\n"
    )


def test_a_selection_is_what_a_plan_would_make_of_it(console: Console) -> None:
    shown = console.run("graph", "--only", "docs")
    assert shown.stdout == "job demo, 1 step: 1 run\n1  > docs  run\n"
    assert console.run("graph", "docs").stderr.endswith("to choose steps write --only docs\n")


def test_the_terminals_width_is_kept_to(console: Console) -> None:
    steps = "".join(f"- {{id: {'x' * 90}-{n}, run: x}}\n" for n in range(3))
    (console.folder / "checkpoint.yml").write_text(f"steps:\n{steps}")
    for width in (40, 80, 100):
        lines = console.run("graph", env={"COLUMNS": str(width)}).stdout.splitlines()
        assert len(lines) == 4
        assert max(map(len, lines)) <= width


def test_mermaid_and_svg(console: Console) -> None:
    assert console.run("graph", "--format", "mermaid").stdout.startswith(
        'flowchart TD\n  s1["fetch<br/>run: never-ran"]'
    )
    picture = console.run("graph", "--format", "svg", env={"PYTHONIOENCODING": "ascii"})
    root = ET.fromstring(picture.stdout)
    assert len(root.findall("{http://www.w3.org/2000/svg}g")) == 4


def test_flags_make_a_graph_too_and_nothing_is_written(console: Console) -> None:
    (console.folder / "checkpoint.yml").unlink()
    shown = console.run("graph", "--job", "j", "--chain", "--step", "a:true", "--step", "b:true")
    assert shown.stdout == "job j, 2 steps: 2 run\n1  > a  run\n2  > b  run < a\n"
    assert list(console.folder.iterdir()) == []
