"""Cancelled jobs and machines that die: what is in the store afterwards, and what the next machine makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.actions_service.faults import Fault

if TYPE_CHECKING:
    from tests.action.archives import Held
    from tests.action.machine import Workflow

PUBLISH = """\
- {id: build, run: 'echo app > app'}
- id: publish
  on-crash: stop
  outputs: []
  run: |
    echo ran >> "$KEEP/published"
    SAVE
    test $GITHUB_RUN_ATTEMPT -gt 5 || { echo > "$KEEP/ready"; exec sleep 1000; }
- {id: after, run: 'echo ran >> "$KEEP/after"'}
"""


@pytest.mark.parametrize("save", [":", 'echo x > "$CHECKPOINT_DIR/x"; checkpoint-run save'])
def test_a_step_that_must_not_run_twice_waits_for_a_person_once_its_machine_has_died(
    workflow: Workflow, save: str
) -> None:
    steps = PUBLISH.replace("SAVE", save)
    ready = workflow.fifo("ready")
    running = workflow.start(steps)
    running.hear(ready)
    running.die()
    for _attempt in range(2 if save == ":" else 1):
        ended = workflow.run(steps)
        assert ended.code == 1
        assert ended.outputs["result"] == "failure"
        assert ended.outputs["ran"] == []
        assert ended.outputs["restored"] == ["build"]
        [error] = ended.errors
        assert error.startswith("[2/3] publish: not run: the machine was lost while it ran")
        assert "start a new run of the workflow" in error
    assert workflow.kept("published") == ["ran"]
    assert workflow.kept("after") == []
    for _attempt in range(3):
        workflow.next_attempt()
    workflow.run_id = "78"  # what the message says: a new run
    assert workflow.run(steps).outputs["ran"] == ["build", "publish", "after"]


def test_the_other_way_out_that_the_message_names_works_too(workflow: Workflow) -> None:
    ready = workflow.fifo("ready")
    running = workflow.start(PUBLISH.replace("SAVE", ":"), scope="commit")
    running.hear(ready)
    running.die()
    workflow.run_id = "78"
    for _attempt in range(5):
        workflow.next_attempt()
    steps = PUBLISH.replace("SAVE", ":")
    assert workflow.run(steps, scope="commit").outputs["ran"] == []
    assert workflow.run(steps, scope="commit", force="true").outputs["ran"] == ["build", "publish", "after"]
    assert workflow.run(steps, scope="commit").outputs["ran"] == []


@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_a_step_that_must_not_run_twice_runs_again_when_it_is_known_how_it_ended(workflow: Workflow, how: str) -> None:
    steps = PUBLISH.replace("SAVE", ":" if how == "cancelled" else "test $GITHUB_RUN_ATTEMPT -gt 1 || exit 3")
    steps = steps.replace("-gt 5", "-gt 1")
    ready = workflow.fifo("ready")
    running = workflow.start(steps)
    if how == "cancelled":
        running.hear(ready)
        assert running.cancel().asked == ["SIGINT"]
    else:
        running.wait()
    second = workflow.run(steps)
    assert second.outputs["ran"] == ["publish", "after"]
    assert second.why("publish").startswith("interrupted-before" if how == "cancelled" else "failed-before")


def test_an_announcement_that_cannot_be_made_does_not_keep_the_step_from_running(workflow: Workflow) -> None:
    workflow.service.faults.next("CreateCacheEntry", Fault.status(400), 100)
    steps = "- {id: publish, on-crash: stop, run: 'true', outputs: []}\n"
    ended = workflow.run(steps, store="cache")
    assert ended.outputs["ran"] == ["publish"]
    assert ended.code == 0
    assert any("another machine would not know that it has started" in text for text in ended.warnings)


CANCELLED = """\
- {id: one, run: 'echo 1 > one; echo "A=1" >> "$GITHUB_ENV"'}
- {id: two, run: 'echo 2 > two'}
- id: build
  partial: [build/]
  run: |
    mkdir -p build
    trap 'echo asked >> build/log; exit 1' INT
    echo begun >> build/log
    echo > "$KEEP/ready"
    test $GITHUB_RUN_ATTEMPT != 1 || { sleep 1000 & wait; }
- {id: last, run: 'cat build/log > "$KEEP/log"'}
"""


def test_all_that_is_finished_is_kept_when_the_job_is_cancelled_and_what_the_running_step_has(
    workflow: Workflow, held: Held
) -> None:
    ready = workflow.fifo("ready")
    running = workflow.start(CANCELLED)
    running.hear(ready)
    ended = running.cancel()
    assert ended.asked == ["SIGINT"]
    assert ended.code == 130
    assert not ended.warnings
    assert (ended.outputs["result"], ended.outputs["ran"]) == ("failure", ["one", "two", "build"])
    assert ended.machine.leftovers() == []
    assert held.statuses() == {"one": "done", "two": "done", "build": "interrupted"}
    (workflow.keep / "ready").unlink()
    second = workflow.run(CANCELLED)
    assert (second.outputs["restored"], second.outputs["ran"]) == (["one", "two"], ["build", "last"])
    assert second.why("build") == "interrupted-before: it was stopped by SIGINT"
    assert workflow.kept("log") == ["begun", "asked", "begun"]


def test_a_machine_that_dies_loses_nothing_that_was_stored(workflow: Workflow, held: Held) -> None:
    """Case: no save was asked for: what the step had is lost, and what an earlier try had is not."""
    steps = """\
- {id: one, run: 'echo 1 > one'}
- id: build
  partial: [part]
  run: |
    echo $GITHUB_RUN_ATTEMPT >> part
    case $GITHUB_RUN_ATTEMPT in
      1) exit 3 ;;
      2) echo > "$KEEP/ready"; exec sleep 1000 ;;
    esac
    cat part > "$KEEP/part"
"""
    ready = workflow.fifo("ready")
    workflow.run(steps)
    running = workflow.start(steps)
    running.hear(ready)
    running.die()
    assert held.statuses() == {"one": "done", "build": "failed"}
    third = workflow.run(steps)
    assert third.why("build") == "failed-before: it ended with exit code 3"
    assert workflow.kept("part") == ["1", "3"]


def test_reasons_of_the_attempt_before_reach_the_next_machine(workflow: Workflow) -> None:
    steps = """\
- {id: fails, run: 'exit 7', needs: []}
- {id: signalled, run: 'kill -9 $$', needs: []}
- {id: slow, run: 'exec sleep 1000', needs: [], timeout: 1s}
- {id: lacks, run: 'true', needs: [], outputs: [dist/]}
- {id: waits, run: 'true', needs: [fails]}
"""
    assert workflow.run(steps, continue_on_error="true").code == 1
    second = workflow.run(steps, continue_on_error="true")
    assert {step: second.why(step) for step in ("fails", "signalled", "slow", "lacks", "waits")} == {
        "fails": "failed-before: it ended with exit code 7",
        "signalled": "failed-before: it was ended by signal 9",
        "slow": "timed-out-before: it took longer than its 1 s",
        "lacks": "failed-before: it ended without its declared output dist/",
        "waits": "",
    }


def test_restored_files_that_a_later_checkout_wipes_are_put_back_by_the_next_use(workflow: Workflow) -> None:
    """Case: the job restores, then ``actions/checkout`` cleans the workspace, then the action is used again."""
    steps = """\
- {id: build, run: 'mkdir dist; echo app > dist/app; echo ran >> "$KEEP/ran"'}
- {id: test, run: 'cat dist/app', outputs: []}
"""
    workflow.commit_sources()
    assert workflow.run(steps).code == 0
    machine = workflow.machine()
    assert machine.run(steps).outputs["restored"] == ["build"]
    machine.clean()
    assert not (machine.workspace / "dist").exists()
    again = machine.run(steps)
    assert (again.outputs["restored"], again.outputs["skipped"]) == (["build"], ["test"])
    assert (machine.workspace / "dist/app").read_text() == "app\n"
    assert "build: restored" in again.log
    assert "; it was done here, but not all is as it was: dist" in again.log
    assert workflow.kept("ran") == ["ran"]


@pytest.mark.parametrize("store", ["none", "lost"])
def test_what_a_later_checkout_wipes_is_made_again_where_it_cannot_be_put_back(
    workflow: Workflow, held: Held, store: str
) -> None:
    steps = "- {id: build, run: 'mkdir dist; echo app > dist/app'}\n"
    workflow.commit_sources()
    machine = workflow.machine()
    kind = "none" if store == "none" else "auto"
    assert machine.run(steps, store=kind).code == 0
    for entry in held.entries:
        held.evict(entry)
    machine.clean()
    again = machine.run(steps, store=kind)
    assert again.outputs["ran"] == ["build"]
    assert again.why("build") == "output-missing: dist"
    assert (machine.workspace / "dist/app").read_text() == "app\n"


def test_another_use_in_the_same_job_knows_nothing_of_the_first_and_runs_everything(workflow: Workflow) -> None:
    steps = "- {id: build, run: 'mkdir -p dist; echo app > dist/app'}\n"
    machine = workflow.machine()
    machine.run(steps)
    machine.checkout()
    other = machine.run(steps, use="__agenticaotearoa_checkpoint-run_2")
    assert other.outputs["ran"] == ["build"]
    assert (machine.workspace / "dist/app").exists()


def test_force_on_the_same_machine_is_a_start_without_progress(workflow: Workflow) -> None:
    steps = """\
- {id: build, run: 'ls "$CHECKPOINT_DIR" > "$KEEP/found"; touch "$CHECKPOINT_DIR/x"; exit 1'}
"""
    machine = workflow.machine()
    machine.run(steps)
    machine.run(steps)
    assert workflow.kept("found") == ["x"]
    machine.run(steps, force="true")
    assert workflow.kept("found") == []
