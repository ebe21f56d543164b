"""The one table of all benchmarks: what each line says, and where it is written. What is measured decides nothing."""

from __future__ import annotations

import json
import shutil
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as table
from benchmarks import machine, startup, store
from benchmarks.lines import Line, at_most, below, faster, more_at_most, speed_at_least
from benchmarks.report import BEGIN, END, Outcome, as_json, in_place, markdown
from tests.peers.npm import node  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.lines import Goal
    from tests.peers.npm import Node

OTHERS = [name for name in table.NAMES if name != "store"]  # that one is given the installed official client


@pytest.mark.parametrize(
    ("goal", "ours", "theirs", "reached"),
    [
        (at_most(1.5), 3.0, 2.0, True),
        (at_most(1.5), 3.1, 2.0, False),
        (at_most(1.5), 3.0, None, None),
        (faster(), 1.9, 2.0, True),
        (faster(), 2.0, 2.0, False),
        (speed_at_least(0.8), 2.5, 2.0, True),
        (speed_at_least(0.8), 2.6, 2.0, False),
        (more_at_most(0.25), 2.25, 2.0, True),
        (more_at_most(0.25), 2.5, 2.0, False),
        (more_at_most(0.25), 2.5, None, None),
        (below(200), 199.0, None, True),
        (below(200), 200.0, 500.0, False),
        (None, 1.0, 2.0, None),
    ],
)
def test_when_a_goal_is_reached(goal: Goal | None, ours: float, theirs: float | None, reached: bool | None) -> None:
    assert Line(work="w", ours=ours, theirs=theirs, goal=goal).reached is reached


LINES = (
    Line(work="trot", peer="cat | horse 1.2", ours=1.5, theirs=1.0, goal=at_most(1.4), load=0.26),
    Line(work="trot", peer="ox 3.0", ours=0.02, theirs=0.5, goal=faster(), load=0.26),
    Line(work="carry", peer="cart 7", ours=2.0, theirs=1.0, goal=speed_at_least(0.8)),
    Line(work="rise", peer="lark", ours=0.5, theirs=0.004, goal=more_at_most(0.3), note="cold"),
    Line(work="eat", ours=12.25, goal=below(200), unit="MiB", load=3.0),
    Line(work="fall", peer="mule 1", ours=0, theirs=3, goal=below(1), unit="faults"),
    Line(work="see", peer="hawk 1", ours=120.0, theirs=60.0),
    Line(work="see", peer="owl", ours=120.0, goal=faster()),
)


def test_the_table_says_all_of_each_line() -> None:
    outcomes = [Outcome("farm", LINES, 90.0), Outcome("sea", (), 30.0, "no | water")]
    text = markdown(outcomes, {"cores": "2", "Python": "3.12"}, "2026-01-01 00:00 UTC", "python -m benchmarks")
    head, how, rows = text.split("\n\n")
    assert head == "Begun 2026-01-01 00:00 UTC; took 2 minutes. cores: 2; Python: 3.12."
    assert how == "Repeat it with `python -m benchmarks`. Goals reached: 3 of 7; without the peer: 1."
    assert rows.splitlines() == [
        "| work | beside | ours | theirs | ratio | goal | reached | load |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | ---: |",
        r"| trot | cat \| horse 1.2 | 1.50 s | 1.00 s | 1.50 | at most 1.4 | **no** | 0.3 |",
        "| trot | ox 3.0 | 20.0 ms | 500 ms | 0.04 | less time | yes | 0.3 |",
        "| carry | cart 7 | 2.00 s | 1.00 s | 2.00 | throughput at least 0.8, so at most 1.25 | **no** |  |",
        "| rise (cold) | lark | 500 ms | 4.000 ms | +0.50 s | at most 0.3 s more | **no** |  |",
        "| eat |  | 12.2 MiB |  |  | under 200 MiB | yes | 3.0 |",
        "| fall | mule 1 | 0 | 3 | 0.00 | fewer than 1 | yes |  |",
        "| see | hawk 1 | 120.00 s | 60.00 s | 2.00 |  |  |  |",
        "| see | owl | 120.00 s |  |  | less time | no such peer here |  |",
        r"| `benchmarks.sea` |  |  |  |  |  | **not measured**: no \| water |  |",
    ]


def test_the_same_for_programs() -> None:
    said = json.loads(json.dumps(as_json([Outcome("farm", LINES[:1], 2.0)], {"cores": "2"}, "today")))
    assert said == {
        "begun": "today",
        "machine": {"cores": "2"},
        "benchmarks": [
            {
                "name": "farm",
                "seconds": 2.0,
                "fault": None,
                "lines": [
                    {
                        "work": "trot",
                        "peer": "cat | horse 1.2",
                        "ours": 1.5,
                        "theirs": 1.0,
                        "unit": "s",
                        "ratio": 1.5,
                        "goal": {"kind": "ratio", "bound": 1.4},
                        "reached": False,
                        "load": 0.26,
                        "note": None,
                    }
                ],
            }
        ],
    }


def test_the_text_goes_between_the_markers_and_nowhere_else() -> None:
    page = f"# Speed\n\n{BEGIN}\nold\n{END}\n\nDetails.\n"
    once = in_place(page, "new")
    assert once == f"# Speed\n\n{BEGIN}\n\nnew\n\n{END}\n\nDetails.\n"
    assert in_place(once, "new") == once
    for broken in ("no marker", f"{END}{BEGIN}", page + page):
        with pytest.raises(ValueError, match="the page needs one line"):
            in_place(broken, "new")


def test_the_documentation_has_the_markers() -> None:
    page = table.PAGE.read_text("utf-8")
    assert in_place(page, "new") != page


def test_the_machine_is_described(tmp_path: Path) -> None:
    told = machine.describe(tmp_path)
    assert {"checkpoint-run", "processor", "cores", "system", "kernel", "Python"} <= set(told)
    assert all(told.values())


def test_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert table.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(table.NAMES)
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("words", [["--write", "--only", "startup"], ["--write", "--quick"], ["--only", "no"]])
def test_the_page_has_one_table_of_one_whole_run(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        table.main(words)
    assert "error: " in capsys.readouterr().err


def test_what_is_measured_is_printed_written_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table, "NAMES", ("startup", "store"))
    monkeypatch.setattr(startup, "lines", lambda **_: [LINES[1]])
    monkeypatch.setattr(store, "lines", lambda **_: [LINES[4]])
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text(f"# Speed\n{BEGIN}\n{END}\n")
    assert table.main([]) == 0
    printed = capsys.readouterr().out
    assert "| trot | ox 3.0 |" in printed
    assert table.main(["--write", "--json", str(figures)], page) == 0
    assert "| trot | ox 3.0 |" in page.read_text()
    assert "| eat |" in page.read_text()
    assert capsys.readouterr().out == ""
    assert [one["name"] for one in json.loads(figures.read_text())["benchmarks"]] == ["startup", "store"]


@pytest.mark.parametrize("fault", [SystemExit("no npm here\nat all"), ValueError("no npm here"), SystemExit()])
def test_one_that_cannot_be_measured_is_said_so_and_the_others_are(
    fault: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> list[Line]:
        raise fault

    monkeypatch.setattr(table, "NAMES", ("store", "startup"))
    monkeypatch.setattr(store, "lines", fail)
    monkeypatch.setattr(startup, "lines", lambda **_: [LINES[1]])
    assert table.main([]) == 1
    out = capsys.readouterr().out
    assert f"| **not measured**: {'no npm here' if fault.args else 'SystemExit'} |" in out
    assert "| trot | ox 3.0 |" in out


def test_a_missed_goal_shows_in_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "NAMES", ("startup",))
    monkeypatch.setattr(startup, "lines", lambda **_: [LINES[0]])
    assert table.main([]) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the contestants are started by a shell")
@pytest.mark.parametrize("name", OTHERS)
def test_each_gives_its_lines(name: str, tmp_path: Path) -> None:
    lines: list[Line] = import_module(f"benchmarks.{name}").lines(folder=tmp_path, quick=True)
    check(lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the archives need tar and zstd")
@pytest.mark.skipif(not all(map(shutil.which, ("tar", "zstd", "curl"))), reason="a contestant is missing")
def test_the_stores_lines(tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    shutil.copytree(node.folder, tmp_path / "npm", symlinks=True)
    monkeypatch.setattr(store, "_NPM", tmp_path / "npm")
    lines = store.lines(folder=tmp_path, quick=True)
    check(lines)
    assert len(lines) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["npm"]


def check(lines: list[Line]) -> None:
    assert lines
    assert any(line.goal is not None for line in lines)
    for line in lines:
        assert line.work
        assert line.unit != "s" or line.ours > 0
        assert line.theirs is None or line.peer
    assert len({(line.work, line.peer, line.unit) for line in lines}) == len(lines)
