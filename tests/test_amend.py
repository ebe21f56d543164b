"""``reset ID`` and ``accept ID``: what is recorded is changed, and nothing runs."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, plain, tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(90),
]

FLAGS = ("--job", "j", "--step", "a:echo a >>ran", "--step", "b:echo b >>ran", "--step", "c:echo c >>ran")
CHAIN = """\
job: j
steps:
- {id: a, run: echo a >>ran}
- {id: b, run: echo b >>ran; echo made >b.out, outputs: [b.out]}
- {id: c, run: echo c >>ran}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


@pytest.fixture
def chain(console: Console) -> Console:
    """A job file whose three steps are done."""
    (console.folder / "checkpoint.yml").write_text(CHAIN)
    assert console.run("--quiet").returncode == 0
    (console.folder / "ran").unlink()
    return console


def write(console: Console, *changes: tuple[str, str]) -> None:
    text = CHAIN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (console.folder / "checkpoint.yml").write_text(text)


def ran(console: Console) -> str:
    file = console.folder / "ran"
    return file.read_text().replace("\n", "") if file.exists() else ""


def actions(console: Console, *words: str) -> dict[str, str]:
    shown = console.run("plan", *words, "--json")
    return {step["id"]: f"{step['action']} {step['reason']}" for step in json.loads(shown.stdout)["steps"]}


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith("\n")


# ---------------------------------------------------------------------------------------------- reset


@pytest.mark.parametrize("words", [FLAGS, ("--job", "j")], ids=["steps", "name"])
def test_reset_forgets_the_named_steps_only(console: Console, words: tuple[str, ...]) -> None:
    console.run(*FLAGS)
    before = console.state("j")
    ended = console.run("reset", "a", *words, "c")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == (
        "checkpoint-run: job j: what was recorded of 'a' is forgotten\n"
        "checkpoint-run: job j: what was recorded of 'c' is forgotten\n"
    )
    assert console.state("j") == {"b": before["b"]}
    assert sorted(path.name for path in (console.folder / ".checkpoint-run-j.logs").iterdir()) == ["b.log"]
    assert actions(console, *FLAGS) == {"a": "run never-ran", "b": "skip done", "c": "run never-ran"}
    (console.folder / "ran").unlink()
    assert console.run(*FLAGS).returncode == 0
    assert ran(console) == "ac"


def test_reset_with_a_job_file_runs_the_step_again_and_those_that_need_it_only_if_it_differs(chain: Console) -> None:
    assert chain.run("reset", "b").returncode == 0
    assert chain.run().returncode == 0
    assert ran(chain) == "b"


def test_the_flag_reset_takes_ids_too(console: Console) -> None:
    console.run(*FLAGS)
    assert console.run("--reset", "b", "--job", "j").returncode == 0
    assert set(console.state("j")) == {"a", "c"}


@pytest.mark.parametrize("lost", [".json", ".journal"])
def test_neither_file_of_the_state_brings_a_forgotten_step_back(console: Console, lost: str) -> None:
    console.run(*FLAGS)
    assert console.run("reset", "b", "--job", "j").returncode == 0
    (console.folder / f".checkpoint-run-j{lost}").unlink()
    assert actions(console, *FLAGS) == {"a": "skip done", "b": "run never-ran", "c": "skip done"}


def test_reset_of_a_step_that_is_no_more_in_the_job(chain: Console) -> None:
    write(chain, ("id: c", "id: d"))
    assert chain.run("reset", "c").returncode == 0
    assert set(chain.state("j")) == {"a", "b"}


def test_reset_of_a_step_of_which_nothing_is_recorded(chain: Console) -> None:
    write(chain, ("id: c", "id: d"))
    before = chain.state("j")
    ended = chain.run("reset", "d")
    said = "checkpoint-run: job j: nothing was recorded of 'd', so there was nothing to forget\n"
    assert (ended.returncode, ended.stdout) == (0, said)
    assert chain.state("j") == before
    both = chain.run("reset", "d", "b", "--json")
    assert json.loads(both.stdout) == {"job": "j", "forgotten": ["b"]}


def test_reset_where_nothing_is_recorded_at_all(console: Console) -> None:
    ended = console.run("reset", "a", *FLAGS)
    assert (ended.returncode, ended.stdout) == (0, "checkpoint-run: job j: nothing was recorded\n")
    assert list(console.folder.iterdir()) == []


@pytest.mark.parametrize("words", [FLAGS, ("--job", "j")], ids=["steps", "name"])
def test_reset_of_an_unknown_step_names_the_nearest_and_changes_nothing(
    console: Console, words: tuple[str, ...]
) -> None:
    console.run(*FLAGS)
    before = tree(console.folder)
    refused = console.run("reset", "a", "B", *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "checkpoint-run: error CPR104: reset 'B': no step has this id; did you mean 'b'?\n"
    assert tree(console.folder) == before


def test_reset_without_ids_forgets_everything(chain: Console) -> None:
    assert chain.run("reset").returncode == 0
    assert not list(chain.folder.glob(".checkpoint-run-*"))


def test_reset_of_steps_leaves_logs_that_were_asked_for(console: Console) -> None:
    console.run(*FLAGS, "--step-log", "a:mine.log")
    assert console.run("reset", "a", "--job", "j").returncode == 0
    assert (console.folder / "mine.log").exists()


# ---------------------------------------------------------------------------------------------- accept


def test_a_space_in_a_command_is_accepted_and_nothing_runs(chain: Console) -> None:
    write(chain, ("echo b >>ran;", "echo b  >>ran;"))
    assert actions(chain) == {"a": "skip done", "b": "run command-changed", "c": "run needs-changed"}
    old = chain.state("j")["b"]
    ended = chain.run("accept", "b")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "checkpoint-run: job j: 'b' is taken as done, without running it\n"
    # It left the same as before, so c has nothing to do either.
    assert actions(chain) == dict.fromkeys("abc", "skip done")
    assert chain.run().returncode == 0
    assert ran(chain) == ""
    new = chain.state("j")["b"]
    assert new["fingerprint"] != old["fingerprint"]
    assert new["command"] == "echo b  >>ran; echo made >b.out"
    kept = ("tries", "duration", "started", "log", "layer", "result")
    assert {name: new[name] for name in kept} == {name: old[name] for name in kept}
    assert "exit_code" not in new


def test_status_and_plan_tell_an_accepted_step(chain: Console) -> None:
    write(chain, ("echo b >>ran;", "echo b  >>ran;"))
    chain.run("accept", "b")
    shown = chain.run("status").stdout.splitlines()
    assert shown[1].split()[:2] == ["a", "done"]
    assert "b  done (accepted)" in shown[2]
    assert "exit code" not in shown[2]
    steps = json.loads(chain.run("status", "--json").stdout)["steps"]
    assert [(step["step"], step.get("accepted")) for step in steps] == [("a", None), ("b", True), ("c", None)]
    assert "b  skip     done: accepted\n" in chain.run("plan").stdout
    assert "b: skipped (done: accepted)" in chain.run().stderr
    # Once it has run it is an ordinary one again.
    chain.run("--force", "b")
    assert "accepted" not in chain.run("status").stdout


def test_work_that_was_done_by_hand_is_accepted(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(CHAIN.replace("echo b >>ran", "exit 7"))
    assert console.run("--retry", "1", "--backoff", "0").returncode == 1
    (console.folder / "b.out").write_text("by hand")
    assert console.run("accept", "b").returncode == 0
    record = console.state("j")["b"]
    assert record["status"] == "done"
    assert not {"tries", "exit_code", "error", "duration", "signal"} & set(record)
    assert [entry["path"] for entry in record["layer"]["entries"]] == ["b.out"]
    assert console.run().returncode == 0
    assert ran(console) == "ac"
    status = console.run("status").stdout.splitlines()[2]
    assert status == "b  done (accepted)"
    assert "step 'b' has no log; it was accepted and not run" in console.run("logs", "b").stderr
    # It is trusted for as long as its output is what was accepted.
    (console.folder / "b.out").write_text("another")
    assert actions(console)["b"] == "run output-changed"


def test_an_edited_output_is_accepted_as_it_is_now(chain: Console) -> None:
    (chain.folder / "b.out").write_text("edited")
    assert actions(chain)["b"] == "run output-changed"
    old = chain.state("j")["b"]
    assert chain.run("accept", "b").returncode == 0
    assert chain.state("j")["b"]["result"] != old["result"]
    # What needs it has something else to go on from.
    assert actions(chain) == {"a": "skip done", "b": "skip done", "c": "run needs-changed"}


def test_a_missing_output_is_named_and_nothing_is_written(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(CHAIN)
    before = tree(console.folder)
    refused = console.run("accept", "a", "b")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "checkpoint-run: error CPR304: accept 'b': its declared output b.out is not there; "
        "make it, or let the step run\n"
    )
    assert {path: one[2] for path, one in tree(console.folder).items()} == {
        path: one[2] for path, one in before.items()
    }


def test_an_output_that_cannot_be_kept_is_named(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(CHAIN)
    os.mkfifo(console.folder / "b.out")
    refused = console.run("accept", "a", "b")
    assert refused.returncode == 2
    assert "accept 'b': its declared output b.out is no file, folder or link" in refused.stderr


def test_a_need_that_is_not_done_is_named(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(CHAIN)
    refused = console.run("accept", "c")
    assert refused.returncode == 2
    assert refused.stderr == (
        "checkpoint-run: error CPR304: accept 'c': it needs 'b', which is not done (never-ran); run that first, "
        "or accept it too\n"
    )
    assert not list(console.folder.glob(".checkpoint-run-*"))


def test_a_need_that_would_run_is_named(chain: Console) -> None:
    write(chain, ("echo a >>ran", "echo a  >>ran"))
    before = chain.state("j")
    refused = chain.run("accept", "b")
    assert refused.returncode == 2
    assert "accept 'b': it needs 'a', which is not done (command-changed: " in refused.stderr
    # And one further up, through what is in between.
    refused = chain.run("accept", "c")
    assert "accept 'c': it needs 'b', which is not done (needs-changed: a: " in refused.stderr
    assert chain.state("j") == before


@pytest.mark.parametrize("ids", [("a", "b", "c"), ("c", "b", "a", "b")])
def test_a_chain_is_accepted_in_the_jobs_order(console: Console, ids: tuple[str, ...]) -> None:
    (console.folder / "checkpoint.yml").write_text(CHAIN)
    (console.folder / "b.out").write_text("made")
    ended = console.run("accept", *ids)
    assert ended.returncode == 0
    assert [line.split("'")[1] for line in ended.stdout.splitlines()] == ["a", "b", "c"]
    assert actions(console) == dict.fromkeys("abc", "skip done")
    assert console.run().returncode == 0
    assert ran(console) == ""


def test_an_accepted_step_without_outputs_counts_as_it_did_for_what_needs_it(chain: Console) -> None:
    """Nobody knows what it leaves: who accepts it says that it is what it was, so nothing that needs it runs."""
    write(chain, ("echo a >>ran", "echo a  >>ran"))
    assert chain.run("accept", "a").returncode == 0
    assert actions(chain) == dict.fromkeys("abc", "skip done")


def test_accepting_a_step_that_never_ran_says_that_it_hands_nothing_on(chain: Console) -> None:
    assert chain.run("reset", "a").returncode == 0
    assert (
        "'a' is taken as done, without running it; it hands nothing on, as no finished run of it is on record"
        in chain.run("accept", "a").stdout
    )


def test_a_step_that_is_done_stays_as_it_is(chain: Console) -> None:
    before = {path: one for path, one in tree(chain.folder).items() if path != ".checkpoint-run-j.lock"}
    ended = chain.run("accept", "b")
    assert (ended.returncode, ended.stdout) == (0, "checkpoint-run: job j: 'b' is done as it is\n")
    assert {path: one for path, one in tree(chain.folder).items() if path != ".checkpoint-run-j.lock"} == before


def test_a_later_steps_edit_is_not_taken_for_what_an_earlier_one_left(console: Console) -> None:
    text = (
        "job: j\nsteps:\n"
        "- {id: a, run: echo 1 >f; echo a >>ran, outputs: [f]}\n"
        "- {id: edits, run: echo 2 >>f; echo e >>ran, outputs: [f]}\n"
    )
    (console.folder / "checkpoint.yml").write_text(text)
    console.run()
    (console.folder / "ran").unlink()
    old = console.state("j")["a"]
    (console.folder / "checkpoint.yml").write_text(text.replace("echo 1", "echo  1"))
    assert console.run("accept", "a").returncode == 0
    assert console.state("j")["a"]["result"] == old["result"]
    # Else the file would be edited a second time.
    assert console.run().returncode == 0
    assert ran(console) == ""
    # What somebody else has edited is accepted as it is now.
    (console.folder / "f").write_text("mine")
    assert console.run("accept", "a", "edits").returncode == 0
    assert console.state("j")["a"]["result"] != old["result"]
    assert actions(console) == {"a": "skip done", "edits": "skip done"}


def test_a_step_with_outputs_auto_is_accepted(console: Console) -> None:
    text = "job: j\nsteps:\n- {id: a, run: echo a >>ran, outputs: auto}\n- {id: b, run: echo b >>ran, outputs: auto}\n"
    (console.folder / "checkpoint.yml").write_text(text)
    assert console.run("accept", "a").returncode == 0
    assert console.run().returncode == 0
    assert ran(console) == "b"
    assert actions(console) == {"a": "skip done", "b": "skip done"}


def test_what_an_accepted_step_handed_on_is_handed_on_still(console: Console) -> None:
    text = "job: j\nsteps:\n- {id: a, run: 'echo V=7 >>$GITHUB_ENV'}\n- {id: b, run: 'echo $V >>ran'}\n"
    (console.folder / "checkpoint.yml").write_text(text)
    assert console.run().returncode == 0
    (console.folder / "checkpoint.yml").write_text(text.replace("echo V", "echo  V"))
    assert console.run("accept", "a", "b").returncode == 0
    assert console.run("--force", "b").returncode == 0
    assert ran(console) == "77"


def test_that_a_need_always_runs_makes_it_not_undone(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nsteps:\n- {id: login, run: 'true', always: true}\n- {id: b, run: echo b >>ran}\n"
    )
    assert "it needs 'login', which is not done (never-ran)" in console.run("accept", "b").stderr
    console.run("--only", "login")
    assert console.run("accept", "b").returncode == 0
    assert console.run().returncode == 0
    assert ran(console) == ""


def test_accept_with_steps_of_the_command_line(console: Console) -> None:
    ended = console.run("accept", "b", *FLAGS)
    assert ended.returncode == 0
    assert console.run(*FLAGS).returncode == 0
    assert ran(console) == "ac"


def test_accept_makes_the_folder_of_the_state(console: Console) -> None:
    assert console.run("accept", "b", *FLAGS, "--state-dir", "state/deep").returncode == 0
    assert set(console.state("j", "state/deep")) == {"b"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("accept", *FLAGS), "accept takes steps as done without running them; name them: checkpoint-run accept ID"),
        (("accept", "B", *FLAGS), "accept 'B': no step has this id; did you mean 'b'?"),
        (("accept", "b", "--job", "j"), "no steps; give --step ID:COMMAND or a job file"),
        (("accept", "b", *FLAGS, "--dry-run"), "--status, --reset, --dry-run and the verbs exclude each other"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(console: Console, words: tuple[str, ...], said: str) -> None:
    refused = console.run(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert one_line(refused.stderr)
    assert plain(refused.stderr).startswith(f"checkpoint-run: error: {said}")
    assert list(console.folder.iterdir()) == []


# ---------------------------------------------------------------------------------------------- both


@pytest.mark.parametrize("verb", ["reset", "accept"])
def test_they_wait_for_no_run_unless_asked(console: Console, verb: str) -> None:
    up, go = console.fifo("up"), console.fifo("go")
    steps = ("--job", "j", "--step", "a:echo up >up; cat go", "--step", "b:true")
    with console.start(*steps) as running:
        up.read_text()
        refused = console.run(verb, "b", *steps)
        assert refused.returncode == 4
        assert f"another run holds this job (process {running.pid})" in refused.stderr
        go.write_text("")
        running.communicate()
    assert console.statuses("j") == {"a": "done", "b": "done"}
    assert console.run(verb, "b", *steps, "--wait-lock").returncode == 0


@pytest.mark.parametrize("words", [("reset", "a", "--job", "j"), ("accept", "a", *FLAGS)])
def test_a_damaged_snapshot_is_put_aside_with_one_line(console: Console, words: tuple[str, ...]) -> None:
    console.run(*FLAGS)
    (console.folder / ".checkpoint-run-j.json").write_bytes(b"")
    changed = [word.replace("echo a", "echo  a") for word in words]
    ended = console.run(*changed)
    assert ended.returncode == 0
    assert one_line(ended.stderr)
    assert ".checkpoint-run-j.json is damaged" in ended.stderr
    assert (console.folder / ".checkpoint-run-j.json.damaged-1").exists()
    assert set(console.state("j")) == ({"b", "c"} if words[0] == "reset" else {"a", "b", "c"})
