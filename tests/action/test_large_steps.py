"""Steps that leave much, and steps that leave little, on their way to the cache and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.actions_service.faults import Fault

if TYPE_CHECKING:
    from tests.action.archives import Held
    from tests.action.machine import Workflow

LARGE = "- {id: build, run: head -c 60000000 /dev/urandom > big}\n"


def test_a_small_step_costs_three_calls(workflow: Workflow) -> None:
    ended = workflow.run("- {id: build, run: echo x > small}\n")
    assert ended.code == 0
    calls = workflow.service.calls
    assert [calls[name] for name in ("CreateCacheEntry", "PutBlob", "FinalizeCacheEntryUpload")] == [1, 1, 1]
    assert (calls["PutBlock"], calls["PutBlockList"]) == (0, 0)


@pytest.mark.parametrize("broken", [False, True])
def test_a_large_step_goes_up_in_blocks_and_comes_back_byte_for_byte(
    workflow: Workflow, held: Held, broken: bool
) -> None:
    """Also where the answer to the reservation is lost, so that its key is taken."""
    if broken:
        workflow.service.faults.next("CreateCacheEntry", Fault.reset(handled=True))
    first = workflow.run(LARGE)
    assert first.code == 0
    assert first.warnings == []
    calls = workflow.service.calls
    assert calls["PutBlob"] == 0
    assert calls["PutBlock"] >= 4
    assert calls["PutBlockList"] == 1
    [entry] = held.entries
    assert held.records()["build"]["archive"]["key"] == entry.key
    second = workflow.run(LARGE)
    assert second.outputs["restored"] == ["build"]
    assert (second.workspace / "big").read_bytes() == (first.workspace / "big").read_bytes()


def test_a_run_that_finds_all_in_place_reads_the_beginning_of_a_large_archive_alone(workflow: Workflow) -> None:
    workflow.run(LARGE)
    machine = workflow.machine()
    machine.run(LARGE)
    before = workflow.service.calls["GetBlob"]
    again = machine.run(LARGE)
    assert again.outputs["restored"] == []
    assert workflow.service.calls["GetBlob"] <= before + 1
