"""Changes that are easily overlooked, or easily taken for others."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.console import Console
from tests.test_what_counts_as_done import echoing, job, leaving, planned, ran

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "here").mkdir()
    return Console(tmp_path / "here")


COMPILES = "{id: compile, run: 'echo compile >>ran; echo symbols >app', outputs: [app]}"


def test_an_input_that_a_need_makes_anew_is_no_reason_of_its_own(console: Console) -> None:
    job(console, leaving("a"), "{id: b, run: 'echo b >>ran', inputs: [a.out]}")
    assert ran(console) == ["a", "b"]
    (console.folder / "a.out").write_text("edited")
    assert planned(console)["b"] == ("needs-changed", "a runs first; skipped after all if it leaves the same")
    assert ran(console) == ["a"]


def test_nor_is_one_that_a_failed_need_left_half(console: Console) -> None:
    script = "echo a >>ran; echo half >a.out; test ! -e broken; echo same >a.out"
    a = f"{{id: a, run: '{script}', outputs: [a.out], always: true}}"
    job(console, a, "{id: b, run: 'echo b >>ran', inputs: [a.out]}")
    assert ran(console) == ["a", "b"]
    (console.folder / "broken").touch()
    assert ran(console, code=1) == ["a"]
    (console.folder / "broken").unlink()
    assert planned(console)["b"][0] == "needs-changed"
    assert ran(console) == ["a"]


def test_a_missing_input_hides_no_other(console: Console) -> None:
    (console.folder / "app").mkdir()
    (console.folder / "tsconfig.json").write_text("1")
    job(console, "{id: a, run: 'echo a >>../ran', working-directory: app, inputs: [tsconfig.json, ../tsconfig.json]}")
    assert ran(console) == ["a"]
    (console.folder / "tsconfig.json").write_text("2")
    assert planned(console)["a"][0] == "inputs-changed"
    assert ran(console) == ["a"]


def test_an_edit_that_is_no_longer_made_is_undone(console: Console) -> None:
    job(console, COMPILES, "{id: strip, run: 'echo strip >>ran; echo bare >app', outputs: [app]}")
    assert ran(console) == ["compile", "strip"]
    job(console, COMPILES, "{id: strip, run: 'echo nothing >>ran'}")
    assert ran(console) == ["compile", "nothing"]
    assert (console.folder / "app").read_text() == "symbols\n"


def test_a_file_of_another_step_is_not_taken_for_ones_own(console: Console) -> None:
    y = "{id: y, run: 'echo y >>ran; echo y >f', outputs: [f], needs: []}"
    job(console, y)
    ran(console)
    job(console, "{id: x, run: 'echo x >>ran; echo x >f', outputs: [f], needs: []}")
    ran(console)
    job(console, y, "{id: x, run: 'echo x >>ran; echo x >g', outputs: [g], needs: []}")
    assert ran(console) == ["y", "x"]
    assert (console.folder / "f").read_text() == "y\n"


def test_the_order_of_exclusions_counts(console: Console) -> None:
    step = "{id: a, run: 'echo a >>ran; mkdir -p d; echo >d/x; echo >d/y', outputs: %s}"
    job(console, step % "['d/**', '!d/y']")
    ran(console)
    job(console, step % "['!d/y', 'd/**']")
    assert planned(console)["a"][0] == "output-changed"


def test_a_link_in_a_folder_counts_with_what_it_leads_to(console: Console) -> None:
    (console.folder / "src").mkdir()
    (console.folder / "shared").write_text("1")
    (console.folder / "src/link").symlink_to("../shared")
    job(console, echoing("a", ", inputs: [src/]"), echoing("b", ", inputs: ['src/**'], needs: []"))
    ran(console)
    (console.folder / "shared").write_text("2")
    assert ran(console) == ["a", "b"]


def test_git_s_variables_do_not_lead_to_another_repository(console: Console, tmp_path: Path) -> None:
    for folder in (console.folder, tmp_path / "other"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (console.folder / ".gitignore").write_text("*.log\n")
    (console.folder / "src").mkdir()
    (console.folder / "src/a.log").touch()
    (console.folder / "src/a.c").touch()
    (tmp_path / "other/.git/info/exclude").write_text("*.c\n")
    job(console, echoing("a", ", inputs: ['src/**']"))
    ran(console)
    assert planned(console, env={"GIT_DIR": str(tmp_path / "other/.git")})["a"] == ("done", "")
