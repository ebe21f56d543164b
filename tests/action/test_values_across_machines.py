"""What steps hand on besides files is there again on a fresh machine: for later steps and for the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.action.archives import Held
    from tests.action.machine import Workflow

STEPS = """\
- id: one
  run: |
    echo ran >> "$KEEP/one.ran"
    echo "NAME=value" >> "$GITHUB_ENV"
    printf 'LONG<<END\\ntwo\\nlines\\nEND\\n' >> "$GITHUB_ENV"
    mkdir -p tools
    printf '#!/bin/sh\\necho tool ran\\n' > tools/mytool
    chmod +x tools/mytool
    echo "$PWD/tools" >> "$GITHUB_PATH"
    echo "version=1.2" >> "$GITHUB_OUTPUT"
    echo "# built" >> "$GITHUB_STEP_SUMMARY"
- id: nothing
  outputs: []
  run: |
    echo "NAME=later" >> "$GITHUB_ENV"
    echo "empty=" >> "$GITHUB_OUTPUT"
    printf "no end of line" >> "$GITHUB_STEP_SUMMARY"
- id: two
  run: |
    printf '%s|%s|%s|%s|' "$NAME" "$LONG" "$STEPS_ONE_OUTPUTS_VERSION" "$(mytool)" > "$KEEP/seen-$GITHUB_RUN_ATTEMPT"
    echo "half a report" >> "$GITHUB_STEP_SUMMARY"
    echo "LOST=1" >> "$GITHUB_ENV"
    test $GITHUB_RUN_ATTEMPT -gt 1
"""
OUTPUTS = {"one": {"version": "1.2"}, "nothing": {"empty": ""}}


def test_restored_and_skipped_steps_hand_on_again_what_they_did(workflow: Workflow) -> None:
    first = workflow.run(STEPS)
    second = workflow.run(STEPS)
    third = workflow.run(STEPS)
    assert workflow.kept("one.ran") == ["ran"]
    assert (second.outputs["restored"], second.outputs["skipped"]) == (["one"], ["nothing"])
    assert (workflow.keep / "seen-1").read_text() == "later|two\nlines|1.2|tool ran|"
    assert (workflow.keep / "seen-2").read_text() == (workflow.keep / "seen-1").read_text()
    tools = str(third.workspace / "tools")  # where every machine had its workspace
    for ended in (first, second, third):
        expected = {"NAME": "later", "LONG": "two\nlines"}
        expected |= {} if ended is first else {"LOST": "1"}  # a failed step hands nothing on
        assert ended.env == expected
        assert ended.path == [tools]
        assert ended.outputs["outputs"] == OUTPUTS
        assert ended.summary.endswith("\n# built\nno end of line\nhalf a report\n")
    assert not first.warnings + second.warnings + third.warnings


def test_a_step_that_was_not_reached_hands_nothing_on(workflow: Workflow) -> None:
    """Case: what an earlier attempt knows of a later step is not passed on when this attempt ends before it."""
    steps = """\
- {id: one, always: true, run: 'test $GITHUB_RUN_ATTEMPT != 2', outputs: []}
- {id: two, run: 'echo "A=1" >> "$GITHUB_ENV"; echo "b=2" >> "$GITHUB_OUTPUT"', outputs: []}
"""
    assert workflow.run(steps).env == {"A": "1"}
    second = workflow.run(steps)
    assert (second.code, second.env, second.outputs["outputs"]) == (1, {}, {})
    third = workflow.run(steps)
    assert (third.outputs["skipped"], third.env, third.outputs["outputs"]) == (["two"], {"A": "1"}, {"two": {"b": "2"}})


SECRETS = """\
- id: masked
  outputs: []
  run: |
    echo ran >> "$KEEP/masked.ran"
    echo "::add-mask::hidden-$PART"
    echo "SESSION=hidden-$PART" >> "$GITHUB_ENV"
    echo "auth=Bearer hidden-$PART" >> "$GITHUB_OUTPUT"
    echo "session hidden-$PART" >> "$GITHUB_STEP_SUMMARY"
    echo "PLAIN=plain" >> "$GITHUB_ENV"
- id: user
  run: |
    test "$SESSION" = "hidden-$PART"
    test "$STEPS_MASKED_OUTPUTS_AUTH" = "Bearer hidden-$PART"
    echo "$PLAIN" >> used
    test $GITHUB_RUN_ATTEMPT != 1
"""


def test_a_secret_is_in_no_byte_that_leaves_the_machine_and_its_step_runs_again(workflow: Workflow, held: Held) -> None:
    first = workflow.run(SECRETS, env={"PART": "4711"})
    second = workflow.run(SECRETS, env={"PART": "0815"})  # another session, of course
    third = workflow.run(SECRETS, env={"PART": "2342"})
    assert (first.code, second.code, third.code) == (1, 0, 0)
    assert workflow.kept("masked.ran") == ["ran"] * 3
    assert second.why("masked") == "hands-on-secret: SESSION, outputs.auth"
    assert third.outputs["ran"] == ["masked"], "what only sees another secret does not run again"
    assert third.env == {"SESSION": "hidden-2342", "PLAIN": "plain"}, "the workflow's own steps do get it"
    assert third.summary.endswith("\nsession hidden-2342\n")
    everything = held.everything()
    assert b"plain" in everything
    for part in (b"4711", b"0815", b"2342"):
        assert b"hidden-" + part not in everything
    assert "hidden" not in str(third.outputs), "an output with a masked value would be dropped as a whole"


def test_a_value_that_the_runner_refuses_costs_the_others_nothing(workflow: Workflow) -> None:
    steps = """\
- {id: one, run: 'printf "NODE_OPTIONS=--x\\nA=1\\n" >> "$GITHUB_ENV"', outputs: []}
- {id: two, run: 'echo "in steps: $NODE_OPTIONS"; echo "B=2" >> "$GITHUB_ENV"', outputs: []}
"""
    ended = workflow.run(steps)
    assert "in steps: --x" in ended.log
    assert ended.env == {"A": "1", "B": "2"}
    assert ended.warnings == ["step 'one' sets NODE_OPTIONS, which the runner lets no step do"]


def test_values_are_passed_on_by_a_cancelled_run_too(workflow: Workflow) -> None:
    steps = """\
- {id: one, run: 'echo "A=1" >> "$GITHUB_ENV"', outputs: []}
- {id: two, run: 'echo > "$KEEP/ready"; exec sleep 1000', outputs: []}
"""
    ready = workflow.fifo("ready")
    running = workflow.start(steps)
    running.hear(ready)
    ended = running.cancel()
    assert (ended.asked, ended.env) == (["SIGINT"], {"A": "1"})
