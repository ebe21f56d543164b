"""The command line that goes on."""

from __future__ import annotations

import sys

import pytest

from checkpoint_action.report.rerun import command_to_go_on

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="words are quoted in another way there")


STEPS = ("a", "b", "c", "d")


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
    assert command_to_go_on(words, ["b", "c", "d"], pending=["c", "d"], steps=STEPS) == line


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--force", "a", "d", "-v"), "checkpoint-run --force d -v"),
        (("--force=d",), "checkpoint-run --force d"),
        (("--from", "a"), "checkpoint-run --from d"),  # not from b on, as c is done
        (("--from", "d"), "checkpoint-run --from d"),
    ],
)
def test_what_was_to_run_though_it_is_done_still_is_where_it_has_not_begun(words: tuple[str, ...], line: str) -> None:
    # b has failed, c is done, and d was done before and has not begun in this run
    assert command_to_go_on(words, ["b", "d"], pending=["d"], steps=STEPS) == line


def test_what_comes_before_the_first_named_step_makes_no_finished_one_run_again() -> None:
    # --from c, and a, which is not done, has failed
    assert command_to_go_on(("--from", "c"), ["a", "d"], pending=["d"], steps=STEPS) == "checkpoint-run --from d"
    assert command_to_go_on(("--from", "c"), ["a"], steps=STEPS) == "checkpoint-run"
    line = command_to_go_on(("--from", "a"), ["a", "b", "d"], pending=["b", "d"], steps=STEPS)
    assert line == "checkpoint-run --force b d"


@pytest.mark.parametrize("step", ["a:" + "x" * 500, "a:one\ntwo", "a:one\ttwo", "a:\x1b[2J", "a:\u202egnp", "a:\udcff"])
def test_one_that_would_not_be_the_same_once_it_is_shown_is_left_out(step: str) -> None:
    assert command_to_go_on(("--job", "j", "--step", step), ["a"]) == ""
