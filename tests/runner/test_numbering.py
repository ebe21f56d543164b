"""Numbers of archives, by which the newest is told."""

from __future__ import annotations

import time

import pytest

from checkpoint_action.errors import StoreError, StoreTakenError
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.runner.numbering import Numbering

KEYS = KeyScheme("run1", job_slug("demo", "demo"), "1", "1")


class Taken:
    """A store where the first keys are taken."""

    def __init__(self, times: int) -> None:
        self.keys: list[str] = []
        self._times = times

    def send(self, key: str) -> None:
        self.keys.append(key)
        if len(self.keys) <= self._times:
            raise StoreTakenError("memory: it is taken")

    @property
    def numbers(self) -> list[int]:
        return [origin.sequence for key in self.keys if (origin := KEYS.origin(key)) is not None]


def test_each_archive_has_a_greater_number_than_the_one_before() -> None:
    store, numbering = Taken(0), Numbering(KEYS)
    for step in "abc":
        numbering.send_under_new_key(step, store.send)
    assert store.numbers == list(range(store.numbers[0], store.numbers[0] + 3))
    assert [origin.step for key in store.keys if (origin := KEYS.origin(key)) is not None] == ["a", "b", "c"]


def test_the_numbers_go_past_one_that_is_known_and_never_back() -> None:
    store, numbering = Taken(0), Numbering(KEYS)
    later = (time.time_ns() // 1_000_000) + 3_600_000
    numbering.go_past(later)
    numbering.go_past(7)
    numbering.send_under_new_key("a", store.send)
    assert store.numbers == [later + 1]


def test_where_a_key_is_taken_the_next_one_is_tried_once() -> None:
    store = Taken(1)
    Numbering(KEYS).send_under_new_key("a", store.send)
    assert len(set(store.keys)) == 2
    store = Taken(2)
    with pytest.raises(StoreTakenError):
        Numbering(KEYS).send_under_new_key("a", store.send)
    assert len(store.keys) == 2


def test_any_other_fault_is_not_tried_again() -> None:
    keys: list[str] = []

    def fail(key: str) -> None:
        keys.append(key)
        raise StoreError("memory: 503")

    with pytest.raises(StoreError, match="503"):
        Numbering(KEYS).send_under_new_key("a", fail)
    assert len(keys) == 1
