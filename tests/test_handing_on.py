"""What a step hands on reaches the steps after it, also when it is skipped."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, lines_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are for sh"),
]


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def job_file(console: Console, text: str) -> None:
    (console.folder / "checkpoint.yml").write_text("job: job\n" + text)


def test_a_value_survives_the_resume(console: Console) -> None:
    """Case: a sets v=7, b prints v and fails once; on the second run b sees 7 and a does not run."""
    words = [
        "--job=j",
        "--step",
        'a:echo ran >> a.log; echo v=7 >> "$GITHUB_ENV"',
        "--step",
        'b:echo "v is $v"; test -e second || { touch second; exit 1; }',
    ]
    first = console.run(*words)
    assert (first.returncode, "v is 7" in first.stdout) == (1, True)
    again = console.run(*words)
    assert (again.returncode, "v is 7" in again.stdout) == (0, True)
    assert console.count("a.log") == 1


@pytest.mark.parametrize("prefix", ["GITHUB", "CHECKPOINT"])
def test_all_four_files_are_there_under_both_names(console: Console, prefix: str) -> None:
    (console.folder / "tools").mkdir()
    tool = console.folder / "tools" / "mytool"
    tool.write_text("#!/bin/sh\necho tool ran\n")
    tool.chmod(0o755)
    job_file(
        console,
        f"""\
steps:
- id: one
  run: |
    echo "NAME=value" >> "${prefix}_ENV"
    printf 'LONG<<END\\ntwo\\nlines\\nEND\\n' >> "${prefix}_ENV"
    echo "$PWD/tools" >> "${prefix}_PATH"
    echo "version=1.2" >> "${prefix}_OUTPUT"
    echo "# built" >> "${prefix}_STEP_SUMMARY"
- id: two
  run: |
    printf '%s|%s|%s|' "$NAME" "$LONG" "$STEPS_ONE_OUTPUTS_VERSION"
    mytool
    cat "$CHECKPOINT_STEPS"
""",
    )
    done = console.run()
    assert done.returncode == 0, done.stderr
    shown, document = done.stdout.rsplit("\n", 2)[-2:] if done.stdout.endswith("\n") else done.stdout.rsplit("\n", 1)
    assert "value|two\nlines|1.2|tool ran" in done.stdout
    assert json.loads(document or shown) == {"one": {"outputs": {"version": "1.2"}}}
    values = console.state("job")["one"]["values"]
    assert values["summary"] == "# built\n"
    assert values["outputs"] == {"version": "1.2"}


def test_a_changed_value_runs_again_what_sees_it_and_a_same_one_does_not(console: Console) -> None:
    steps = """\
steps:
- {{id: one, run: 'cat v >> "$GITHUB_ENV"  # {note}', outputs: []}}
- {{id: two, run: "echo same > two; echo ran >> two.log", outputs: [two]}}
- {{id: three, run: "echo $V >> three.log", outputs: []}}
- {{id: alone, run: "echo ran >> alone.log", needs: []}}
"""
    (console.folder / "v").write_text("V=1\n")
    job_file(console, steps.format(note="first"))
    assert console.run().returncode == 0
    (console.folder / "v").write_text("V=2\n")
    job_file(console, steps.format(note="second"))
    planned = {row["id"]: row for row in json.loads(console.run("plan", "--json").stdout)["steps"]}
    assert planned["one"]["reason"] == "command-changed"
    ran = console.run("--json")
    assert ran.returncode == 0
    decided = {row["id"]: row for row in lines_of(ran.stdout) if "reason" in row}
    assert decided["three"]["reason"] == "needs-changed"
    assert "V" in decided["three"]["detail"]
    assert decided["alone"]["action"] == "skip"
    assert (console.folder / "three.log").read_text() == "1\n2\n"
    # The same value again: the wave ends at the step whose command changed, and those without outputs after it.
    assert lines_of(console.run("--json").stdout)[-1]["ran"] == []


def test_a_step_far_behind_sees_a_change_that_those_between_do_not_pass_on(console: Console) -> None:
    steps = """\
steps:
- {id: one, run: 'cat v >> "$GITHUB_ENV"; echo same > one', outputs: [one], inputs: [v]}
- {id: two, run: "echo same > two", outputs: [two], env: {V: mine}}
- {id: three, run: "echo $V > three", outputs: [three]}
"""
    job_file(console, steps)
    (console.folder / "v").write_text("V=1\n")
    assert console.run().returncode == 0
    (console.folder / "v").write_text("V=2\n")
    ended = lines_of(console.run("--json").stdout)[-1]
    assert (ended["ran"], ended["skipped"]) == (["one", "three"], ["two"])
    assert (console.folder / "three").read_text() == "2\n"


def test_the_order_of_the_places_a_variable_can_come_from(console: Console) -> None:
    job_file(
        console,
        """\
env: {A: job, B: job, C: job}
steps:
- {id: one, run: 'printf "B=handed\\nC=handed\\nD=handed\\n" >> "$GITHUB_ENV"'}
- {id: two, run: 'echo "$A $B $C $D $E"', env: {C: step}}
""",
    )
    done = console.run(env={"A": "outside", "D": "outside", "E": "outside"})
    assert "job handed step handed outside" in done.stdout


def test_variables_of_the_runner_keep_their_value(console: Console) -> None:
    job_file(
        console,
        """\
steps:
- {id: one, run: 'printf "GITHUB_SHA=mine\\nGITHUB_MINE=mine\\nRUNNER_OS=mine\\n" >> "$GITHUB_ENV"'}
- {id: two, run: 'echo "$GITHUB_SHA $GITHUB_MINE $RUNNER_OS"'}
""",
    )
    assert "abc mine Linux" in console.run(env={"GITHUB_SHA": "abc", "RUNNER_OS": "Linux"}).stdout


def test_a_file_that_the_runner_would_refuse_fails_the_step(console: Console) -> None:
    job_file(console, "steps:\n- {id: one, run: 'echo rubbish >> \"$GITHUB_OUTPUT\"'}\n")
    done = console.run()
    assert done.returncode == 1
    assert "what it hands on cannot be used: $GITHUB_OUTPUT: line 1 is neither NAME=VALUE" in done.stderr
    assert console.statuses("job") == {"one": "failed"}


def test_a_failed_step_hands_nothing_on(console: Console) -> None:
    job_file(
        console,
        """\
continue-on-error: true
steps:
- {id: one, run: 'echo A=1 >> "$GITHUB_ENV"; echo "half a report" >> "$GITHUB_STEP_SUMMARY"; exit 1'}
- {id: two, needs: [], run: 'echo "A is ${A-unset}"'}
""",
    )
    assert "A is unset" in console.run().stdout
    assert console.state("job")["one"]["values"] == {"summary": "half a report\n"}


def test_only_the_try_that_worked_hands_on(console: Console) -> None:
    job_file(
        console,
        """\
steps:
- {id: one, retry: {max: 1, backoff: 0}, run: 'echo "T$CHECKPOINT_TRY=1" >> "$GITHUB_ENV"; test $CHECKPOINT_TRY = 2'}
- {id: two, run: 'echo "${T1-unset} ${T2-unset}"'}
""",
    )
    assert "unset 1" in console.run().stdout


SECRETS = """\
secrets: [TOKEN]
steps:
- id: masked
  run: |
    echo "::add-mask::hidden-$RANDOM_PART"
    echo "SESSION=hidden-$RANDOM_PART" >> "$GITHUB_ENV"
    echo "PLAIN=p" >> "$GITHUB_ENV"
    echo ran >> masked.log
  outputs: []
- id: declared
  needs: []
  run: |
    echo "auth=Bearer $TOKEN" >> "$GITHUB_OUTPUT"
  outputs: []
- id: user
  needs: [masked, declared]
  run: |
    test "$SESSION" = "hidden-$RANDOM_PART"
    test "$STEPS_DECLARED_OUTPUTS_AUTH" = "Bearer $TOKEN"
    echo "$PLAIN" >> user.log
  outputs: []
"""


def test_a_secret_is_handed_on_but_never_kept_and_its_step_runs_again(console: Console) -> None:
    job_file(console, SECRETS)
    env = {"TOKEN": "s3cret-token", "RANDOM_PART": "4711"}
    assert console.run(env=env).returncode == 0
    for path in console.folder.iterdir():
        if path.is_file() and path.name.startswith(".checkpoint-run-"):
            data = path.read_bytes()
            assert b"hidden-4711" not in data, path
            assert b"s3cret-token" not in data, path
    assert console.state("job")["masked"]["withheld"] == ["SESSION"]
    # Another secret the next time: what only sees secrets does not run again.
    env = {"TOKEN": "another", "RANDOM_PART": "0815"}
    planned = {row["id"]: row for row in json.loads(console.run("plan", "--json", env=env).stdout)["steps"]}
    assert {name: row["reason"] for name, row in planned.items()} == {
        "masked": "hands-on-secret",
        "declared": "hands-on-secret",
        "user": "needs-changed",
    }
    assert planned["user"]["detail"].endswith("skipped after all if it leaves the same")
    assert planned["masked"]["detail"] == "SESSION"
    ended = lines_of(console.run("--json", env=env).stdout)[-1]
    assert (ended["ran"], ended["skipped"], ended["exit-code"]) == (["masked", "declared"], ["user"], 0)


def test_an_independent_step_of_flags_sees_what_an_earlier_one_hands_on_only_in_order(console: Console) -> None:
    words = ["--job=j", "--step", 'a:echo v=1 >> "$GITHUB_ENV"', "--step", 'b:echo "v=${v-unset}"']
    assert "v=1" in console.run(*words).stdout
    assert "v=unset" in console.run(*words, "--force", "-j", "2").stdout


def test_the_command_itself_is_on_the_path_of_a_step(console: Console) -> None:
    done = console.run("--job=j", "--step", "a:cd / && checkpoint-run --version", env={"PATH": os.defpath})
    assert done.returncode == 0
    assert "checkpoint-run " in done.stdout


def test_nothing_of_a_run_is_left_but_its_state(console: Console) -> None:
    job_file(console, 'steps:\n- {id: one, run: \'echo A=1 >> "$GITHUB_ENV"; mkdir "$CHECKPOINT_DIR/x"\'}\n')
    assert console.run("--no-logs").returncode == 0
    left = sorted(path.name for path in console.folder.iterdir())
    kept = [".checkpoint-run-job.plan"] if sys.platform != "win32" else []
    ours = [".checkpoint-run-job.journal", ".checkpoint-run-job.json", ".checkpoint-run-job.lock", *kept]
    assert left == [*ours, "checkpoint.yml"]


def test_what_a_background_process_writes_late_is_no_value_of_a_later_step(console: Console) -> None:
    console.fifo("go")
    job_file(
        console,
        """\
steps:
- {id: a, run: '(read x < go; echo LATE=1 >> "$GITHUB_ENV"; echo > go) > /dev/null 2>&1 &'}
- {id: b, run: 'echo > go; read x < go'}
- {id: c, run: 'echo "${LATE-unset}"'}
""",
    )
    done = console.run()
    assert done.returncode == 0, done.stderr
    assert "unset" in done.stdout


@pytest.mark.parametrize("line", ["$TOKEN", "=$TOKEN", "A<<$TOKEN", "<<$TOKEN"])
def test_a_line_that_cannot_be_used_does_not_show_the_secret_in_it(console: Console, line: str) -> None:
    job_file(console, f'secrets: [TOKEN]\nsteps:\n- {{id: one, run: \'echo "{line}" >> "$GITHUB_OUTPUT"\'}}\n')
    env = {"TOKEN": "s3cret-token"}
    done = console.run(env=env)
    assert done.returncode == 1
    assert "s3cret" not in done.stdout + done.stderr
    assert "s3cret" not in json.dumps(console.state("job"))


def test_a_secret_in_a_message_of_ours_is_not_shown(console: Console) -> None:
    job_file(console, "secrets: [TOKEN]\nsteps:\n- {id: one, outputs: ['s3cret-*'], run: 'true'}\n")
    assert "s3cret-" not in console.run(env={"TOKEN": "s3cret-"}).stderr


def test_a_name_with_a_secret_in_it_is_withheld_without_being_told(console: Console) -> None:
    job_file(
        console,
        "secrets: [TOKEN]\nsteps:\n"
        "- {id: one, run: 'echo \"N$TOKEN=1\" >> \"$GITHUB_ENV\"'}\n- {id: two, run: 'true'}\n",
    )
    assert console.run(env={"TOKEN": "s3cret"}).returncode == 0
    assert "s3cret" not in json.dumps(console.state("job"))
    assert console.state("job")["one"]["withheld"] == ["N***"]


def test_a_plan_beside_a_run_says_that_the_step_is_running(console: Console) -> None:
    console.fifo("go")
    console.fifo("ready")
    job_file(console, "steps:\n- {id: one, on-crash: stop, run: 'echo > ready; read x < go'}\n")
    process = console.start()
    (console.folder / "ready").read_text()
    (row,) = json.loads(console.run("plan", "--json").stdout)["steps"]
    (console.folder / "go").write_text("\n")
    process.communicate(timeout=60)
    assert row["detail"] == "it is running right now"
