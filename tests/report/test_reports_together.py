"""Log, last lines, summary and redacted logs of one real run, put together as the action does."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import SYSTEM_SHELL, Job, Retry, Status, Step
from checkpoint_action.report.actions_log import ActionsLog
from checkpoint_action.report.log_bundle import StepLog, bundle_logs
from checkpoint_action.report.summary import SummaryReport, summary
from checkpoint_action.report.tail import OutputTail
from checkpoint_action.report.terminal import StepOutput
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.stop import StopRequest

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.runner.events import Event

FAILS = """\
printf 'with hunter2-secret\\n::add-mask::try%s-masked\\ntry%s-masked' "$CHECKPOINT_TRY" "$CHECKPOINT_TRY"
exit 3
"""


@pytest.mark.skipif(sys.platform == "win32", reason="commands of sh")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_is_reported_without_its_secrets(tmp_path: Path, capfd: pytest.CaptureFixture[str], jobs: int) -> None:
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    state.mkdir()
    secrets = ("hunter2-secret",)
    plain = Step("fine", "echo all well", SYSTEM_SHELL, work, log=state / "fine.log")
    steps = (
        plain,
        replace(plain, id="bad", command=FAILS, retry=Retry(max=1, backoff=0.0), log=state / "bad.log"),
        replace(plain, id="last", needs=("bad",), log=state / "last.log"),
    )
    job = Job("demo", work, steps, continue_on_error=True)
    output = StepOutput(1, shared=True)
    tail = OutputTail(secrets)
    log = ActionsLog(output=output, tails=tail.of)
    report = SummaryReport()

    def listen(event: Event) -> None:
        for listener in (tail, log, report):
            listener(event)

    def write(data: bytes) -> None:
        tail.write(data)
        output.write(data)

    paths = StatePaths(state, "demo")
    journal = Journal(paths, load(paths))
    journal.open()
    engine = Engine(
        job, journal, dict(os.environ), listener=listen, write=write, stop=StopRequest(), options=RunOptions(jobs=jobs)
    )
    try:
        assert engine.run().failed == ("bad",)
        logs = [
            StepLog(step.id, step.log, record.status)
            for step in steps
            if step.log is not None and (record := journal.records.get(step.id)) is not None
        ]
    finally:
        journal.close()

    shown = capfd.readouterr().out
    after = shown[shown.index("the last lines of bad:") :].splitlines()
    lines = ["with ***", "::add-mask::***", "***"]
    if jobs > 1:  # all tries are shown in one piece
        lines[2:] = ["***with ***", "::add-mask::***", "***"]
    assert after[2 : 2 + len(lines)] == [f"  {line}" for line in lines]
    after = after[len(lines) - 3 :]
    assert after[6].startswith("::error title=step bad::[2/3] bad: failed after ")
    assert after[6].endswith(", 2 tries: it ended with exit code 3")

    text = summary(report.told, tails=tail.of, kept=False)
    assert "\n".join(["```", *lines, "```"]) in text
    assert "| `bad` | ✗ failed, 2 tries: `it ended with exit code 3` | never-ran |" in text
    assert "| `last` | ○ left | it needs `bad`, which is not done |" in text
    assert "the next run skips 1 of 3 steps and runs `bad`, `last`." in text

    assert tail.masked == {"try1-masked", "try2-masked"}
    [copy] = bundle_logs(logs, tmp_path / "logs", which="on-failure", secrets=[*secrets, *tail.masked]).files
    assert copy.name == "bad.log"
    assert copy.read_bytes() == b"with ***\n::add-mask::***\n***"
    assert [found.status for found in logs] == [Status.DONE, Status.FAILED]
    for place in (text, after[2:5], copy.read_text()):
        assert "hunter2" not in str(place)
