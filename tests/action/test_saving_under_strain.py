"""``checkpoint-run save`` and the progress of failed steps when the store, the clock or an archive is against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.act.proxy import Proxy
from tests.action.manifest import ROOT
from tests.actions_service.faults import Fault

if TYPE_CHECKING:
    from tests.action.archives import Held
    from tests.action.machine import Workflow

NEVER = Fault.slow(600)
"""An answer that no test waits for."""


def test_a_save_that_does_not_reach_the_store_does_not_fail_the_step(workflow: Workflow) -> None:
    """Promise: a checkpoint problem never fails a job that would have passed without us."""
    steps = """\
- id: build
  partial: [part]
  run: |
    echo x > part
    checkpoint-run save
    echo "went on with $?"
"""
    workflow.service.faults.next("CreateCacheEntry", Fault.status(400), 100)
    ended = workflow.run(steps, store="cache")
    assert ended.code == 0
    assert "went on with 0" in ended.log
    assert "checkpoint-run: 1 paths with 2 bytes are on this disk, but not in the store: Actions cache: " in ended.log
    [warning] = ended.warnings
    assert "going on without the store" in warning


def test_a_save_that_does_not_reach_the_store_is_an_error_where_that_is_asked_for(workflow: Workflow) -> None:
    steps = "- {id: build, partial: [part], run: 'echo x > part; checkpoint-run save || { echo code $?; exit 1; }'}\n"
    workflow.service.faults.next("CreateCacheEntry", Fault.status(400), 100)
    ended = workflow.run(steps, store="cache", fail_on_store_error="true")
    assert ended.code != 0
    assert "not saved: Actions cache: " in ended.log
    assert "\ncode 5\n" in ended.log


def test_saves_without_a_store_say_so(workflow: Workflow) -> None:
    steps = "- {id: build, partial: [part], run: 'echo x > part; checkpoint-run save'}\n"
    ended = workflow.run(steps, store="none")
    assert ended.code == 0
    assert "are on this disk, but not in the store: no store is used" in ended.log


def test_too_many_requests_are_waited_out(workflow: Workflow, held: Held) -> None:
    steps = """\
- id: build
  partial: [part]
  run: |
    for n in 1 2 3; do echo $n > part; checkpoint-run save; done
    echo > "$KEEP/ready"; exec sleep 1000
"""
    ready = workflow.fifo("ready")
    workflow.service.faults.next("CreateCacheEntry", Fault.status(429, retry_after="1"), 2)
    running = workflow.start(steps)
    running.hear(ready)
    running.die()
    assert running.log.count("are in the store") == 3
    assert len(held.entries) == 3, "each answer stands for an upload"
    assert "::warning" not in running.log


@pytest.mark.slow
def test_a_save_asked_for_while_the_run_is_stopped_is_answered_at_once(workflow: Workflow, held: Held) -> None:
    steps = """\
- id: build
  partial: [part]
  run: |
    echo 1 > part
    trap 'echo 2 > part; checkpoint-run save 2> "$KEEP/said"; echo "$?" > "$KEEP/code"; exit 1' INT
    echo > "$KEEP/ready"
    sleep 1000 & wait
"""
    ready = workflow.fifo("ready")
    running = workflow.start(steps)
    running.hear(ready)
    ended = running.cancel()
    assert "SIGKILL" not in ended.asked
    assert workflow.kept("code") == ["0"]
    [said] = workflow.kept("said")
    assert said.endswith("are on this disk, but not in the store: the run is being stopped")
    assert held.statuses() == {"build": "interrupted"}
    [entry] = held.records()["build"]["partial"]["workspace"]["entries"]
    assert entry["size"] == 2, "what it has at its end is kept by the run itself"


@pytest.mark.slow
def test_a_cancelled_job_does_not_wait_for_a_save_that_hangs(workflow: Workflow) -> None:
    steps = """\
- id: build
  partial: [part]
  run: |
    echo x > part
    trap 'exit 1' INT
    checkpoint-run save &
    wait
"""
    workflow.service.faults.next("CreateCacheEntry", NEVER, 100)
    running = workflow.start(steps)
    running.wait_until(lambda: workflow.service.calls["CreateCacheEntry"] > 0, "nothing goes up")
    ended = running.cancel()
    assert "SIGKILL" not in ended.asked
    assert ended.code == 130
    assert any("not stored within" in text and "what build has so far" in text for text in ended.warnings)


@pytest.mark.slow
def test_progress_that_does_not_fit_into_the_grace_costs_nothing_else(workflow: Workflow, held: Held) -> None:
    """Case: far more than anybody can read in three seconds, and a finished step whose turn to go up is yet to come."""
    workflow.action = ROOT  # which waits between two uploads
    steps = """\
- {id: one, run: echo 1 > one}
- {id: two, run: echo 2 > two}
- id: build
  partial: [build/]
  run: |
    mkdir build
    truncate -s 200G build/huge
    trap '' INT TERM
    echo > "$KEEP/ready"
    sleep 1000
"""
    ready = workflow.fifo("ready")
    running = workflow.start(steps)
    running.hear(ready)
    ended = running.cancel()
    (ended.workspace / "build/huge").unlink()
    assert "SIGKILL" not in ended.asked
    assert ended.code == 130
    assert ended.outputs["result"] == "failure"
    [warning] = ended.warnings
    assert warning == "Actions cache: not stored within 3 s, so another machine does it again: what build has so far"
    assert held.statuses()["two"] == "done"
    second = workflow.run(steps.replace("sleep 1000", "true").replace('echo > "$KEEP/ready"', "rm build/huge"))
    assert second.outputs["restored"] == ["one", "two"]


@pytest.mark.slow
def test_a_store_that_dies_while_progress_goes_up_costs_one_warning(workflow: Workflow) -> None:
    steps = "- {id: build, partial: [part], run: 'head -c 3000000 /dev/urandom > part; exit 3'}\n"
    upstream = int(workflow.service.origin.rpartition(":")[2])
    proxy = Proxy(upstream, dies_after=100_000)
    try:
        token = workflow.runtime["ACTIONS_RUNTIME_TOKEN"]
        workflow.runtime = {
            **workflow.service.env("v1", token=token),
            "ACTIONS_CACHE_URL": workflow.service.cache_url.replace(workflow.service.origin, proxy.url),
        }
        ended = workflow.run(steps)
    finally:
        proxy.die()
    assert proxy.sent > 100_000
    assert ended.code == 1
    [error] = ended.errors
    assert error.endswith("it ended with exit code 3")
    [warning] = ended.warnings
    assert "going on without the store" in warning


@pytest.mark.parametrize(("part", "path"), [("workspace", "../evil"), ("folder", "link/evil")])
def test_hostile_progress_is_refused_before_anything_is_written(
    workflow: Workflow, held: Held, part: str, path: str
) -> None:
    steps = """\
- id: build
  partial: [build/]
  run: |
    find . "$CHECKPOINT_DIR" -name 'evil*' > "$KEEP/found"
    mkdir -p build; echo x > build/part; echo x > "$CHECKPOINT_DIR/part"; exit 3
"""
    workflow.run(steps)

    def change(header: dict[str, Any]) -> None:
        layer = header["records"]["build"]["partial"][part]
        [good] = [entry for entry in layer["entries"] if entry["type"] == "file"]
        link = {"path": "link", "type": "link", "mode": "0777", "mtime_ns": 1, "target": str(workflow.keep)}
        layer["entries"] = [link, good | {"path": path}]

    forged = held.forge(change)
    ended = workflow.run(steps)
    assert ended.outputs["failed"] == ["build"]
    [warning] = ended.warnings
    assert f"{forged.key} is not usable" in warning
    assert workflow.kept("found") == []
    assert not list(workflow.folder.rglob("evil*"))
