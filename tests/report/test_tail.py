"""The last lines of what a failed step printed."""

from __future__ import annotations

import pytest

from checkpoint_action.model import Status
from checkpoint_action.report.tail import OutputTail
from checkpoint_action.runner import events
from tests.report.stories import record, runs

STARTED, FAILED = (told.event for told in runs(0, 0, record("a", Status.FAILED)))


def tail_of(*pieces: bytes, secrets: tuple[str, ...] = ()) -> tuple[str, ...]:
    tail = OutputTail(secrets)
    tail(STARTED)
    for piece in pieces:
        tail.write(piece)
    tail(FAILED)
    return tail.of["a"]


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (b"", ()),
        (b"\n\n", ()),
        (b"one\ntwo", ("one", "two")),
        (b"one\r\ntwo\n\n", ("one", "two")),
        (b"10%\r20%\r30%\ndone\n", ("30%", "done")),
        (b"\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\\n", ("red link",)),
        (b"a\tb\x07\xff", ("a       b\\x07\ufffd",)),
        (b"".join(b"%d\n" % number for number in range(99)), tuple(str(number) for number in range(69, 99))),
        (b"x" * 100_000 + b"\nlast", ("last",)),
        (b"y" * 300_000, ("y" * 8192,)),
    ],
)
def test_the_last_lines_are_text_for_people(output: bytes, lines: tuple[str, ...]) -> None:
    assert tail_of(output) == lines
    assert tail_of(*(output[at : at + 1000] for at in range(0, len(output), 1000))) == lines


def test_secrets_masks_and_tokens_are_hidden() -> None:
    lines = tail_of(b"a hunter2\n::add-mask::s3cret\ns3c", b"ret\nghs_" + b"x" * 36, secrets=("hunter2",))
    assert lines == ("a ***", "::add-mask::***", "***", "***")


def test_a_secret_that_was_cut_leaves_nothing_of_itself() -> None:
    secret = "abcdefgh" * 300
    for extra in range(0, 3000, 177):
        lines = tail_of((secret + "\n").encode() * 60 + b"z" * extra, secrets=(secret,))
        assert not {"a", "h"} & set("".join(lines))


def test_only_the_last_try_of_a_failed_step_counts() -> None:
    tail = OutputTail()
    tail(STARTED)
    tail.write(b"first\n")
    tail(events.StepRetried(0, record("a", Status.FAILED), 1.0))
    tail.write(b"second\n")
    tail(FAILED)
    tail.write(b"beside\n")
    done = record("b")
    tail(events.StepEnded(1, done))
    assert tail.of == {"a": ("second",)}


def test_a_mask_holds_for_later_steps_too() -> None:
    tail = OutputTail()
    tail.write(b"::add-mask::s3cret\n")
    tail(events.StepEnded(0, record("b")))
    tail(STARTED)
    tail.write(b"is s3cret")
    tail(FAILED)
    assert tail.of["a"] == ("is ***",)
    assert tail.masked == {"s3cret"}


def test_no_more_is_kept_than_anybody_reads() -> None:
    tail = OutputTail()
    for number in range(60):
        tail.write(b"x" * 1000)
        tail(events.StepEnded(number, record(str(number), Status.TIMEOUT)))
    assert len(tail.of) == 50
