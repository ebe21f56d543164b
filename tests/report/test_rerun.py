"""The command line that goes on."""

from __future__ import annotations

import sys

import pytest

from checkpoint_action.report.rerun import command_to_go_on

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="words are quoted in another way there")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "checkpoint-run"),
        (
            ("run", "-f", "x y.yml", "-C", "sub", "--state-dir", "s"),
            "checkpoint-run run -f 'x y.yml' -C sub --state-dir s",
        ),
        (("--job", "j", "--step", "a:echo $HOME"), "checkpoint-run --job j --step 'a:echo $HOME'"),
        (("--force",), "checkpoint-run"),
        (("--force", "a", "b", "-j", "2"), "checkpoint-run -j 2"),
        (("--force=a", "-v"), "checkpoint-run -v"),
        (("--only", "a", "b", "c"), "checkpoint-run --only b c"),
        (("--only=a", "--only=b"), "checkpoint-run --only b"),
        (("--from", "a", "-v"), "checkpoint-run --from b -v"),
        (("--from=a",), "checkpoint-run --from b"),
    ],
)
def test_it_is_the_one_given_without_what_would_run_finished_steps_again(words: tuple[str, ...], line: str) -> None:
    assert command_to_go_on(words, ["b", "c"]) == line


@pytest.mark.parametrize("step", ["a:" + "x" * 500, "a:one\ntwo"])
def test_one_that_nobody_could_read_is_left_out(step: str) -> None:
    assert command_to_go_on(("--job", "j", "--step", step), ["a"]) == ""
