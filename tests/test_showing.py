"""What a run shows, and that nothing else pays for it."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


LISTS_MODULES = """
import sys
from checkpoint_action.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sorted(name for name in sys.modules if name.startswith("checkpoint_action.")), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words", [("--help",), ("run", "--help"), ("status", "--job", "j"), ("plan", "--job", "j", "--step", "a:x")]
)
def test_who_only_looks_loads_nothing_of_what_a_run_shows(words: tuple[str, ...], tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LISTS_MODULES, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = set(ended.stderr.splitlines()[-1].removeprefix("checkpoint_action.").split(" checkpoint_action."))
    of_a_run = {
        f"report.{name}" for name in ("board", "cursor", "details", "ending", "live", "money", "style", "terminal")
    }
    assert not loaded & {"showing", "runner.on_finish", *of_a_run}


def test_a_run_that_nobody_watches_loads_nothing_of_the_live_view(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LISTS_MODULES, "--job", "j", "--step", "a:true"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = ended.stderr.splitlines()[-1].split()
    assert "checkpoint_action.showing" in loaded
    assert not {f"checkpoint_action.report.{name}" for name in ("board", "details", "ending", "live", "money")} & {
        *loaded
    }


def test_saved_time_is_told_in_money_too(console: Console, tmp_path: Path) -> None:
    words = ("--job", "j", "--step", "a:sleep 0.3")
    console.run(*words)
    again = console.run(*words, "--rate", "$3600/h", "--report", "page.html")
    assert re.search(r"1 skipped in .*; saved 0\.\d s \(\$0\.\d\d\)", again.stderr)
    assert re.search(r"; saved 0\.\d s \(\$0\.\d\d\)", (tmp_path / "page.html").read_text())
    shown = console.run("status", "--job", "j", "--rate", "1 EUR/s").stdout
    assert re.fullmatch(r"what is done took 0\.\d s \(0\.\d\d EUR\)", shown.splitlines()[-1])
    console.run("report", "whole.html", *words, "--rate", "$3600/h")
    assert re.search(r"took 0\.\d s \(\$0\.\d\d\)", (tmp_path / "whole.html").read_text())


def test_a_price_that_is_none_is_one_line(console: Console) -> None:
    refused = console.run("--job", "j", "--step", "a:true", "--rate", "much")
    assert refused.returncode == 2
    assert "--rate: 'much' is no price of machine time; write 0.48/h, 0.008/min or $0.48/h" in refused.stderr


def test_colours_where_nobody_looks_are_there_when_asked_for(console: Console) -> None:
    words = ("--job", "j", "--step", "a:exit 3")
    assert "\x1b" not in console.run(*words).stderr
    assert "\x1b[31mcheckpoint-run: [1/1] a: failed" in console.run(*words, "--color", "always").stderr


def test_secrets_in_the_words_given_go_no_further_than_to_who_typed_them(console: Console, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text("job: j\nsecrets: [WORD]\nsteps:\n- {id: a, run: 'false'}\n")
    ended = console.run("-v", "--on-finish", ": hunter2", env={"WORD": "hunter2"})
    assert "hunter2" not in ended.stderr
    assert "command line: checkpoint-run -v --on-finish ': ***'" in ended.stderr
    assert "run the same command again" in ended.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "iso8859-1", "koi8-r", "cp1252", "ascii"])
def test_lines_are_shown_in_whatever_the_terminal_takes(console: Console, encoding: str) -> None:
    words = ("--job", "j", "--step", "a:false")
    ended = console.run(*words, env={"PYTHONIOENCODING": encoding})
    assert ended.returncode == 1
    assert "[1/1] a: failed after" in ended.stderr
    assert console.run("plan", *words, env={"PYTHONIOENCODING": encoding}).stdout.startswith("a  run")
