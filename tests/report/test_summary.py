"""The summary of a run in Markdown. What a Markdown reader and Mermaid make of it is tested with the peers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.model import Action, Decision, Entry, Layer, Reason, Status
from checkpoint_action.report.markdown import code, fenced, shortened
from checkpoint_action.report.summary import SUMMARY_LIMIT, SummaryReport, Told, summary
from checkpoint_action.report.timeline import Bar, gantt, timeline
from checkpoint_action.runner import events
from tests.report.stories import NASTY, ended, job, nasty, record, runs

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYER = Layer((Entry("a", "file", 0o644, 0, 5000), Entry("b", "file", 0o644, 0, 120)))


def story() -> list[Told]:
    return [
        Told(100, events.RunStarted(job("fetch", "login", "build", "test", "publish"))),
        Told(100, events.StepSkipped(0, Decision("fetch", Action.SKIP, Reason.DONE), record("fetch"))),
        Told(
            102,
            events.StepRestored(
                1, Decision("login", Action.RESTORE, Reason.RESTORED), record("login", layer=LAYER), 1.5
            ),
        ),
        *runs(102, 2, record("build", seconds=60), Reason.COMMAND_CHANGED, "make → make -j4"),
        Told(162, events.StepsKept(("build",), "Actions cache", 3 << 20)),
        *runs(162, 3, record("test", Status.FAILED, seconds=5, error="it ended with exit code 1")),
        Told(167, events.StepBlocked(4, "publish", "test")),
        Told(
            167,
            ended(
                1, ran=("build", "test"), skipped=("fetch",), restored=("login",), failed=("test",),
                pending=("publish",), seconds=67.0, saved=130.0,
            ),
        ),
    ]  # fmt: skip


def rows(text: str) -> list[list[str]]:
    """Cells of the table, its head apart."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def test_a_run_that_failed_tells_all_there_is_to_know() -> None:
    text = summary(story(), tails={"test": ("one", "``` two")}, quota="The cache has 2 GiB left.")
    assert text.startswith("## checkpoint-run, the steps of `release`: 1 failed\n\n1 done, 1 skipped, 1 restored, ")
    assert "in 1 min 07 s; saved 2 min 10 s.\n" in text
    assert "Stored: 3.0 MiB in 1 archive (Actions cache). Restored: 5.0 KiB. The cache has 2 GiB left.\n" in text
    assert "With nothing changed, the next run skips 3 of 5 steps and runs `test`, `publish`.\n" in text
    assert "✗ `test` failed after 5.0 s: `it ended with exit code 1`\n\n````\none\n``` two\n````\n" in text
    assert rows(text) == [
        ["`fetch`", "↷ skipped", "done", "", "1 min 05 s"],
        ["`login`", "↺ restored", "restored", "1.5 s", "1 min 05 s"],
        ["`build`", "✓ done", "command-changed: `make → make -j4`", "1 min 00 s", ""],
        ["`test`", "✗ failed: `it ended with exit code 1`", "never-ran", "5.0 s", ""],
        ["`publish`", "○ left", "it needs `test`, which is not done", "", ""],
    ]
    assert (
        "```mermaid\n"
        "gantt\n"
        "    dateFormat YYYY-MM-DD HH:mm:ss.SSS\n"
        "    axisFormat %H:%M:%S\n"
        "    todayMarker off\n"
        "    ↺ login :done, 2000-01-01 00:00:00.500, 1500ms\n"
        "    ✓ build :active, 2000-01-01 00:00:02.000, 60000ms\n"
        "    ✗ test :crit, 2000-01-01 00:01:02.000, 5000ms\n"
        "```\n"
    ) in text


@pytest.mark.parametrize(
    ("over", "said"),
    [
        (ended(0), "all done"),
        (ended(1, failed=("a", "b")), "2 failed"),
        (ended(130, signal=2), "stopped by signal 2"),
        (ended(143, signal=15, failed=("a",)), "1 failed"),
        (ended(75, incomplete=True), "stopped before the end on purpose, to be run again"),
        (ended(1, held=("a",)), "waiting for a person"),
        (None, "ended early"),
    ],
)
def test_the_heading_has_the_result(over: events.RunEnded | None, said: str) -> None:
    told = [Told(0, events.RunStarted(job("a")))] + ([Told(1, over)] if over else [])
    assert summary(told).splitlines()[0] == f"## checkpoint-run, the steps of `release`: {said}"


def test_a_run_that_never_began_has_a_summary_all_the_same() -> None:
    assert summary([]) == "## checkpoint-run, the steps of `?`: ended early\n"


def test_where_nothing_is_saved_the_table_has_no_column_for_it() -> None:
    told = [Told(0, events.RunStarted(job("a", "b"))), *runs(0, 0, record("a"))]
    assert "| step | result | reason | took |\n|---|---|---|--:|\n" in summary(told)
    skipped = events.StepSkipped(1, Decision("b", Action.SKIP, Reason.DONE), record("b"))
    assert "| step | result | reason | took | saved |\n|---|---|---|--:|--:|\n" in summary([*told, Told(9, skipped)])


def test_tries_count_with_the_time_of_all_of_them() -> None:
    last = record("a", seconds=2.0, tries=3)
    start, _ = runs(10, 0, last)
    told = [Told(10, events.RunStarted(job("a"))), start, Told(40, events.StepEnded(0, last))]
    assert rows(summary(told)) == [["`a`", "✓ done, 3 tries", "never-ran", "30.0 s"]]
    assert "✓ a :active, 2000-01-01 00:00:00.000, 30000ms" in summary(told)


def test_steps_that_were_stopped_held_or_never_reached_are_in_the_table() -> None:
    asks = Decision("c", Action.STOP, Reason.INTERRUPTED_BEFORE, "the machine was lost")
    told = [
        Told(0, events.RunStarted(job("a", "b", "c", "d", "e"))),
        *runs(0, 0, record("a", Status.INTERRUPTED, seconds=1, error="it was stopped by SIGINT")),
        runs(1, 1, record("b"))[0],
        Told(1, events.StepHeld(2, asks, wanted=True)),
        Told(1, events.StepHeld(3, Decision("d", Action.STOP, Reason.COMMAND_CHANGED), wanted=False)),
    ]
    assert [row[1:3] for row in rows(summary(told))] == [
        ["■ stopped: `it was stopped by SIGINT`", "never-ran"],
        ["■ stopped", "never-ran"],
        ["○ waits for a person", "interrupted-before: `the machine was lost`"],
        ["○ left", "command-changed"],
        ["○ left", "the run ended before it"],
    ]
    assert "■ a :crit" in summary(told)


def test_only_the_steps_that_are_looked_at_are_told_of() -> None:
    told = [Told(0, events.RunStarted(job("a", "b"), ("b",)))]
    assert [row[0] for row in rows(summary(told))] == ["`b`"]


@pytest.mark.parametrize(
    ("changes", "in_store", "kept", "said"),
    [
        ({}, True, True, "skips all 1 steps"),
        ({}, False, True, "has no step to skip"),
        ({}, False, False, "skips all 1 steps"),
        ({"always": True}, True, True, "has no step to skip"),
    ],
)
def test_what_the_next_run_skips_is_what_it_will_find(
    changes: dict[str, bool], in_store: bool, kept: bool, said: str
) -> None:
    told = [Told(0, events.RunStarted(job("a", **changes))), *runs(0, 0, record("a"))]
    told += [Told(9, events.StepsKept(("a",), "Actions cache", 9))] if in_store else []
    assert said in summary(told, kept=kept)


def test_a_step_that_hands_on_a_secret_runs_again() -> None:
    told = [Told(0, events.RunStarted(job("a", "b")))]
    told += [*runs(0, 0, record("a", withheld=("TOKEN",))), *runs(0, 1, record("b"))]
    assert "skips 1 of 2 steps and runs `a`." in summary(told, kept=False)


def test_steps_that_run_again_are_named_up_to_ten() -> None:
    ids = [f"s{number}" for number in range(14)]
    told = [Told(0, events.RunStarted(job(*ids))), *runs(0, 0, record("s0"))]
    assert "runs `s1`, `s2`, `s3`, `s4`, `s5`, `s6`, `s7`, `s8`, `s9`, `s10` and 3 more." in summary(told, kept=False)


def test_many_failures_are_shown_up_to_twenty_and_counted() -> None:
    ids = [f"s{number}" for number in range(30)]
    told = [Told(0, events.RunStarted(job(*ids)))]
    for at, step in enumerate(ids):
        told += runs(at, at, record(step, Status.TIMEOUT, error="it took longer than its 1 s"))
    text = summary(told)
    assert len(re.findall("^✗ `s", text, re.MULTILINE)) == 20
    assert "… and 10 more failed steps." in text


def large(count: int, tail: Sequence[str]) -> tuple[list[Told], dict[str, Sequence[str]]]:
    ids = [f"step-{number:05d}" for number in range(count)]
    told = [Told(0, events.RunStarted(job(*ids)))]
    for at, step in enumerate(ids):
        status = Status.FAILED if at % 1000 == 500 else Status.DONE
        told += runs(at, at, record(step, status, seconds=1.0, error="it ended with exit code 1" * (at % 1000 == 500)))
    return told, dict.fromkeys(ids[500::1000], tail)


def test_what_is_too_much_goes_in_the_documented_order() -> None:
    told, tails = large(2000, ["x" * 500] * 20)
    whole = summary(told, tails=tails)
    sizes = [len(whole.encode())]
    assert "xxxxx" in whole
    assert "left out" not in whole
    without_lines = summary(told, tails=tails, limit=sizes[0] - 1)
    assert "xxxxx" not in without_lines
    assert "last lines of the failed steps are left out" in without_lines
    assert "gantt" in without_lines
    without_picture = summary(told, tails=tails, limit=len(without_lines.encode()) - 1)
    assert "gantt" not in without_picture
    assert "The picture of the run is left out" in without_picture
    assert len(rows(without_picture)) == 2000
    cut = summary(told, tails=tails, limit=len(without_picture.encode()) - 1)
    table = rows(cut)
    [gap] = [at for at, row in enumerate(table) if row[0] == "…"]
    assert table[gap][1] == f"_{2000 - len(table) + 1} steps are left out: the summary would be too large_"
    assert 900 < gap < 1000
    assert table[-1][0] == "`step-01999`"
    assert "✗ `step-00500` failed" in cut  # whatever becomes of its row


@pytest.mark.slow
def test_ten_thousand_steps_stay_within_the_limit_and_use_it() -> None:
    told, tails = large(20_000, ["x"])
    text = summary(told, tails=tails).encode()
    assert SUMMARY_LIMIT == 900 * 1024
    assert SUMMARY_LIMIT - 500 < len(text) <= SUMMARY_LIMIT


@given(st.lists(st.sampled_from(NASTY), max_size=8, unique=True), st.integers(0, 6000))
def test_no_summary_exceeds_its_limit(texts: list[str], limit: int) -> None:
    text = summary(nasty(texts), tails={text: (text,) for text in texts}, limit=limit)
    assert len(text.encode()) <= limit


def test_a_folder_as_store_is_no_markup_whatever_it_is_called() -> None:
    kept = events.StepsKept(("a",), "the folder /x/<img src=x>](y) `z", 1)
    text = summary([Told(0, events.RunStarted(job("a"))), Told(1, kept)])
    assert "in 1 archive (``the folder /x/<img src=x>](y) `z``).\n" in text


def test_no_text_breaks_its_row_or_turns_the_direction() -> None:
    text = summary(nasty(), tails={})
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(lines) == len(NASTY)
    for line in lines:
        assert len(re.findall(r"(?<!\\)\|", line.replace(r"\\", ""))) == 5, line
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("text", "plain", "cell"),
    [
        ("a", "`a`", "`a`"),
        ("", "", ""),
        ("a|b", "`a|b`", r"`a\|b`"),
        (r"a\|b", r"`a\|b`", "`a\\`&#124;`b`"),
        ("a`b``c", "```a`b``c```", "```a`b``c```"),
        ("`", "`` ` ``", "`` ` ``"),
        (" a ", "`  a  `", "`  a  `"),
        ("a\nb\u202e", r"`a\nb\u202e`", r"`a\nb\u202e`"),
    ],
)
def test_a_text_as_code(text: str, plain: str, cell: str) -> None:
    assert code(text) == plain
    assert code(text, cell=True) == cell


def test_a_long_text_shows_both_ends() -> None:
    assert shortened("abcdefgh", 8) == "abcdefgh"
    assert shortened("abcdefghi", 8) == "abcd…ghi"
    assert all(len(shortened("x" * 50, longest)) == longest for longest in range(1, 50))


@given(st.lists(st.text("`a\n ", max_size=9), max_size=4))
def test_no_line_ends_its_fence(lines: list[str]) -> None:
    block = fenced(lines).splitlines()
    fence = block[0]
    assert set(fence) == {"`"}
    assert len(fence) >= 3
    assert block[-1] == fence
    assert not [line for line in block[1:-1] if fence in line]


BAR = re.compile(
    r"    [✓✗■↺] [^\W_]?[\w ./+=()…-]* :(done|active|crit), 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}, [1-9]\d*ms"
)


@given(st.text(max_size=80), st.floats(-1, 1e7), st.floats(0, 1e7))
def test_whatever_its_name_a_bar_is_one_line_of_the_grammar(step: str, start: float, seconds: float) -> None:
    *head, bar = gantt([Bar(step, start, seconds, "done")])
    assert head[0] == "gantt"
    assert len(head) == 4
    assert BAR.fullmatch(bar), bar


def test_of_many_bars_the_longest_are_shown_in_their_order() -> None:
    bars = [Bar(f"s{number:03d}", number, 2.0 if number % 2 else 1.0, "done") for number in range(100)]
    text = timeline(bars)
    assert re.findall(r"✓ (\w+) :", text) == [f"s{number:03d}" for number in range(1, 100, 2)]
    assert "the 50 that took longest of 100" in text
    assert len(timeline([Bar("x" * 500, 0, 1, "failed")] * 10_000)) < 50_000


def test_a_run_of_more_than_a_day_has_days_on_its_axis() -> None:
    assert "    axisFormat day %-d %H:%M" in gantt([Bar("a", 86_000, 500, "done")])
    assert "    axisFormat %H:%M:%S" in gantt([Bar("a", 86_000, 300, "done")])


def test_the_listener_notes_when_it_was_told() -> None:
    clock = iter([1.0, 2.5])
    report = SummaryReport(clock=lambda: next(clock))
    first, second = events.RunStarted(job("a")), ended()
    report(first)
    report(second)
    assert report.told == [Told(1.0, first), Told(2.5, second)]
