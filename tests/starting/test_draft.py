"""The text of a first job file: our own parser reads from it just what was put in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_action.jobfile.resolve import JobDefaults, load_job
from checkpoint_action.starting.draft import Draft, DraftStep, Names, draft_text

HERE = Path("/here")
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40)
SHELLISH = st.text(
    st.sampled_from("ab \t\n'\"\\#:-[]{}&*!|>%@`$~=,?\r\x07\x85é\u2028\ufeff😀"), min_size=1, max_size=30
)
COMMANDS = (TEXTS | SHELLISH).filter(lambda text: text.strip() != "")


@pytest.mark.slow
@given(
    COMMANDS, st.dictionaries(st.from_regex(r"[A-Za-z_]\w{0,9}", fullmatch=True), TEXTS | SHELLISH, max_size=3), TEXTS
)
@settings(max_examples=400, deadline=None)
def test_any_command_variable_and_comment_is_read_back_as_it_was(command: str, env: dict[str, str], said: str) -> None:
    step = DraftStep("a", command, comments=(said,), env=env, outputs=("x, y", "it's"))
    made = Draft("demo", said, (step,), notes=(said,), env=env, last=(said,), timeout="45m")
    job = load_job(draft_text(made), "checkpoint.yml", JobDefaults("x", HERE, HERE))
    read = job.steps[0]
    assert (job.name, read.command, read.env, read.inherited_env) == ("demo", command, env, env)
    assert (read.outputs, read.timeout) == (("x, y", "it's"), 2700)


def test_short_commands_stand_plainly_and_long_ones_in_a_block() -> None:
    text = draft_text(Draft("j", "x", (DraftStep("a", "make -j4 all"), DraftStep("b", "echo a\n  echo b\n"))))
    assert "    run: make -j4 all\n" in text
    assert "    run: |\n      echo a\n        echo b\n" in text


def test_the_commands_at_the_beginning_name_a_file_that_is_not_found_by_itself() -> None:
    draft = Draft("j", "x", (DraftStep("a", "make"),))
    assert "#   checkpoint-run plan     what" in draft_text(draft)
    assert "#   checkpoint-run          run what" in draft_text(draft)
    assert "#   checkpoint-run plan -f 'my job.yml'     what" in draft_text(draft, "my job.yml")
    assert "#   checkpoint-run -f 'my job.yml'          run what" in draft_text(draft, "my job.yml")


def test_names_are_valid_short_and_differ_without_regard_to_case() -> None:
    names = Names()
    assert [names.make(text) for text in ("Build it!", "build-it", "", "", "é", "x" * 200, "X" * 200)] == [
        "Build-it",
        "build-it-2",
        "step",
        "step-2",
        "step-3",
        "x" * 100,
        "X" * 98 + "-2",
    ]
