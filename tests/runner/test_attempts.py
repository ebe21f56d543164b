"""The tries of a step: what is retried, how long is waited, which try counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.model import ARTIFACT_MISSING, Entry, Layer, Retry, Status
from checkpoint_action.runner.attempts import Left, Try, backoff_delay, judge, run_tries
from checkpoint_action.runner.entries import UNREADABLE
from checkpoint_action.runner.outputs import MissingOutputError
from checkpoint_action.runner.process import End, Outcome
from checkpoint_action.runner.stop import StoppedError
from checkpoint_action.runner.value_files import ValueFileError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_waits_double_up_to_the_cap() -> None:
    retry = Retry(max=9, backoff=0.5, backoff_max=5)
    assert [backoff_delay(retry, failed) for failed in range(1, 7)] == [0.5, 1, 2, 4, 5, 5]


def test_two_thousand_tries_overflow_nothing() -> None:
    waits = [backoff_delay(Retry(backoff=1.0, backoff_max=3600), failed) for failed in range(1, 2001)]
    assert waits == sorted(waits)
    assert waits[-1] == 3600


@given(
    st.floats(0, allow_nan=False),
    st.floats(0, allow_nan=False),
    st.integers(1, 5000),
)
def test_a_wait_is_never_negative_nor_above_the_cap(backoff: float, cap: float, failed: int) -> None:
    assert 0 <= backoff_delay(Retry(backoff=backoff, backoff_max=cap), failed) <= cap


def test_a_backoff_of_nothing_waits_not_at_all() -> None:
    assert backoff_delay(Retry(backoff=0), 7) == 0


ENDS = {
    "done": (Status.DONE, 0),
    "1": (Status.FAILED, 1),
    "75": (Status.FAILED, 75),
    "killed": (Status.FAILED, None),
    "no output": (Status.FAILED, ARTIFACT_MISSING),
    "timeout": (Status.TIMEOUT, None),
    "stopped": (Status.INTERRUPTED, None),
}


@dataclass
class Run:
    """Runs tries that end as they are told, and notes what happens between."""

    ends: list[str]
    stop_in_wait: int = 0
    log: list[Any] = field(default_factory=list)

    def attempt(self, number: int) -> Try:
        status, code = ENDS[self.ends[number - 1]]
        self.log.append(number)
        return Try(number, status, code, 9 if code is None else None, 0.0, 0.0, error="e")

    def wait(self, seconds: float) -> bool:
        self.log.append(f"wait {seconds:g}")
        return sum(str(one).startswith("wait") for one in self.log) == self.stop_in_wait

    def announce(self, failed: Try, wait: float) -> None:
        self.log.append((failed.number, wait))

    def go(self, retry: Retry) -> Try:
        return run_tries(retry, self.attempt, self.wait, self.announce)


def retried(end: str, on: Any) -> bool:
    run = Run([end, "done"])
    return run.go(Retry(max=1, on=on)).number == 2


@pytest.mark.parametrize(
    ("on", "ends"),
    [
        (("error", "timeout"), {"1", "75", "killed", "no output", "timeout"}),
        (("error",), {"1", "75", "killed", "no output"}),
        (("timeout",), {"timeout"}),
        ((75,), {"75"}),
        ((75, "timeout"), {"75", "timeout"}),
        ((1, 75), {"1", "75"}),
        ((0,), set()),
        ((), set()),
    ],
)
def test_what_is_retried(on: Any, ends: set[str]) -> None:
    assert {end for end in ENDS if end != "done" and retried(end, on)} == ends


def test_a_time_out_then_success_is_success_after_two_tries() -> None:
    run = Run(["timeout", "done"])
    result = run.go(Retry(max=3, on=("timeout", 2)))
    assert (result.status, result.number) == (Status.DONE, 2)


@pytest.mark.parametrize("end", ["1", "timeout"])
def test_the_wait_is_honoured_after_both_kinds_of_failure(end: str) -> None:
    run = Run([end, end, end])
    result = run.go(Retry(max=2, backoff=1.5))
    assert run.log == [1, (1, 1.5), "wait 1.5", 2, (2, 3.0), "wait 3", 3]
    assert (result.number, result.status) == (3, ENDS[end][0])


def test_without_extra_tries_nothing_is_tried_again() -> None:
    run = Run(["1"])
    assert run.go(Retry()).number == 1
    assert run.log == [1]


def test_a_stop_during_the_wait_keeps_the_failed_try() -> None:
    run = Run(["1", "1", "done"], stop_in_wait=2)
    result = run.go(Retry(max=5))
    assert (result.number, result.status) == (2, Status.FAILED)


def test_a_try_that_was_stopped_is_the_last() -> None:
    run = Run(["stopped"])
    assert run.go(Retry(max=5)).status is Status.INTERRUPTED


def nothing_left() -> Left:
    raise MissingOutputError("it ended without its declared output a.txt")


def unreadable() -> Left:
    raise PermissionError(13, "Permission denied", "a.txt")


def outcome(end: End = End.EXITED, code: int | None = None, signal: int | None = None, *notes: str) -> Outcome:
    return Outcome(end, code, signal, 1.5, notes)


@pytest.mark.parametrize(
    ("of", "collect", "status", "code", "signal", "error"),
    [
        (outcome(code=0), Left, Status.DONE, 0, None, ""),
        (outcome(code=3), Left, Status.FAILED, 3, None, "it ended with exit code 3"),
        (outcome(signal=9), Left, Status.FAILED, None, 9, "it was ended by signal 9"),
        (outcome(End.TIMEOUT, 0), Left, Status.TIMEOUT, 0, None, "it took longer than its 2.5 s"),
        (outcome(End.TIMEOUT, None, 15), Left, Status.TIMEOUT, None, 15, "it took longer than its 2.5 s"),
        (outcome(End.STOPPED, 0), Left, Status.INTERRUPTED, 0, None, "it was stopped"),
        (outcome(End.NOT_STARTED, None, None, "why"), Left, Status.FAILED, None, None, "why"),
        (outcome(code=0), nothing_left, Status.FAILED, -2, None, "it ended without its declared output a.txt"),
        (outcome(code=3), nothing_left, Status.FAILED, 3, None, "it ended with exit code 3"),
    ],
)
def test_how_an_end_is_judged(
    of: Outcome, collect: Callable[[], Left], status: Status, code: int | None, signal: int | None, error: str
) -> None:
    found = judge(of, 2, 99.0, 2.5, collect)
    assert (found.status, found.exit_code, found.signal, found.error) == (status, code, signal, error)
    assert (found.number, found.started, found.duration) == (2, 99.0, 1.5)


def test_outputs_that_cannot_be_looked_at_are_a_failure_that_says_so() -> None:
    found = judge(outcome(code=0), 1, 0.0, None, unreadable)
    assert found.status is Status.FAILED
    assert "Permission denied" in found.error


def test_an_output_that_cannot_be_read_is_told_at_once() -> None:
    read, closed = (Entry(name, "file", 0o644, 7, 1, sha256) for name, sha256 in (("a", "0" * 64), ("b", UNREADABLE)))
    found = judge(outcome(End.EXITED, 0, None, "first"), 1, 0.0, None, lambda: Left(Layer((read, closed))))
    assert found.status is Status.DONE
    assert found.notes == ("first", "b cannot be read; it runs again next time")


def unusable() -> Left:
    raise ValueFileError("$GITHUB_ENV: no")


def test_values_that_cannot_be_used_are_a_failure_of_a_command_that_ended_well() -> None:
    found = judge(outcome(code=0), 1, 0.0, None, unusable)
    assert (found.status, found.exit_code) == (Status.FAILED, 0)
    assert found.error == "what it hands on cannot be used: $GITHUB_ENV: no"


def cut_short() -> Left:
    raise StoppedError


def test_a_stop_while_outputs_are_recorded_interrupts_the_step() -> None:
    found = judge(outcome(code=0), 1, 0.0, None, cut_short, stopped_by="SIGINT")
    assert found.status is Status.INTERRUPTED
    assert found.error == "it was stopped by SIGINT before its outputs were recorded"


def test_an_endless_cap_is_allowed() -> None:
    assert backoff_delay(Retry(backoff=1e300, backoff_max=math.inf), 2000) > 1e300
