"""What the log of a workflow run shows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, Decision, Job, Reason, Record, Status, Step
from checkpoint_action.report.actions_log import ActionsLog
from checkpoint_action.report.tail import OutputTail
from checkpoint_action.report.terminal import StepOutput
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from collections.abc import Callable

JOB = Job("j", Path("/w"), (Step("a", "echo hi\nmake", "bash", Path("/w")),))
START = events.StepStarted(0, Decision("a", Action.RUN, Reason.NEVER_RAN), JOB.steps[0].command)


def record(status: Status, error: str = "") -> Record:
    return Record("a", status, "f", "echo hi", duration=2.0, error=error, tries=1)


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    def tell(*told: events.Event, block: bool = False) -> list[str]:
        log = ActionsLog(block_commands=block)
        log(events.RunStarted(JOB))
        for event in told:
            log(event)
        return capfd.readouterr().out.splitlines()

    return tell


def test_a_step_is_a_group_with_its_command(told: Callable[..., list[str]]) -> None:
    lines = told(START, events.StepEnded(0, record(Status.DONE)))
    assert lines[0] == "::group::[1/1] a: runs (never-ran)"
    assert lines[1:3] == ["\x1b[36;1mecho hi\x1b[0m", "\x1b[36;1mmake\x1b[0m"]
    assert lines[3:] == ["::endgroup::", "[1/1] a: done in 2.0 s"]


def test_what_has_been_kept_is_told_outside_of_the_groups_of_steps_that_run_at_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    log = ActionsLog(block_commands=False, at_once=True)
    kept = events.StepsKept(("b",), "Actions cache", 9)
    for event in (events.RunStarted(JOB), START, kept, events.OutputShown(0), kept):
        log(event)
    log(events.StepEnded(0, record(Status.DONE)))
    lines = capfd.readouterr().out.splitlines()
    told = "kept in the Actions cache: b (9 bytes)"
    assert lines[:3] == ["[1/1] a: runs (never-ran)", told, "::group::[1/1] a: runs (never-ran)"]
    assert lines[-3:] == ["::endgroup::", told, "[1/1] a: done in 2.0 s"]


def test_a_failure_is_an_annotation_outside_the_group(told: Callable[..., list[str]]) -> None:
    lines = told(START, events.StepEnded(0, record(Status.FAILED, "it ended with exit code 3")))
    assert lines[-2:] == [
        "::endgroup::",
        "::error title=step a::[1/1] a: failed after 2.0 s: it ended with exit code 3",
    ]


def test_what_steps_print_is_fenced_when_asked_with_another_token_each_time(told: Callable[..., list[str]]) -> None:
    ended = events.StepEnded(0, record(Status.TIMEOUT, "it took longer"))
    lines = told(START, events.Warned("careful"), ended, START, ended, block=True)
    tokens = [line.removeprefix("::stop-commands::") for line in lines if line.startswith("::stop-commands::")]
    assert len(tokens) == len(set(tokens)) == 3
    assert all(len(token) > 6 for token in tokens)
    # Each fence is taken away before a command of our own, also after a time-out.
    depth = ""
    for line in lines:
        if line.startswith("::stop-commands::"):
            assert not depth
            depth = line.removeprefix("::stop-commands::")
        elif depth and line == f"::{depth}::":
            depth = ""
        elif line.startswith("::"):
            assert not depth, line
    assert not depth


def test_a_step_that_waits_for_a_person_is_an_annotation_and_what_needs_it_is_a_line(
    told: Callable[..., list[str]],
) -> None:
    asks = Decision("a", Action.STOP, Reason.INTERRUPTED_BEFORE, "it may have done its work")
    waits = Decision("a", Action.STOP, Reason.NEEDS_CHANGED, "it needs 'a', which is held back")
    error, line = told(events.StepHeld(0, asks, wanted=True), events.StepHeld(0, waits, wanted=True))
    assert error.startswith("::error title=step a::[1/1] a: not run: ")
    assert line == "[1/1] a: left: it needs 'a', which is held back"


def test_nothing_is_fenced_by_default(told: Callable[..., list[str]]) -> None:
    assert not [line for line in told(START) if re.match(r"::stop-commands", line)]


def test_what_reached_the_store_is_told_with_its_size(told: Callable[..., list[str]]) -> None:
    assert told(events.StepsKept(("a", "b"), "Actions cache", 2048)) == ["kept in the Actions cache: a, b (2.0 KiB)"]


def test_a_step_that_is_stopped_before_it_begins_leaves_no_group_open(told: Callable[..., list[str]]) -> None:
    stopped = events.RunEnded("j", 130, (), (), (), (), ("a",), 2, 1.0, 0.0)
    for block in (False, True):
        lines = told(START, stopped, block=block)
        assert lines.index("::endgroup::") < lines.index("steps of j: 1 left in 1.0 s")
    assert "::endgroup::" not in told(stopped)


def test_a_step_whose_files_have_gone_on_this_machine_says_what_was_missed(capfd: pytest.CaptureFixture[str]) -> None:
    restored = events.StepRestored(0, Decision("a", Action.RESTORE, Reason.RESTORED, "dist"), record(Status.DONE), 0.5)
    for here, ending in ((frozenset({"a"}), "; it was done here, but not all is as it was: dist"), (frozenset(), "")):
        log = ActionsLog()
        log.done_here = here
        log(events.RunStarted(JOB))
        log(restored)
        assert capfd.readouterr().out == f"[1/1] a: restored in 0.5 s, saves 2.0 s{ending}\n"


def test_a_step_that_is_skipped_is_one_short_line(told: Callable[..., list[str]]) -> None:
    def skipped(seconds: float, detail: str = "") -> events.StepSkipped:
        known = replace(record(Status.DONE), duration=seconds)
        return events.StepSkipped(0, Decision("a", Action.SKIP, Reason.DONE, detail), known)

    restored = events.StepRestored(
        0,
        Decision("a", Action.RESTORE, Reason.RESTORED, "x is missing"),
        replace(record(Status.DONE), duration=0.04),
        0.04,
    )
    assert told(skipped(2), skipped(0.04), skipped(90, "accepted"), restored) == [
        "[1/1] a: skipped, saves 2.0 s",
        "[1/1] a: skipped",
        "[1/1] a: skipped (accepted), saves 1 min 30 s",
        "[1/1] a: restored",
    ]


def test_a_step_that_is_left_is_not_called_selected(told: Callable[..., list[str]]) -> None:
    why = "it needs 'b', which would have to run (never-ran); add b to --only"
    left = events.StepHeld(0, Decision("a", Action.STOP, Reason.SELECTED, why), wanted=True)
    own = events.StepHeld(0, Decision("a", Action.STOP, Reason.NEVER_RAN, "--only leaves it out"), wanted=True)
    assert told(left, own) == [f"[1/1] a: left: {why}", "[1/1] a: left: never-ran: --only leaves it out"]


def test_a_step_that_must_not_run_twice_says_what_a_workflow_can_do(told: Callable[..., list[str]]) -> None:
    held = Decision("a", Action.STOP, Reason.INTERRUPTED_BEFORE, "'checkpoint-run accept a' takes it as done")
    [line] = told(events.StepHeld(0, held, True))
    assert line.startswith("::error title=step a::[1/1] a: not run: the machine was lost while it ran")
    assert "accept" not in line


def test_a_command_is_shown_without_being_obeyed(capfd: pytest.CaptureFixture[str]) -> None:
    """The runner takes a carriage return for the end of a line, and the older commands anywhere in one."""
    log = ActionsLog()
    log(events.StepStarted(0, Decision("a", Action.RUN, Reason.NEVER_RAN), "x\r::error::y\r\necho '##[group]z'\n"))
    log(events.StepHeld(0, Decision("a", Action.STOP, Reason.NEEDS_CHANGED, "p\n::error::q ##[error]"), True))
    lines = re.split(r"\r\n|\r|\n", capfd.readouterr().out)
    assert [line for line in lines if line.startswith("::")] == ["::group::1: runs (never-ran)"]
    assert not [line for line in lines if "##[" in line]
    assert lines[1:3] == ["\x1b[36;1mx\x1b[0m", "\x1b[36;1m::error::y\x1b[0m"]


def test_a_group_ends_also_where_the_output_does_not_end_its_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    output = StepOutput(1, shared=True)
    log = ActionsLog(output=output)
    log(events.RunStarted(JOB))
    for text in (b"no end", b"an end\n"):
        log(START)
        output.write(text)
        log(events.StepEnded(0, record(Status.FAILED, "it failed")))
    lines = capfd.readouterr().out.splitlines()
    assert lines.count("::endgroup::") == 2
    assert lines.count("") == 0
    assert "no end" in lines


def test_no_more_annotations_of_a_kind_than_the_runner_keeps(told: Callable[..., list[str]]) -> None:
    failures = [START, events.StepEnded(0, record(Status.FAILED, "no"))] * 25
    warnings = [events.Warned(f"careful {number}") for number in range(12)]
    over = events.RunEnded("j", 1, ("a",), (), (), ("a",), (), None, 1.0, 0.0)
    lines = told(*failures, *warnings, over)
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == 9  # and one for the end of the action
    named = ", ".join(["a"] * 17)
    assert errors[-1] == f"::error::17 more errors are in the log of this step, of the steps {named}"
    assert [line for line in lines if line.startswith("::warning")][-1].startswith("::warning::4 more warnings")
    assert lines.count("error: [1/1] a: failed after 2.0 s: no") == 17
    assert [f"warning: careful {number}" in lines for number in range(12)] == [False] * 8 + [True] * 4


def test_as_many_annotations_as_there_is_room_for_have_no_line_for_the_rest(told: Callable[..., list[str]]) -> None:
    over = events.RunEnded("j", 0, (), (), (), (), (), None, 1.0, 0.0)
    lines = told(*[events.Warned("careful")] * 8, over)
    assert [line for line in lines if line.startswith("::")] == ["::warning::careful"] * 8


def test_an_annotation_is_no_longer_than_the_runner_keeps(told: Callable[..., list[str]]) -> None:
    [line] = told(events.Warned("begin" + "x" * 9000 + "end"))
    assert len(line) < 4096
    assert line.startswith("::warning::begin")
    assert line.endswith("end")


def test_the_last_lines_of_a_failed_step_are_shown_again_outside_its_group(capfd: pytest.CaptureFixture[str]) -> None:
    tail = OutputTail()
    log = ActionsLog(tails=tail.of)
    failed = events.StepEnded(0, record(Status.FAILED, "it failed"))
    for event in (events.RunStarted(JOB), START, failed):
        if event is failed:
            tail.write(b"fine\n::error::bad\n")
        tail(event)
        log(event)
    lines = capfd.readouterr().out.splitlines()
    after = lines[lines.index("::endgroup::") + 1 :]
    assert after[0] == "the last lines of a:"
    assert after[1].startswith("::stop-commands::")
    assert after[2:4] == ["  fine", "  ::error::bad"]
    assert after[4] == f"::{after[1].removeprefix('::stop-commands::')}::"
    assert after[5:] == ["::error title=step a::[1/1] a: failed after 2.0 s: it failed"]


def test_a_run_out_of_budget_says_that_it_goes_on(told: Callable[..., list[str]]) -> None:
    over = events.RunEnded("j", 75, (), (), (), (), ("a",), None, 1.0, 0.0, incomplete=True)
    assert told(over)[-1].startswith("::warning::the budget is used up: this is green and not finished (left: ")


def test_another_attempt_is_spoken_of_only_where_it_has_something_to_go_on_from(
    told: Callable[..., list[str]],
) -> None:
    failed = events.RunEnded("j", 1, ("a",), (), (), ("a",), (), None, 1.0, 0.0)
    over = events.RunEnded("j", 75, (), (), (), (), ("a",), None, 1.0, 0.0, incomplete=True)
    kept = events.StepsKept(("b",), "Actions cache", 9)
    assert told(failed)[-1].startswith("steps of j: ")
    assert told(kept, failed)[-1] == 'what is done is kept: "Re-run failed jobs" goes on from here'
    assert told(over)[-1].endswith("(left: a); nothing is kept, so the next run begins from the start")
    assert told(kept, over)[-1].endswith(
        "(left: a); what is done is kept, and the next run of the job goes on from here"
    )


def test_a_value_is_masked_where_commands_are_stopped_just_then(capfd: pytest.CaptureFixture[str]) -> None:
    log = ActionsLog(block_commands=True)
    log(events.RunStarted(JOB))
    log(START)
    log.mask("signature")
    log(events.StepEnded(0, record(Status.DONE)))
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("::")]
    stops = [line.removeprefix("::stop-commands::") for line in lines if line.startswith("::stop-commands::")]
    assert len(stops) == 2
    assert lines[1:6] == [
        *(f"::stop-commands::{stops[0]}", f"::{stops[0]}::", "::add-mask::signature"),
        *(f"::stop-commands::{stops[1]}", f"::{stops[1]}::"),
    ]
