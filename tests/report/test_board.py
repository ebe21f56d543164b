"""What the lines at the bottom say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkpoint_action.model import Action, Decision, Entry, Job, Layer, Reason, Status
from checkpoint_action.report.board import Board
from checkpoint_action.report.estimate import Known, seconds_left
from checkpoint_action.report.style import Style
from checkpoint_action.runner import events
from checkpoint_action.runner.selection import Selection
from checkpoint_action.runner.stop import StopRequest
from checkpoint_action.store.metered import Moved
from tests.report.stories import ended, job, record


class Told:
    """A board and the time it goes by."""

    def __init__(self, job: Job, *, known: Known | None = None, jobs: int = 1, style: Style | None = None) -> None:
        self.now = 0.0
        self.stop = StopRequest()
        known = known or Known({}, job.steps, Selection())
        self.board = Board(known, style or Style(), jobs=jobs, stop=self.stop, now=lambda: self.now)
        self.board(events.RunStarted(job))

    def start(self, position: int, step: str) -> None:
        self.board(events.StepStarted(position, Decision(step, Action.RUN, Reason.NEVER_RAN), "c"))

    def lines(self, columns: int = 79, rows: int = 8) -> list[str]:
        return self.board.lines(columns, rows)


def test_a_run_from_its_beginning_to_its_end() -> None:
    told = Told(job("fetch", "build", "test"))
    assert told.lines() == ["looking at what is done | 3 left"]
    told.board(events.StepSkipped(0, Decision("fetch", Action.SKIP, Reason.DONE), record("fetch")))
    told.start(1, "build")
    told.now = 3725
    assert told.lines() == ["[2/3] build  1:02:05 | 1 done, 1 left"]
    told.board(events.StepEnded(1, record("build", Status.FAILED)))
    told.start(2, "test")
    assert told.lines() == ["[3/3] test  0:00 | 1 done, 1 failed"]
    told.board(events.StepEnded(2, record("test")))
    assert told.lines() == ["finishing | 2 done, 1 failed"]
    told.board(ended())
    assert told.lines() == []


def test_what_does_not_fit_goes_from_the_least_important_on() -> None:
    told = Told(job("fetch", "build-everything"))
    told.board(events.StepSkipped(0, Decision("fetch", Action.SKIP, Reason.DONE), record("fetch")))
    told.start(1, "build-everything")
    shown = {columns: told.lines(columns)[0] for columns in (60, 32, 24, 20, 14)}
    assert shown == {
        60: "[2/2] build-everything  0:00 | 1 done",
        32: "[2/2] build-everything  0:00",
        24: "build-everything  0:00",
        20: "build-every...  0:00",
        14: "build...  0:00",
    }
    assert len(told.lines(9)[0]) == 9


def test_a_retry_is_counted_down_and_its_number_stays() -> None:
    told = Told(job("a"))
    told.start(0, "a")
    told.board(events.StepRetried(0, record("a", Status.FAILED), 90.0))
    assert told.lines() == ["[1/1] a  try 2 in 1:30"]
    told.now = 89.5
    assert told.lines() == ["[1/1] a  try 2 in 0:01"]
    told.board(events.StepWaiting(0, "a", "example.com:443"))
    told.now = 95.5
    assert told.lines() == ["[1/1] a  waiting for example.com:443, 0:06"]
    told.board(events.TryStarted(0, "a", 2))
    told.now = 100
    assert told.lines() == ["[1/1] a  try 2, 0:04"]


def test_what_is_put_back_and_what_has_reached_the_store() -> None:
    told = Told(job("a", "b"))
    layer = Layer((Entry("f", "file", 0o644, 0, 3 << 20, "d"),))
    told.board(events.StepRestoring(0, replace(record("a"), layer=layer)))
    assert told.lines() == ["[1/2] a  putting back 3.0 MiB, 0:00 | 1 left"]
    told.board(events.StepRestored(0, Decision("a", Action.RESTORE, Reason.RESTORED), record("a"), 1.0))
    told.start(1, "b")
    told.board(events.StepsKept(("a",), "s3", 2048))
    assert told.lines() == ["[2/2] b  0:00 | a kept (2.0 KiB), 1 done"]
    told.now = 6
    assert told.lines() == ["[2/2] b  0:06 | 1 done"]


def test_transfers_show_how_far_they_are() -> None:
    told = Told(job("a", "b"))
    told.start(0, "a")
    told.board.moved(Moved(up=True, key="k", size=0, total=3 << 20))
    told.board.moved(Moved(up=False, key="l", size=2048))
    told.board.moved(Moved(up=False, key="m", size=1024))
    assert told.lines() == ["[1/2] a  0:00 | fetching 3.0 KiB, sending 3.0 MiB, 1 left"]
    told.board.moved(Moved(up=True, key="k", ended=True))
    told.board.moved(Moved(up=False, key="l", ended=True))
    told.board.moved(Moved(up=False, key="m", size=0))
    assert told.lines() == ["[1/2] a  0:00 | fetching, 1 left"]


def test_before_the_run_it_says_what_is_waited_for() -> None:
    board = Board(Known({}, (), Selection()), Style())
    assert board.lines(40, 5) == ["getting ready"]
    board.moved(Moved(up=False, key="k"))
    assert board.lines(40, 5) == ["asking the store | fetching"]


def test_several_at_once_have_a_line_each_up_to_what_there_is_room_for() -> None:
    told = Told(job(*"abcdefgh"), jobs=8)
    for position, step in enumerate("abcde"):
        told.start(position, step)
    assert told.lines(rows=8)[:2] == ["[1/8] a  0:00", "[2/8] b  0:00"]
    assert told.lines(rows=8)[4:] == ["[5/8] e  0:00", "3 left"]
    assert told.lines(rows=4) == ["[1/8] a  0:00", "[2/8] b  0:00", "and 3 more", "3 left"]
    assert told.lines(rows=1) == ["[1/8] a  0:00 | 5 at once, 3 left"]


def test_a_stop_says_what_is_waited_for() -> None:
    told = Told(job("a"))
    told.start(0, "a")
    told.stop.request(15)
    assert told.lines() == ["stopping, waiting for a to end"]
    assert told.lines(20) == ["stopping, waiting..."]


def test_colours_take_no_room() -> None:
    told = Told(job("a", "b"), style=Style(colored=True, unicode=True))
    told.start(0, "a")
    assert told.lines() == ["\x1b[1m[1/2] a  0:00\x1b[0m\x1b[2m · 1 left\x1b[0m"]


@pytest.mark.parametrize(
    ("settled", "ran", "running", "jobs", "left"),
    [
        ((), (), {"a": 4.0}, 1, 46.0),  # b and c come after it
        (("a",), ("a",), {"b": 5.0}, 1, 35.0),
        (("a",), (), {"b": 5.0}, 1, 35.0),
        (("a", "b"), (), {}, 1, 0.0),  # c is done and nothing it needs has run
        ((), (), {"a": 11.0}, 1, None),  # it takes longer than ever
    ],
)
def test_the_time_left_is_that_of_what_is_likely_to_run(
    settled: tuple[str, ...], ran: tuple[str, ...], running: dict[str, float], jobs: int, left: float | None
) -> None:
    first, second, third = job("a", "b", "c").steps
    steps = (first, replace(second, needs=("a",)), replace(third, needs=("b",)))
    records = {
        "a": record("a", seconds=10, exit_code=0),
        "b": record("b", seconds=10, exit_code=0),
        "c": record("c", seconds=30, exit_code=0),
    }
    known = Known(records, steps, Selection())
    assert seconds_left(steps, known, settled=settled, ran=ran, running=running, jobs=jobs) == left


def test_the_time_left_is_not_known_where_a_step_has_never_ended_well() -> None:
    steps = job("a", "b").steps
    known = Known({"a": record("a", seconds=10, exit_code=0), "b": record("b", Status.FAILED)}, steps, Selection())
    assert seconds_left(steps, known, settled=(), ran=(), running={"a": 1.0}) is None
    known = Known(
        {"a": record("a", seconds=10, exit_code=0), "b": record("b", seconds=5, exit_code=0)},
        steps,
        Selection(everything=True),
    )
    assert seconds_left(steps, known, settled=(), ran=(), running={"a": 1.0}) == 14.0
    known = Known(
        {"a": record("a", seconds=10, exit_code=0), "b": record("b", seconds=5, exit_code=0)},
        steps,
        Selection(forced=frozenset("b")),
    )
    assert seconds_left(steps, known, settled=("a",), ran=(), running={}) == 5.0


def test_steps_at_once_take_as_long_as_the_longest_way_or_their_share() -> None:
    steps = job(*"abcd").steps
    known = Known({step: record(step, seconds=10, exit_code=0) for step in "abcd"}, steps, Selection(everything=True))
    assert seconds_left(steps, known, settled=(), ran=(), running={}, jobs=2) == 20.0
    assert seconds_left(steps, known, settled=(), ran=(), running={}, jobs=9) == 10.0
