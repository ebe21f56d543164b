"""Files that git ignores count as inputs only where a pattern names them."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, lines_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def console(tmp_path: Path) -> Console:
    """A checkout with tracked, untracked and ignored files."""
    git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text("build/\n*.log\n!kept.log\n")
    for name in ("src/tracked.c", "src/new.c", "src/x.log", "src/kept.log", "build/deep/a.o", "tracked.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    git(tmp_path, "add", ".gitignore", "src/tracked.c")
    git(tmp_path, "add", "--force", "tracked.log")
    return Console(tmp_path)


def counted(console: Console, inputs: str, folder: str = ".") -> set[str]:
    """What counts as input of a step that has run."""
    text = f"job: job\nsteps:\n- {{id: a, run: 'true', working-directory: {folder}, inputs: {inputs}}}\n"
    (console.folder / "job.yml").write_text(text)
    assert console.run("-f", "job.yml", "--force").returncode == 0
    parts = console.state("job")["a"]["parts"]
    return {
        name.removeprefix("input ")
        for name, value in parts.items()
        if name.startswith("input ") and value not in ("missing", "ignored")
    }


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ('["src/**"]', {"src/tracked.c", "src/new.c", "src/kept.log"}),
        ("[src]", {"src/tracked.c", "src/new.c", "src/kept.log"}),
        ('["src/**", src/x.log]', {"src/tracked.c", "src/new.c", "src/kept.log", "src/x.log"}),
        ("[src/x.log]", {"src/x.log"}),
        ("[./src/x.log]", {"src/x.log"}),
        ("[build/deep/a.o]", {"build/deep/a.o"}),
        ('["build/**"]', {"build/deep/a.o"}),
        ('["build/deep/*.o"]', {"build/deep/a.o"}),
        ("[build]", {"build/deep/a.o"}),
        ("[build/]", {"build/deep/a.o"}),
        ("[.git/HEAD]", {".git/HEAD"}),
        ('["**"]', {".gitignore", "job.yml", "src/tracked.c", "src/new.c", "src/kept.log", "tracked.log"}),
        ("[.]", {".gitignore", "job.yml", "src/tracked.c", "src/new.c", "src/kept.log", "tracked.log"}),
        ('["*.log"]', {"tracked.log"}),
        ('["**/*.o"]', set()),
        ('["**/*.o", "!build"]', set()),
        ('["src/**", "!src/new.c"]', {"src/tracked.c", "src/kept.log"}),
    ],
)
def test_which_files_count(console: Console, inputs: str, found: set[str]) -> None:
    assert counted(console, inputs) == found


def test_in_a_folder_of_the_checkout_the_same_holds(console: Console) -> None:
    assert counted(console, '["*"]', folder="src") == {"src/tracked.c", "src/new.c", "src/kept.log"}


def test_without_a_checkout_all_files_count(console: Console) -> None:
    shutil.rmtree(console.folder / ".git")
    assert counted(console, '["src/**"]') == {"src/tracked.c", "src/new.c", "src/kept.log", "src/x.log"}


def test_whoever_works_in_an_ignored_folder_means_it(console: Console) -> None:
    inner = Console(console.folder / "build")
    assert counted(inner, '["deep/**"]') == {"deep/a.o"}
    inner = Console(console.folder / "build" / "deep")
    assert counted(inner, '["*.o"]') == {"a.o"}


def test_a_changed_ignored_file_runs_nothing_and_a_no_longer_ignored_one_does(console: Console) -> None:
    counted(console, '["src/**"]')
    (console.folder / "src" / "x.log").write_text("changed")
    assert lines_of(console.run("-f", "job.yml", "--json").stdout)[-1]["skipped"] == ["a"]
    (console.folder / ".gitignore").write_text("build/\n")
    (row,) = json.loads(console.run("plan", "-f", "job.yml", "--json").stdout)["steps"]
    assert (row["reason"], row["detail"].split(":")[0]) == ("inputs-changed", "src/x.log")


def test_a_step_that_changes_what_is_ignored_is_seen_by_the_next(console: Console) -> None:
    (console.folder / "job.yml").write_text(
        "job: job\nsteps:\n- {id: a, run: 'echo > .gitignore'}\n- {id: b, inputs: ['src/*'], run: 'true'}\n"
    )
    assert console.run("-f", "job.yml").returncode == 0
    assert "input src/x.log" in console.state("job")["b"]["parts"]


def test_a_step_that_writes_ignored_files_among_its_inputs_is_skipped_next_time(console: Console) -> None:
    (console.folder / "job.yml").write_text(
        "job: job\nsteps:\n- {id: a, inputs: ['**'], run: 'date +%N >> build/out; date +%N >> out.log'}\n"
    )
    assert console.run("-f", "job.yml").returncode == 0
    assert lines_of(console.run("-f", "job.yml", "--json").stdout)[-1]["skipped"] == ["a"]


@pytest.mark.parametrize("name", ["a b.log", "ü.log", "new\nline.log", '"quoted".log', "-dash.log"])
def test_odd_names_are_known_as_ignored(console: Console, name: str) -> None:
    (console.folder / "src" / name).write_text("x")
    assert counted(console, '["src/*"]') == {"src/tracked.c", "src/new.c", "src/kept.log"}


def test_without_a_checkout_of_its_own_a_nested_one_counts_without_what_git_keeps(console: Console) -> None:
    inner = console.folder / "src" / "nested"
    inner.mkdir()
    git(inner, "init")
    (inner / "a.c").write_text("a")
    assert counted(console, '["src/nested/**"]') == {"src/nested/a.c"}


@pytest.mark.parametrize("inputs", ["['src/*.log', src/new.c, '!src/kept.log']", "['**/*.o']"])
def test_a_pattern_that_matches_only_ignored_files_is_said(console: Console, inputs: str) -> None:
    (console.folder / "job.yml").write_text(f"job: job\nsteps:\n- {{id: a, inputs: {inputs}, run: 'true'}}\n")
    done = console.run("-f", "job.yml")
    assert done.returncode == 0
    assert "matches only files that git ignores; they count where a pattern names them" in done.stderr


def test_what_git_keeps_is_no_output_unless_it_is_named(console: Console) -> None:
    (console.folder / "job.yml").write_text("job: job\nsteps:\n- {id: a, outputs: [.], run: 'true'}\n")
    assert console.run("-f", "job.yml").returncode == 0
    paths = {entry["path"] for entry in console.state("job")["a"]["layer"]["entries"]}
    assert "src/new.c" in paths
    assert not [path for path in paths if path == ".git" or path.startswith(".git/")]
