"""Help that fits a screen, and for each verb the options that are its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkpoint_action.grammar import _OWN, _VERBS_OF, VERBS, belongs, parser_of
from tests.console import Console


def helped(*words: str) -> str:
    ended = Console(Path.cwd()).run(*words, "--help", env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_whole_fits_a_screen_and_names_every_verb_with_two_examples() -> None:
    lines = helped().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    words = " ".join(lines[5:13]).replace(",", " ").split()
    assert set(VERBS) <= set(words)
    assert sum(line.startswith("  checkpoint-run ") for line in lines) == 2


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_shows_its_own_options_and_no_others(verb: str) -> None:
    text = helped(verb)
    assert text.startswith(f"usage: checkpoint-run {verb} ")
    for action in parser_of(verb)._actions:
        for flag in action.option_strings:
            shown = f" {flag}" in text.replace("\n", " ")
            assert shown == belongs(action.dest, verb), flag


@pytest.mark.parametrize("verb", ["plan", "graph"])
def test_the_help_of_a_plan_explains_no_option_that_changes_none(verb: str) -> None:
    listed, _, idle = helped(verb).partition("A run's other options may stand here too")
    assert " --timeout" not in listed
    assert " --retry-on" not in listed
    assert {" --only", " --step-artifact", " --verify", " --shell", " --force"} <= set(
        re.findall(r" --[a-z-]+", listed)
    )
    assert {"--timeout", "--retry-on", "--budget", "--no-logs"} <= set(re.findall(r"--[a-z-]+", idle))


@pytest.mark.parametrize(
    ("words", "same"),
    [(("help",), ()), (("help", "plan"), ("plan",)), (("--help", "logs"), ("logs",)), (("run", "help"), ("run",))],
)
def test_the_word_help_is_understood(words: tuple[str, ...], same: tuple[str, ...]) -> None:
    ended = Console(Path.cwd()).run(*words, env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", helped(*same))


def test_run_has_all_options_that_are_for_no_other_verb_alone() -> None:
    text = helped("run")
    for action in parser_of("run")._actions:
        assert f" {action.option_strings[-1]}" in text


def test_the_tables_name_verbs_and_options_that_exist() -> None:
    dests = {action.dest for verb in VERBS for action in parser_of(verb)._actions}
    assert set(_VERBS_OF) <= dests
    assert {dest for own in _OWN.values() for dest in own} - {"source"} <= dests
    assert {verb for verbs in _VERBS_OF.values() for verb in verbs} | set(_OWN) <= set(VERBS)


def test_completion_needs_a_shell_that_is_known() -> None:
    console = Console(Path.cwd())
    assert "completion needs the name of a shell: bash, zsh, fish, powershell" in console.run("completion").stderr
    assert "use one of bash, zsh, fish, powershell" in console.run("completion", "csh").stderr


LISTS_MODULES = """
import sys
from checkpoint_action.cli import main
main(sys.argv[1:])
print(*sorted(name for name in sys.modules if name.startswith("checkpoint_action.")), file=sys.stderr)
"""


@pytest.mark.parametrize("verb", ["schema", "completion", "doctor", "init", "graph"])
def test_a_plan_loads_nothing_of_the_verbs_around_it(verb: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LISTS_MODULES, "plan", "--job", "j", "--step", "a:true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = ended.stderr.split()
    theirs = {
        "schema": "checkpoint_action.jobfile.schema",
        "completion": "checkpoint_action.completion",
        "doctor": "checkpoint_action.health",
        "init": "checkpoint_action.starting",
        "graph": "checkpoint_action.report.graph",
    }[verb]
    assert not [name for name in modules if name.startswith(theirs)]
    assert "checkpoint_action.aids" not in modules
