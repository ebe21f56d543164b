"""The table at the end of a run."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, Decision, Reason, Status
from checkpoint_action.report.ending import Ending
from checkpoint_action.report.money import parse_rate
from checkpoint_action.runner import events
from tests.report.stories import ended, job, record, runs

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.runner.events import Event


def told(ids: list[str], *given: Event, rate: str = "", code: int = 0, columns: int | None = None) -> list[str]:
    ending = Ending(lambda undone, _pending, _all: f"again {' '.join(undone)}", rate=parse_rate(rate) if rate else None)
    for event in (events.RunStarted(job(*ids)), *given):
        ending(event)
    run = ended(code, failed=["b"] if code else [], pending=["c"] if code else [])
    return [text for text, _kind in ending.lines(run, columns)]


def skipped(position: int, step: str, seconds: float = 65.0) -> Event:
    return events.StepSkipped(position, Decision(step, Action.SKIP, Reason.DONE), record(step, seconds=seconds))


def ran(position: int, step: str, status: Status = Status.DONE, **more: object) -> list[Event]:
    return [one.event for one in runs(0, position, record(step, status, **more))]  # type: ignore[arg-type]


def test_each_step_has_a_row(tmp_path: Path) -> None:
    log = tmp_path / "b.log"
    log.write_bytes(b"one\n\x1b[31mtwo\x1b[0m\n50%\rthree\n")
    bad = ran(1, "b", Status.FAILED, seconds=2.0, tries=3, error="it ended with exit code 3", log=str(log))
    assert told(["a", "b", "c"], skipped(0, "a"), *bad, code=1, rate="$36/h") == [
        "  step  result    time             saved  why",
        "  a     skipped         1 min 05 s $0.65  done",
        "  b     failed   2.0 s                    3 tries; it ended with exit code 3",
        "  c     left",
        f"last lines of b, from {log}:",
        "  | one",
        "  | two",
        "  | three",
        "what is done is saved; to go on, run:",
        "  again b c",
    ]


def test_of_many_steps_the_skipped_and_the_left_are_a_line_each() -> None:
    ids = [f"s{n}" for n in range(40)]
    lines = told(ids, *(skipped(n, f"s{n}") for n in range(30)), *ran(30, "s30"))
    assert lines == [
        "  step  result        time  why",
        "  s30   done    1 min 05 s  never-ran",
        "  30 skipped: s0, s1, s2, s3, s4, s5, ..., saved 32 min 30 s",
        "  9 left: s31, s32, s33, s34, s35, s36, ...",
    ]


def test_one_step_needs_no_table() -> None:
    assert told(["a"], *ran(0, "a")) == []


def test_no_line_is_wider_than_the_terminal_nor_drives_it() -> None:
    bad = ran(0, "a" * 100, Status.FAILED, error="日本語\x1b[2J" * 30)
    for line in told(["a" * 100, "c"], *bad, code=1, columns=30)[:3]:
        assert len(line.encode("utf-16-le")) // 2 + sum(not char.isascii() for char in line) <= 30
        assert "\x1b" not in line


def test_a_log_that_is_gone_is_left_out(tmp_path: Path) -> None:
    bad = ran(1, "b", Status.FAILED, error="e", log=str(tmp_path / "gone"))
    assert not [line for line in told(["a", "b"], *bad, code=1) if line.startswith("last lines")]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes of this kind")
def test_a_log_that_is_a_pipe_by_now_holds_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    bad = ran(0, "b", Status.FAILED, log=str(tmp_path / "log"))
    assert not any("last lines" in line for line in told(["a", "b"], *bad, code=1))


def test_where_only_a_person_can_decide_the_same_command_is_not_told_again() -> None:
    ending = Ending(lambda *_told: "again")
    ending(events.RunStarted(job("a", "b")))
    run = replace(ended(1, failed=[], pending=["a", "b"]), held=("a",))
    assert not any("to go on" in text for text, _kind in ending.lines(run, None))
    run = replace(ended(1, failed=["b"], pending=["a"]), held=("a",))
    assert any("to go on" in text for text, _kind in ending.lines(run, None))
