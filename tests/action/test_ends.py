"""What the action tells and does once its steps are over: outputs, summary, logs, the budget, cleaning up."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.actions_service.faults import Fault

if TYPE_CHECKING:
    from tests.action.archives import Held
    from tests.action.machine import Workflow
    from tests.actions_service.artifact_store import ArtifactItem

STEPS = """\
- {id: build, run: 'sleep 0.3; echo app > app'}
- {id: test, run: 'echo checking; echo "no tests for $TOKEN"; test $GITHUB_RUN_ATTEMPT -gt 1'}
"""


def logs_of(workflow: Workflow) -> dict[str, dict[str, str]]:
    """By artifact, the logs in it; the page beside them is looked at by itself."""
    found = {}
    for item in workflow.service.artifact_store.items:
        if item.name.startswith("checkpoint-run-logs-"):
            with zipfile.ZipFile(io.BytesIO(_body(workflow, item))) as packed:
                texts = {name: packed.read(name).decode() for name in packed.namelist()}
                assert texts.pop("report.html").startswith("<!DOCTYPE html>")
                found[item.name] = texts
    return found


def page_of(workflow: Workflow) -> str:
    """The page beside the logs."""
    [item] = [one for one in workflow.service.artifact_store.items if one.name.startswith("checkpoint-run-logs-")]
    with zipfile.ZipFile(io.BytesIO(_body(workflow, item))) as packed:
        return packed.read("report.html").decode()


def _body(workflow: Workflow, item: ArtifactItem) -> bytes:
    return workflow.service.blobs.content[item.blob]


def test_summary_and_outputs_tell_what_failed_and_what_a_rerun_saved(workflow: Workflow) -> None:
    first = workflow.run(STEPS)
    assert (first.outputs["result"], first.outputs["incomplete"], first.outputs["seconds-saved"]) == (
        "failure",
        False,
        0,
    )
    assert "## checkpoint-run, the steps of `build`: 1 failed" in first.summary
    assert "no tests for" in first.summary
    assert "```mermaid\ngantt" in first.summary
    second = workflow.run(STEPS)
    assert (second.outputs["result"], second.outputs["restored"]) == ("success", ["build"])
    assert "## checkpoint-run, the steps of `build`: all done" in second.summary
    assert "restored" in second.summary
    assert second.outputs["state"].endswith(".checkpoint-run-build.json")
    lines = [line for line in second.log.splitlines() if "steps were done before" in line]
    assert len(lines) == 1
    assert re.fullmatch(r"1 of 2 steps were done before, which took 0\.\d s: build", lines[0])


def test_an_expression_in_a_job_file_is_warned_of(workflow: Workflow) -> None:
    """Bash calls it a bad substitution, and nobody knows then what is wrong."""
    workflow.sources = {"checkpoint.yml": "steps:\n- {id: a, run: 'echo ${{ github.sha }}'}\n"}
    first = workflow.run("")
    assert first.code == 1
    assert "::warning::checkpoint.yml: GitHub fills ${{ … }} in in workflows alone, not in a file" in first.log
    assert "::warning::" not in workflow.run("- {id: a, run: 'true'}").log


def test_nothing_is_said_to_be_kept_where_nothing_is(workflow: Workflow) -> None:
    assert 'what is done is kept: "Re-run failed jobs" goes on' in workflow.run(STEPS).log
    assert "is kept" not in workflow.run(STEPS.replace("app > app", "app >app"), store="none", force="true").log


def test_no_summary_where_none_is_wanted(workflow: Workflow) -> None:
    assert workflow.run(STEPS, summary="false").summary == ""


def test_logs_of_failed_steps_become_an_artifact_without_secrets(workflow: Workflow, held: Held) -> None:
    workflow.sources = {"checkpoint.yml": f"secrets: [TOKEN]\nsteps:\n{STEPS}"}
    first = workflow.run("", env={"TOKEN": "hush-4711"})
    assert first.code == 1
    name = first.outputs["artifact"]
    assert re.fullmatch(r"checkpoint-run-logs-build-[0-9a-f]{16}-1", name)
    assert logs_of(workflow) == {name: {"test.log": "checking\nno tests for ***\n"}}
    assert "::add-mask::hush-4711" in first.log, "the runner hides it where the step itself prints it"
    assert "hush-4711" not in first.summary
    assert b"hush-4711" not in held.everything()
    page = page_of(workflow)
    assert "no tests for ***" in page
    assert "hush-4711" not in page
    assert all(f">{step}<" in page for step in ("build", "test"))


@pytest.mark.parametrize(("which", "steps"), [("always", ["build.log", "test.log"]), ("never", None)])
def test_whose_logs_is_the_users_choice(workflow: Workflow, which: str, steps: list[str] | None) -> None:
    ended = workflow.run(STEPS, logs=which)
    found = [sorted(files) for files in logs_of(workflow).values()]
    assert found == ([] if steps is None else [steps])
    assert bool(ended.outputs["artifact"]) == (steps is not None)


def test_logs_that_cannot_go_up_are_one_warning(workflow: Workflow) -> None:
    workflow.service.faults.next("CreateArtifact", Fault.status(403, "{}"), 99)
    ended = workflow.run(STEPS)
    assert ended.code == 1
    assert ended.outputs["artifact"] == ""
    assert [warning for warning in ended.warnings if "the logs of steps are not uploaded" in warning]


def test_a_used_up_budget_is_no_failure_and_the_next_job_goes_on(workflow: Workflow) -> None:
    steps = """\
- {id: first, run: 'echo 1 >> "$KEEP/first"'}
- id: long
  partial: [progress]
  run: |
    echo x >> progress
    test $(wc -l < progress) -gt 1 || sleep 60
    cp progress "$KEEP/seen"
- {id: last, run: 'true'}
"""
    first = workflow.run(steps, budget="4s")
    assert (first.code, first.outputs["result"], first.outputs["incomplete"]) == (0, "incomplete", True)
    assert first.outputs["ran"] == ["first", "long"]
    assert "stopped before the end on purpose, to be run again" in first.summary
    assert len(first.warnings) == 1
    assert "this is green and not finished (left: long, last)" in first.warnings[0]
    assert "Re-run failed jobs" not in first.log
    second = workflow.run(steps, budget="1h")
    assert (second.code, second.outputs["result"], second.outputs["incomplete"]) == (0, "success", False)
    assert second.outputs["ran"] == ["long", "last"]
    assert workflow.kept("first") == ["1"]
    assert workflow.kept("seen") == ["x", "x"]


def test_a_failure_within_the_budget_is_a_failure(workflow: Workflow) -> None:
    ended = workflow.run("- {id: a, run: exit 3}", budget="1h")
    assert (ended.code, ended.outputs["result"], ended.outputs["incomplete"]) == (1, "failure", False)


def test_steps_with_outputs_of_their_own_run_at_once_and_those_without_alone(workflow: Workflow) -> None:
    meet = (
        'echo > "$KEEP/{0}.here"; while ! test -e "$KEEP/{1}.here"; do sleep 0.05; done; echo {0} > {0}; echo said {0}'
    )
    steps = f"""\
- {{id: a, needs: [], outputs: [a], run: '{meet.format("a", "b")}'}}
- {{id: b, needs: [], outputs: [b], run: '{meet.format("b", "a")}'}}
- {{id: c, needs: [], run: 'echo in >> "$KEEP/alone"; sleep 0.5; echo c > c; echo out >> "$KEEP/alone"'}}
- {{id: d, needs: [], run: 'echo in >> "$KEEP/alone"; sleep 0.2; echo d > d; echo out >> "$KEEP/alone"'}}
- {{id: e, needs: [a, b, c, d], outputs: [], run: 'cat a b c d; test $GITHUB_RUN_ATTEMPT -gt 1'}}
"""
    first = workflow.run(steps, jobs="4")
    assert first.outputs["failed"] == ["e"]
    assert workflow.kept("alone") == ["in", "out", "in", "out"]
    # What each printed is in a group of its own, in one piece; only commands that the runner does not show come within.
    masks = r"(?:::add-mask::.*\n)*"
    for step in "ab":
        group = rf"::group::\[\d/5\] {step}: runs [^:]*\n(.*\n)*?said {step}\n{masks}::endgroup::"
        assert re.search(group, first.log), first.log
    second = workflow.run(steps, jobs="4")
    assert second.code == 0
    assert sorted(second.outputs["restored"]) == ["a", "b", "c", "d"]


def test_checkpoints_are_deleted_once_all_is_done_where_that_is_wanted(workflow: Workflow) -> None:
    workflow.run(STEPS, cleanup="on-success")
    assert [entry for entry in workflow.service.entries.all.values() if entry.complete]
    second = workflow.run(STEPS, cleanup="on-success")
    assert second.code == 0
    assert not [entry for entry in workflow.service.entries.all.values() if entry.complete]
    assert re.search(r"^cleanup: \d checkpoints with .* are deleted$", second.log, re.MULTILINE)


def test_a_token_that_may_not_delete_is_one_warning(workflow: Workflow) -> None:
    workflow.token = "no-such-token"
    ended = workflow.run("- {id: a, run: echo a > a}", cleanup="on-success")
    assert ended.code == 0
    assert len(ended.warnings) == 1
    assert "input cleanup" in ended.warnings[0]
    assert "actions: write" in ended.warnings[0]


def test_of_fifty_short_steps_a_rerun_asks_little_and_says_so_at_once(workflow: Workflow) -> None:
    workflow.action = Path(__file__).parents[2]  # with the real time between two uploads
    steps = "".join(f"- {{id: s{number}, run: echo {number} > f{number}}}\n" for number in range(49))
    steps += "- {id: last, run: 'test -e f48; test $GITHUB_RUN_ATTEMPT -gt 1', outputs: []}\n"
    assert workflow.run(steps).outputs["failed"] == ["last"]
    before = len(workflow.service.requests)
    second = workflow.run(steps)
    assert second.code == 0
    assert len(second.outputs["restored"]) == 49
    asked = workflow.service.requests[before:]
    looked = [one for one in asked if one.target.endswith("/GetCacheEntryDownloadURL")]
    archives = {record["archive"]["key"] for record in _records(workflow).values() if "archive" in record}
    assert len(archives) <= 8
    assert len(looked) <= 1 + len(archives)
    uploads = [one for one in asked if one.target.endswith("/CreateCacheEntry")]
    assert len(uploads) == 1, "what is restored does not go up again"
    head = "\n".join(second.log.replace("\r", "").splitlines()[:10])
    assert re.search(r"49 of 50 steps were done before, which took [\d.]+ s: s0, s1", head)


def _records(workflow: Workflow) -> dict[str, dict[str, dict[str, str]]]:
    from tests.action.archives import Held  # noqa: PLC0415

    return Held(workflow.service, workflow.folder / "held").records()


def test_a_cancel_while_the_logs_go_up_waits_for_nothing_and_the_outputs_are_there(workflow: Workflow) -> None:
    workflow.service.faults.next("CreateArtifact", Fault.slow(60), 9)
    running = workflow.start(STEPS)
    running.wait_until(lambda: "1 failed" in running.log, "the steps have not ended")
    ended = running.cancel()
    assert ended.asked == ["SIGINT"]
    assert (ended.code, ended.outputs["result"], ended.outputs["failed"]) == (1, "failure", ["test"])


@pytest.mark.parametrize(("scope", "name"), [("run", "run_id"), ("commit", "commit")])
def test_what_cannot_be_told_apart_is_not_kept(workflow: Workflow, scope: str, name: str) -> None:
    setattr(workflow, name, "")
    ended = workflow.run("- {id: a, run: echo a > a}", scope=scope)
    assert ended.code == 0
    assert len(ended.warnings) == 1
    assert "is not set" in ended.warnings[0]
    assert workflow.run("- {id: a, run: echo a > a}", scope=scope).outputs["ran"] == ["a"]


@pytest.mark.parametrize("place", [".git/hooks/post-checkout", ".checkpoint-run-x/y"])
def test_nothing_is_put_where_nothing_is_kept_from(workflow: Workflow, held: Held, place: str) -> None:
    workflow.sources = {"src/main.c": "", ".git/config": ""}
    assert workflow.run(STEPS, store="cache").code == 1

    def change(header: dict[str, Any]) -> None:
        header["records"]["build"]["layer"]["deleted"] = [place]
        header["records"]["build"]["layer"]["before"] = {}

    held.forge(change)
    second = workflow.run(STEPS, store="cache")
    assert (second.outputs["restored"], second.outputs["ran"]) == ([], ["build", "test"])
    assert f"it would write to {place}" in second.log


def test_a_poisoned_value_is_a_checkpoint_that_is_not_usable(workflow: Workflow, held: Held) -> None:
    assert workflow.run(STEPS, store="cache").code == 1
    held.forge(lambda header: header["records"]["build"].update(values={"env": {"A": "x\0y"}}))
    second = workflow.run(STEPS, store="cache")
    assert second.code == 0
    assert any("not usable" in warning for warning in second.warnings)


def test_the_look_into_a_store_that_never_answers_is_part_of_the_budget(workflow: Workflow) -> None:
    for call in ("GetCacheEntryDownloadURL", "ListArtifacts"):
        workflow.service.faults.next(call, Fault.slow(120), 99)
    ended = workflow.run("- {id: a, run: 'sleep 60'}", budget="4s")
    assert (ended.code, ended.outputs["result"]) == (0, "incomplete")
    assert ended.outputs["seconds-saved"] == 0


def test_a_folder_of_ours_that_cannot_be_made_is_one_line(workflow: Workflow) -> None:
    machine = workflow.machine()
    assert machine.run(STEPS).code == 1
    [logs] = machine.temporary.rglob(".checkpoint-run-*.logs")
    shutil.rmtree(logs)
    logs.write_text("in the way")
    ended = machine.run(STEPS)
    assert ended.code == 5
    [error] = ended.errors
    assert error == f"cannot make {logs}: File exists"
    assert "Traceback" not in ended.log
