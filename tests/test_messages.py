"""What a newcomer gets to read after a mistake: what is wrong, where, and what to do."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from checkpoint_action import cli
from checkpoint_action.arguments import VERBS
from checkpoint_action.errors import JobFileError
from checkpoint_action.jobfile.document import parse
from checkpoint_action.jobfile.values import nearest, unknown_id
from tests.console import plain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(60),
]

JOB = "job: j\nsteps:\n- {id: a, run: echo a}\n- {id: b, run: echo b}\n"


class Here:
    """Runs command lines in one folder."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capfd = capfd

    def write(self, text: str) -> None:
        (self.folder / "checkpoint.yml").write_text(text)

    def refused(self, *words: str) -> str:
        """What is said of a command line that cannot be."""
        assert cli.main(words) == 2
        out, err = self._capfd.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return plain(err).removeprefix("checkpoint-run: error: ").removesuffix("\n")

    def printed(self, *words: str) -> str:
        assert cli.main(words) == 0
        return self._capfd.readouterr().out


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    monkeypatch.chdir(tmp_path)
    found = Here(tmp_path, capfd)
    found.write(JOB)
    return found


IDS = "; the ids are a, b"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # a step that is there and has not run
        (("logs", "b"), "step 'b' has not run yet, so it has no log"),
        # ids that are not there
        (("logs", "zzz"), "logs 'zzz': no step has this id; the ids are a, b"),
        (("logs", "a,b"), "logs 'a,b': no step has this id; give the id of one step"),
        (("logs", "zzz", "--job", "j"), "logs 'zzz': no such step has run"),
        (("--only", "zzz"), f"--only 'zzz': no step has this id{IDS}"),
        (("--from", "zzz"), f"--from 'zzz': no step has this id{IDS}"),
        (("--force", "zzz"), f"--force 'zzz': no step has this id{IDS}"),
        (("reset", "zzz"), f"reset 'zzz': no step has this id{IDS}"),
        (("accept", "zzz"), f"accept 'zzz': no step has this id{IDS}"),
        (("--step-timeout", "zzz:1"), f"--step-timeout 'zzz': no step has this id{IDS}"),
        (("--step-log", "a,b:x"), "--step-log 'a,b': no step has this id; give --step-log once for each step"),
        (("--only", "a,b"), "--only 'a,b': no step has this id; give ids with a space between them"),
        (("reset", "a,b"), "reset 'a,b': no step has this id; give ids with a space between them"),
        (("--from", "a,b"), "--from 'a,b': no step has this id; give the first one; all after it run too"),
        # ids after verbs that take none
        (("plan", "a"), "plan takes no step ids; to choose steps write --only a"),
        (("plan", "my job.yml"), "a job file is named with -f: checkpoint-run plan -f 'my job.yml'"),
        (("-j", "2", "job.yml"), "a job file is named with -f: checkpoint-run -f job.yml"),
        (("job.yml", "-j", "2"), "'job.yml' is no verb; a job file is named with -f: checkpoint-run -f job.yml -j 2"),
        (("plan", "--json", "help"), "for help write checkpoint-run help plan"),
        (("run", "a"), "run takes no step ids; to choose steps write --only a"),
        (("--dry-run", "a"), "unknown word 'a'; to choose steps write --only a"),
        (("status", "a"), "status takes no step ids, it shows all steps; leave 'a' out"),
        (("save", "a"), "save takes no step ids, it is about the step that calls it; leave 'a' out"),
        (("logs", "a", "b"), "logs takes the id of one step; leave 'b' out"),
        # a file that cannot be opened
        (("-f", "nothere.yml"), "there is no job file nothere.yml; check its name and folder"),
        (("-f", "."), "cannot read the job file .: it is a folder; name the file in it"),
        # what argparse finds
        (("--chain=1",), "--chain takes no value; leave '1' out; see checkpoint-run --help"),
        (("--quiet=x",), "--quiet takes no value; leave 'x' out; see checkpoint-run --help"),
        (("--only",), "--only needs the id of a step: --only ID; see checkpoint-run --help"),
        (("--from",), "--from needs the id of a step: --from ID; see checkpoint-run --help"),
        (("-f",), "--file needs a value: --file FILE; see checkpoint-run --help"),
        (("--timeout",), "--timeout needs a value: --timeout DURATION; see checkpoint-run --help"),
        (("logs",), "logs needs the id of a step: logs ID; see checkpoint-run --help"),
        (("--verify", "x"), "--verify: 'x' is not valid; use one of full, stat; see checkpoint-run --help"),
        (("-j", "0"), "--jobs: '0' is not a whole number from 1; see checkpoint-run --help"),
        # guesses
        (("bogus",), f"unknown verb 'bogus'; valid are {', '.join(VERBS)}"),
        (("--bogus",), "unknown option '--bogus'; see checkpoint-run --help"),
        (("--foo",), "unknown option '--foo'; see checkpoint-run --help"),
        (("--setp", "a:x"), "unknown option '--setp'; did you mean '--step'?; see checkpoint-run --help"),
        # one place to begin
        (
            ("--from", "a", "--from", "b"),
            "--from: it is there twice; give the first of the steps, all after it run too; see checkpoint-run --help",
        ),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_command_line_that_cannot_be_says_what_to_do(here: Here, words: tuple[str, ...], said: str) -> None:
    assert here.refused(*words) == said


def test_of_many_ids_only_ten_are_shown() -> None:
    ids = [f"s{n}" for n in range(1, 14)]
    assert unknown_id("qqq", ids) == f"; the ids are {', '.join(ids[:10])} and 3 more"
    assert unknown_id("qqq", ids[:10]) == f"; the ids are {', '.join(ids[:10])}"
    assert unknown_id("qqq", []) == ""


@pytest.mark.parametrize(
    ("word", "valid", "meant"),
    [
        ("--setp", "--step", True),
        ("ouputs", "outputs", True),
        ("timout", "timeout", True),
        ("inptus", "inputs", True),
        ("input", "inputs", True),
        ("statsu", "status", True),
        ("maximum", "max", True),
        ("stat", "status", True),
        ("bogus", "logs", False),
        ("--bogus", "--no-logs", False),
        ("--foo", "--from", False),
        ("clean", "plan", False),
        ("x", "y", False),
        ("--", "--step", False),
    ],
)
def test_only_a_slip_of_the_fingers_gets_a_guess(word: str, valid: str, meant: bool) -> None:
    assert nearest(word, [valid]) == (f"; did you mean '{valid}'?" if meant else "")


STEPS = "steps: [{id: a, run: x}]\n"
NO_NAME = "cannot be the name of a variable; write letters, digits and '_', no wildcards"
ONLY_OUT = "has only what to leave out ('!x'); add what to take, such as '**'"
SECRET = "is among the secrets, and a secret never counts; take it out here"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps:\n- id: a\n  input: x\n  run: x\n", "3:3: step 'a': unknown key 'input'; did you mean 'inputs'?"),
        ("steps:\n- input: x\n  id: a\n", "2:3: step 'a': unknown key 'input'; did you mean 'inputs'?"),
        ("steps:\n- input: x\n  id: a b\n", "2:3: step 1: unknown key 'input'; did you mean 'inputs'?"),
        ("steps:\n", "1:7: steps is empty; add at least one '- id: NAME' with 'run: COMMAND' below it"),
        (f"pass-env: [CI_*]\n{STEPS}", f"1:12: the job file: pass-env: 'CI_*' {NO_NAME}"),
        (f"pass-env: A B\n{STEPS}", f"1:11: the job file: pass-env: 'A B' {NO_NAME}"),
        (f"secrets: ['A?']\n{STEPS}", f"1:11: the job file: secrets: 'A?' {NO_NAME}"),
        (f"env: {{'A ': b}}\n{STEPS}", f"1:7: the job file: env: 'A ' {NO_NAME}"),
        ("steps: [{id: a, run: x, env: {' A': b}}]\n", f"1:31: step 'a': env: ' A' {NO_NAME}"),
        ("steps:\n- {id: a, run: x, outputs: ['!x']}\n", f"2:28: step 'a': outputs {ONLY_OUT}"),
        ("steps:\n- {id: a, run: x, inputs: '!x'}\n", f"2:27: step 'a': inputs {ONLY_OUT}"),
        ("steps:\n- {id: a, run: x, partial: ['!x', '!y']}\n", f"2:28: step 'a': partial {ONLY_OUT}"),
        (f"secrets: [A]\npass-env: [B, A]\n{STEPS}", f"2:15: the job file: pass-env: 'A' {SECRET}"),
        (
            "steps:\n- {id: a, run: x, pass-env: A}\nsecrets: A\n",
            f"2:29: step 'a': pass-env: 'A' {SECRET}",
        ),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_job_file_that_cannot_be_says_where_and_what_to_do(here: Here, text: str, said: str) -> None:
    here.write(text)
    assert here.refused("plan") == f"checkpoint.yml:{said}"


def test_what_real_systems_call_variables_is_taken(here: Here) -> None:
    here.write("env: {'ProgramFiles(x86)': a, A.B-C: d}\npass-env: ['CommonProgramFiles(x86)', é]\n" + STEPS)
    assert here.printed("plan").startswith("a  run")


COLON = "a text holds ': '; put the whole text in quotes, or write 'run: |' and the text in the line below"
INDENT = "wrong indentation; begin this line in the same column as the lines it belongs with"
TAB = "a tab where YAML wants spaces; indent with spaces"
QUOTES = "a text that begins with '{}' must be put in quotes"

BROKEN = [
    ("steps:\n- id: a\n  run: echo hi: there\n", "3:15", COLON),
    ("steps:\n- run: echo hi: there\n", "2:15", COLON),
    ("steps:\n- {id: a, run: echo hi: there}\n", "2:23", COLON),
    ("v:\n\t- a\n", "2:1", TAB),
    ("steps:\n- id: a\n\trun: x\n", "3:1", TAB),
    ("steps:\n  - id: a\n    run: |\n      x\n\t\ty\n", "5:1", TAB),
    ("steps:\n- id: a\n run: x\n", "3:2", INDENT),
    ("steps:\n  - id: a\n - id: b\n", "3:2", INDENT),
    ("steps:\n  - id: a\n    run: x\n   env: y\n", "4:4", INDENT),
    ("steps:\n - id: a\n   run: |\n  x\n", "4:3", INDENT),
    (" job: a\nsteps: []\n", "2:1", INDENT),
    ("steps:\n- id: a\n   run: x\n", "3:7", f"{INDENT}, and see that a key above it has its ':'"),
    ("steps:\n- id: b\n  run x\n  foo: y\n", "4:3", "line 3 has no ': '; write it as 'key: value'"),
    ("a: b\nfoo\n", "3:1", "line 2 has no ': '; write it as 'key: value'"),
    ("v: [a\nw: b\n", "2:2", "the list begun with '[' in line 1 lacks a comma or its ']'"),
    ("v: {a: b\nc: d\n", "2:2", "the mapping begun with '{' in line 1 lacks a comma or its '}'"),
    ("v: 'a\n", "2:1", "the quotation mark in line 1 is never closed"),
    ('v: "a" b\n', "1:8", "text after a closing quotation mark or bracket; put the whole text in quotes"),
    ('v: "a\\q"\n', "", "a backslash in double quotes stands for more; use single quotes, or double it"),
    ("v: *.txt\n", "1:5", QUOTES.format("*")),
    ("v: *nowhere\n", "1:4", QUOTES.format("*")),
    ("v: @a\n", "1:4", QUOTES.format("@")),
    ("v: `a`\n", "1:4", QUOTES.format("`")),
    ("v: | a\n", "1:6", "a text after '|' or '>' begins in the next line"),
    ("v: - b\n", "1:4", "a list cannot begin here; begin each '- ' in a line of its own"),
]


@pytest.mark.parametrize("loader", ["libyaml", "python"])
@pytest.mark.parametrize(("text", "place", "said"), BROKEN, ids=lambda value: repr(value)[:40])
def test_broken_yaml_is_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, loader: str, text: str, place: str, said: str
) -> None:
    if loader == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("this YAML package was built without libyaml")
    with pytest.raises(JobFileError) as caught:
        parse(text, "f.yml", "the file")
    where, _, words = str(caught.value).partition(": not valid YAML: ")
    assert words == said
    if place:  # the two loaders count differently where an escape is wrong
        assert where == f"f.yml:{place}"


def test_reset_and_accept_are_one_object_for_programs(here: Here) -> None:
    assert json.loads(here.printed("reset", "--json")) == {"job": "j", "forgotten": []}
    assert json.loads(here.printed("accept", "a", "b", "--json")) == {"job": "j", "accepted": ["a", "b"]}
    assert json.loads(here.printed("accept", "a", "--json")) == {"job": "j", "accepted": []}
    assert json.loads(here.printed("reset", "b", "--json")) == {"job": "j", "forgotten": ["b"]}
    assert json.loads(here.printed("reset", "--json")) == {"job": "j", "forgotten": ["a"]}
