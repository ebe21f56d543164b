"""Which record counts: this machine's own, or what a store tells."""

from __future__ import annotations

import pytest

from checkpoint_action.model import ArchiveRef, Record, Status
from checkpoint_action.runner.merging import to_take_over

KEPT = ArchiveRef("key", "layer")
OTHER = ArchiveRef("other", "layer")


def record(
    status: str, started: float = 1.0, *, fingerprint: str = "f", result: str = "r", archive: ArchiveRef | None = None
) -> Record:
    return Record("a", Status(status), fingerprint, "x", started=started, result=result, archive=archive)


@pytest.mark.parametrize("status", list(Status))
def test_what_is_not_known_here_is_taken_over(status: Status) -> None:
    told = record(status.value)
    assert to_take_over({}, {"a": told}) == {"a": told}


@pytest.mark.parametrize(
    ("local", "told", "taken"),
    [
        # a finished step goes before an unfinished one, however old it is
        (record("failed", 9.0), record("done", 1.0), True),
        (record("timeout", 9.0), record("done", 1.0, fingerprint="g"), True),
        (record("done", 1.0), record("failed", 9.0), False),
        (record("done", 1.0), record("failed", 9.0, fingerprint="g"), False),
        # what is unfinished here and there: this machine has its own progress
        (record("failed", 1.0), record("interrupted", 9.0), False),
        # a run died here in the very step that another machine has finished, or in another one
        (record("running", 9.0), record("done", 1.0), True),
        (record("running", 1.0), record("done", 9.0, fingerprint="g"), False),
        # of two finished ones with other inputs, the later
        (record("done", 1.0), record("done", 9.0, fingerprint="g"), True),
        (record("done", 9.0), record("done", 1.0, fingerprint="g"), False),
        # the same step with the same result: what can be put back, and of two of these the later
        (record("done", 9.0), record("done", 1.0, archive=KEPT), True),
        (record("done", 1.0), record("done", 9.0), False),
        (record("done", 9.0, archive=KEPT), record("done", 1.0, archive=OTHER), False),
        (record("done", 1.0, archive=KEPT), record("done", 9.0, archive=OTHER), True),
        # the same step that left something else there: the files here are this one's
        (record("done", 1.0, result="mine"), record("done", 9.0, archive=KEPT), False),
    ],
)
def test_which_of_two_counts(local: Record, told: Record, taken: bool) -> None:
    assert to_take_over({"a": local}, {"a": told}) == ({"a": told} if taken else {})
