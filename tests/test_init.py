"""``init``: a job file from what is there, written once and never over another."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.console import Console, plain

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture
def console(tmp_path: Path) -> Console:
    folder = tmp_path / "here"
    folder.mkdir()
    return Console(folder)


def put(console: Console, name: str, text: str) -> None:
    path = console.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.slow
def test_an_empty_folder_gets_an_example_that_runs(console: Console) -> None:
    made = console.run("init")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == (
        "checkpoint-run: wrote checkpoint.yml with 3 steps; "
        "found no Makefile, shell script or workflow here, so this is an example\n"
        "checkpoint-run: look it through, then: checkpoint-run plan\n"
    )
    assert "prepare  run      never-ran" in console.run("plan").stdout
    if sys.platform != "win32":
        assert console.run().returncode == 0
        assert console.run("plan").stdout.count("skip     done") == 3


def test_a_makefile_comes_before_scripts_and_workflows_and_the_others_are_named(console: Console) -> None:
    put(console, "run.sh", "make a\nmake b\n")
    put(console, ".github/workflows/ci.yml", "jobs: {a: {steps: [{run: x}]}}\n")
    put(console, "Makefile", "all: a b\na:\n\ttouch a\nb: a\n\ttouch b\n")
    made = console.run("init")
    assert made.stdout == (
        "checkpoint-run: wrote checkpoint.yml with 2 steps; took Makefile; "
        "'init FILE' takes another: run.sh, .github/workflows/ci.yml\n"
        "checkpoint-run: look it through, then: checkpoint-run plan\n"
    )
    if shutil.which("make"):
        assert console.run().returncode == 0
        assert (console.folder / "b").exists()
        (console.folder / "a").unlink()
        assert "a  run      output-missing" in console.run("plan").stdout


def test_a_target_of_the_makefile_can_be_named(console: Console) -> None:
    put(console, "Makefile", "all: a\na:\n\ttouch a\nb:\n\ttouch b\n")
    assert console.run("init", "--target", "b").returncode == 0
    text = (console.folder / "checkpoint.yml").read_text()
    assert "run: make b\n" in text
    assert "targets that are not in it: all, a " in text


def test_a_file_that_can_not_be_taken_gives_way_to_the_next(console: Console) -> None:
    put(console, "Makefile", "X = 1\n")
    put(console, "go.sh", "echo\n")
    assert "took go.sh; 'init FILE' takes another: Makefile\n" in console.run("init").stdout


def test_the_name_of_the_job_and_of_the_file_can_be_given(console: Console) -> None:
    put(console, "a.sh", "echo hi\n")
    put(console, "flow.yml", "jobs: {one: {steps: [{run: x}]}, two: {steps: [{run: y}]}}\n")
    made = console.run("init", "a.sh", "-f", "other.yml", "--job", "mine")
    assert made.returncode == 0
    assert made.stdout.endswith("look it through, then: checkpoint-run plan -f other.yml\n")
    assert "#   checkpoint-run -f other.yml " in (console.folder / "other.yml").read_text()
    assert "\njob: mine\n" in (console.folder / "other.yml").read_text()
    assert console.run("init", "--job", "two", "flow.yml").returncode == 0
    assert "run: y\n" in (console.folder / "checkpoint.yml").read_text()


def test_nothing_is_ever_written_over_without_a_word(console: Console) -> None:
    put(console, "checkpoint.yaml", "mine\n")
    refused = console.run("init")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "checkpoint-run: error CPR114: init: checkpoint.yaml is there already; "
        "give --overwrite, or another name with -f FILE\n"
    )
    assert [path.name for path in console.folder.iterdir()] == ["checkpoint.yaml"]
    put(console, "x.yml", "mine\n")
    assert console.run("init", "-f", "x.yml").returncode == 2
    assert (console.folder / "x.yml").read_text() == "mine\n"
    assert console.run("init", "-f", "x.yml", "--overwrite").returncode == 0
    assert "steps:" in (console.folder / "x.yml").read_text()
    assert sorted(path.name for path in console.folder.iterdir()) == ["checkpoint.yaml", "x.yml"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("init", "none.sh"), "init none.sh: there is no such file; check its name and folder"),
        (("init", "."), "init .: it is a folder; name the file in it"),
        (("init", "bin.sh"), "init bin.sh:2: it is no text, it holds the character U+0000"),
        (("init", "latin.sh"), "init latin.sh: it is not UTF-8 text; save it as UTF-8"),
        (("init", "a.sh", "--target", "x"), "init a.sh: --target is for a Makefile; leave it out"),
        (
            ("init", "--target", "x"),
            "init: --target is for a Makefile, and there is none here; name it: init FILE --target NAME",
        ),
        (("init", "a", "b"), "init takes one file; leave 'b' out"),
        (("init", "--only", "a"), "--only is for run and plan"),
        (("init", "--retry", "1"), "--retry is not for init; leave it out"),
        (("init", "a.sh", "-f", "no/where.yml"), "init: cannot write no/where.yml: No such file or directory"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the system's words are those of POSIX")
def test_mistakes_are_one_line(console: Console, words: tuple[str, ...], said: str) -> None:
    put(console, "a.sh", "echo\n")
    (console.folder / "bin.sh").write_bytes(b"echo\n\0\n")
    (console.folder / "latin.sh").write_bytes(b"echo \xe9\n")
    ended = console.run(*words)
    assert (ended.returncode, ended.stdout, plain(ended.stderr)) == (2, "", f"checkpoint-run: error: {said}\n")


@pytest.mark.slow
def test_real_scripts_of_this_repository(console: Console) -> None:
    for name in (".ci/run", "examples/sample-output/make.sh"):
        made = console.run("init", str(REPOSITORY / name), "-f", "x.yml", "--overwrite")
        assert made.returncode == 0, made.stderr
        assert console.run("plan", "-f", "x.yml").returncode == 0


@pytest.mark.slow
def test_two_job_files_of_one_folder_are_two_jobs(tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text("echo one\necho two\n")
    console = Console(tmp_path)
    for name in ("first.yml", "second.yml"):
        assert console.run("init", "build.sh", "-f", name).returncode == 0
    assert console.run("-f", "first.yml").returncode == 0
    assert "never-ran" in console.run("plan", "-f", "second.yml").stdout
