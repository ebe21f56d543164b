"""What an unfinished step leaves in ``partial`` and ``$CHECKPOINT_DIR`` is there for its next try, on any machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.action.manifest import ROOT
from tests.console import tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.action.archives import Held
    from tests.action.machine import Workflow
    from tests.action.running import Ended, Running

SOURCES = {"src/main.c": "int main;\n", "build/stale.o": "of the checkout", "notes.txt": "first line\n"}

# Notes what it finds, goes on with it, and ends in the given way until the third attempt.
STEPS = """\
- id: build
  timeout: {timeout}
  partial: [build/, notes.txt]
  run: |
    n=$GITHUB_RUN_ATTEMPT
    mkdir "$KEEP/found-$n"
    cp -a . "$KEEP/found-$n/workspace"
    cp -a "$CHECKPOINT_DIR" "$KEEP/found-$n/folder"
    mkdir -p build/deep/empty "$CHECKPOINT_DIR/sub"
    printf "made in try $n" > build/deep/part-$n
    chmod 640 build/deep/part-$n
    touch -d '2001-02-03 04:05:06.123456789' build/deep/part-$n
    ln -s deep/part-$n build/link-$n
    rm -f build/stale.o
    echo "line of try $n" >> notes.txt
    echo "state $n" > "$CHECKPOINT_DIR/sub/state-$n"
    chmod 600 "$CHECKPOINT_DIR/sub/state-$n"
    touch litter
    cp -a "$CHECKPOINT_DIR" "$KEEP/left-$n"
    test $n -lt 3 || exit 0
    {ending}
- id: after
  run: cat build/deep/part-* > all
"""

ENDINGS = {
    "fails": ("exit 3", "failed-before: it ended with exit code 3"),
    "times out": ("exec sleep 1000", "timed-out-before: it took longer than its 3 s"),
    "is cancelled": ('echo > "$KEEP/ready"; exec sleep 1000', "interrupted-before: it was stopped by SIGINT"),
    "dies": (
        'checkpoint-run save; echo > "$KEEP/ready"; exec sleep 1000',
        "interrupted-before: the machine was lost after it had saved its progress",
    ),
}


def end(running: Running, how: str, ready: Path) -> Ended:
    """Let an attempt end in one of the ways."""
    if how in {"fails", "times out"}:
        return running.wait()
    running.hear(ready)
    return running.cancel() if how == "is cancelled" else running.die()


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDINGS)
def test_progress_grows_from_machine_to_machine_until_the_step_is_done(
    workflow: Workflow, held: Held, how: str
) -> None:
    ending, reason = ENDINGS[how]
    steps = STEPS.format(ending=ending, timeout="3s" if how == "times out" else "1h")
    if how == "is cancelled":
        workflow.action = ROOT  # once as it is, with its waits
    workflow.sources = SOURCES
    ready = workflow.fifo("ready")
    first = end(workflow.start(steps), how, ready)
    assert not first.warnings
    assert held.statuses() == {"build": STATUS[how]}
    if how == "times out":  # once is enough
        steps = STEPS.format(ending="exit 3", timeout="1h")
    second = end(workflow.start(steps), how, ready)
    third, fourth = workflow.run(steps), workflow.run(steps)

    assert (second.why("build"), third.why("build")) == (reason, ENDINGS["fails"][1] if how == "times out" else reason)
    assert "build: goes on from what its last try left" in second.log
    for one, attempt in ((first, 1), (second, 2)):
        found = workflow.keep / f"found-{attempt + 1}"
        assert tree(found / "workspace" / "build") == tree(one.workspace / "build")
        assert tree(found / "workspace")["notes.txt"] == tree(one.workspace)["notes.txt"]
        assert inside(found / "folder") == inside(workflow.keep / f"left-{attempt}")
        assert not (found / "workspace" / "build" / "stale.o").exists()
        assert not (found / "workspace" / "litter").exists(), "only what is named in partial is kept"
    assert (third.workspace / "all").read_text() == "made in try 1made in try 2made in try 3"

    # Once the step is done all of it is an output like any other.
    assert third.outputs["result"] == "success"
    assert (fourth.outputs["ran"], fourth.outputs["restored"]) == ([], ["build", "after"])
    assert tree(fourth.workspace / "build") == tree(third.workspace / "build")
    assert (fourth.workspace / "notes.txt").read_text().count("line of try") == 3
    assert not second.warnings + third.warnings + fourth.warnings
    assert held.records()["build"].get("partial") is None


def inside(folder: Path) -> dict[str, tuple[int, int, str]]:
    return {path: found for path, found in tree(folder).items() if path != "."}


def test_no_other_step_sees_the_progress_of_one(workflow: Workflow) -> None:
    steps = """\
- {id: before, always: true, outputs: [], run: 'ls . "$CHECKPOINT_DIR" > "$KEEP/before-$GITHUB_RUN_ATTEMPT"'}
- {id: build, partial: [part], run: 'echo x > part; touch "$CHECKPOINT_DIR/x"; exit 1'}
- {id: after, needs: [], run: 'ls "$CHECKPOINT_DIR" > "$KEEP/after-$GITHUB_RUN_ATTEMPT"'}
"""
    for attempt in "12":
        workflow.run(steps, continue_on_error="true")
        assert workflow.kept(f"before-{attempt}")[:2] == [".:", "src"]
        assert workflow.kept(f"before-{attempt}")[-1].endswith("/_before.progress:")
        assert workflow.kept(f"after-{attempt}") == []


STATUS = {"fails": "failed", "times out": "timeout", "is cancelled": "interrupted", "dies": "running"}

FAILING = """\
- id: build
  partial: [build/]
  run: |
    cat build/part "$CHECKPOINT_DIR/state" > "$KEEP/found-$GITHUB_RUN_ATTEMPT" || true
    mkdir -p build
    echo x >> build/part
    echo x >> "$CHECKPOINT_DIR/state"
    exit 3
- id: other
  needs: []
  run: echo > other; test ! -p "$KEEP/go" || read line < "$KEEP/go"
"""


def two_archives(workflow: Workflow, sources: dict[str, str | bytes] | None = None) -> Ended:
    """An attempt whose progress is in another archive than the newest state."""
    go = workflow.fifo("go")
    running = workflow.start(FAILING, continue_on_error="true")
    running.until("what build has so far")
    go.write_text("\n")
    ended = running.wait()
    go.unlink()
    assert "kept in the Actions cache: other" in ended.log
    return ended


@pytest.mark.parametrize("fault", ["evicted", "damaged", "in the way"])
def test_progress_that_cannot_be_put_back_costs_one_warning_and_the_step_starts_afresh(
    workflow: Workflow, held: Held, fault: str
) -> None:
    two_archives(workflow)
    older, _newest = held.entries
    if fault == "evicted":
        held.evict(older)
    elif fault == "damaged":
        held.damage(older)
    else:
        workflow.sources = {**workflow.sources, "build/part": "somebody's own"}
    second = workflow.run(FAILING, continue_on_error="true")
    [warning] = second.warnings
    assert warning.startswith("step 'build' starts without what an unfinished try left: ")
    assert {"evicted": " is gone", "damaged": "the archive is damaged", "in the way": "build/part is a file with"}[
        fault
    ] in warning
    assert (second.outputs["failed"], second.outputs["restored"]) == (["build"], ["other"])
    assert workflow.kept("found-2") == (["somebody's own"] if fault == "in the way" else [])
    # What the try from scratch has left is what the next one goes on from.
    workflow.run(FAILING, continue_on_error="true")
    assert workflow.kept("found-3") == ["somebody's ownx" if fault == "in the way" else "x", "x"]


def test_a_step_that_is_done_gets_nothing_back_of_an_earlier_try(workflow: Workflow, held: Held) -> None:
    steps = """\
- id: fetch
  partial: [cache/]
  outputs: [out]
  run: |
    mkdir -p cache
    ls cache > "$KEEP/cache-$GITHUB_RUN_ATTEMPT"
    echo x > cache/part-$GITHUB_RUN_ATTEMPT
    test $GITHUB_RUN_ATTEMPT -gt 1 && echo out > out
"""
    assert workflow.run(steps).code == 1
    second = workflow.run(steps)
    assert workflow.kept("cache-2") == ["part-1"]
    assert (second.workspace / "cache/part-2").exists()
    third = workflow.run(steps)
    assert third.outputs["restored"] == ["fetch"]
    assert not (third.workspace / "cache").exists(), "a partial path is no output"
    fourth = workflow.run(steps.replace("echo out", "echo other"))
    assert fourth.why("fetch").startswith("command-changed")
    assert workflow.kept("cache-4") == []


def test_progress_never_makes_a_step_count_as_done(workflow: Workflow) -> None:
    """Case: all that the step makes is there, and it has failed: it runs again."""
    steps = """\
- id: build
  partial: [app]
  outputs: [app]
  run: echo ran >> "$KEEP/ran"; echo app > app; test $GITHUB_RUN_ATTEMPT -gt 1
"""
    assert workflow.run(steps).code == 1
    second = workflow.run(steps)
    assert (second.outputs["ran"], second.outputs["restored"]) == (["build"], [])
    assert workflow.kept("ran") == ["ran", "ran"]


def test_a_second_failure_on_the_same_workspace_loses_nothing_of_the_first(workflow: Workflow) -> None:
    """Case: a machine of one's own, whose workspace outlives the job and whose RUNNER_TEMP does not."""
    steps = """\
- id: build
  partial: [build/, stale]
  run: mkdir -p build; echo x > build/part-$GITHUB_RUN_ATTEMPT; rm -f stale; ls build > "$KEEP/had"; exit 1
"""
    workflow.sources = {"stale": "of the checkout"}
    machine = workflow.machine()
    assert machine.run(steps).code == 1
    machine.renew()
    assert machine.run(steps).code == 1
    third = workflow.run(steps)
    assert workflow.kept("had") == ["part-1", "part-2", "part-3"]
    assert not (third.workspace / "stale").exists()


def test_what_is_excluded_or_of_the_repository_is_never_kept(workflow: Workflow, held: Held) -> None:
    steps = """\
- id: build
  partial: ["**"]
  run: mkdir -p build/tmp; echo x > build/part; echo secret > build/tmp/x; echo token > .git/config.new; exit 1
"""
    workflow.commit_sources()
    ended = workflow.run(steps, exclude="tmp/")
    assert ended.warnings == []
    paths = [entry["path"] for entry in held.records()["build"]["partial"]["workspace"]["entries"]]
    assert paths == ["build", "build/part"]


def test_what_is_outside_the_workspace_stays_and_is_told_once(workflow: Workflow, held: Held) -> None:
    steps = """\
- id: build
  partial: [OUTSIDE/, part]
  run: |
    mkdir "$KEEP/outside"; echo x > "$KEEP/outside/x"; echo x > part
    checkpoint-run save; checkpoint-run save
    exit 1
"""
    ended = workflow.run(steps.replace("OUTSIDE", str(workflow.keep / "outside")))
    assert ended.warnings == ["step 'build': what its 'partial' names outside the workspace stays on this machine"]
    paths = [entry["path"] for entry in held.records()["build"]["partial"]["workspace"]["entries"]]
    assert paths == ["part"]


def test_a_folder_that_is_a_link_here_gets_nothing_put_through_it(workflow: Workflow, tmp_path: Path) -> None:
    steps = """\
- id: before
  always: true
  outputs: []
  run: test $GITHUB_RUN_ATTEMPT = 1 || ln -s "$KEEP/outside" build
- id: build
  partial: [build/]
  run: mkdir -p build; echo x > build/part; test $GITHUB_RUN_ATTEMPT != 1
"""
    outside = workflow.keep / "outside"
    outside.mkdir()
    assert workflow.run(steps).code == 1
    second = workflow.run(steps.replace("echo x > build/part; ", ""))
    [warning] = second.warnings
    assert "build is another link" in warning or "below build, which is a link" in warning
    assert list(outside.iterdir()) == []
