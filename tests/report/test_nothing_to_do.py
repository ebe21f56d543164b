"""What is said of a job of which all is done is what a run of it says, but for the time it took."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Decision, Job, Plan, Reason, Record, Status, Step
from checkpoint_action.report.nothing_to_do import answers_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_and_a_plan(tmp_path: Path) -> None:
    job = Job("demo", tmp_path, tuple(Step(name, "true", "sh", tmp_path) for name in ("a", "long.name")))
    records = {
        "a": Record("a", Status.DONE, "f", "true", duration=61.0),
        "long.name": Record("long.name", Status.DONE, "f", "true", duration=0.01, log="log\x1b"),
    }
    planned = Plan("demo", tuple(Decision(step, Action.SKIP, Reason.DONE, "") for step in records))
    said = answers_of(job, planned, records)
    assert said.lines == "a          skip     done\nlong.name  skip     done\n"
    assert [step["id"] for step in json.loads(said.json)["steps"]] == ["a", "long.name"]
    assert f"{said.run}TIME{said.rest}".splitlines() == [
        "checkpoint-run: job demo: note: steps run in the shell exactly as written; quote what must be quoted",
        "checkpoint-run: [1/2] a: skipped (done), saves 1 min 01 s",
        "checkpoint-run: [2/2] long.name: skipped (done), saves 0.0 s; its log: log\\x1b",
        "checkpoint-run: job demo: 2 skipped in TIME; saved 1 min 01 s",
    ]
    assert said.rest.endswith("\n")


def test_a_time_that_is_not_worth_saying_is_not_said(tmp_path: Path) -> None:
    job = Job("demo", tmp_path, (Step("a", "true", "sh", tmp_path),))
    planned = Plan("demo", (Decision("a", Action.SKIP, Reason.DONE, ""),))
    said = answers_of(job, planned, {"a": Record("a", Status.DONE, "f", "true")})
    assert said.run.endswith("\ncheckpoint-run: job demo: 1 skipped in ")
    assert said.rest == "\n"
