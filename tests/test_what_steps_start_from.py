"""What a step is really made from is what counts, wherever a path leads and whoever changed a file meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.journal import StatePaths
from tests.console import Console, environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh, and make links"),
    pytest.mark.timeout(120),
]


@pytest.fixture
def console(tmp_path: Path) -> Console:
    folder = tmp_path / "here"
    folder.mkdir()
    return Console(folder)


def job(console: Console, *steps: str, head: str = "") -> None:
    text = "".join(f"- {step}\n" for step in steps)
    (console.folder / "checkpoint.yml").write_text(f"job: j\n{head}steps:\n{text}")


def run(console: Console, *words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    done = console.run(*words, env=env)
    assert done.returncode == code, done.stderr
    return done.stderr


def planned(console: Console, *words: str) -> dict[str, tuple[str, str]]:
    """Action and reason for each step."""
    steps = json.loads(console.run("plan", "--json", *words).stdout)["steps"]
    return {one["id"]: (one["action"], one["reason"]) for one in steps}


DONE = ("skip", "done")


def test_a_step_made_from_an_output_that_was_edited_meanwhile_runs_again(console: Console) -> None:
    job(
        console,
        "{id: a, run: echo A >o, outputs: [o]}",
        "{id: b, run: '[ -e quiet ] || echo EDIT >o'}",
        "{id: c, needs: [a, b], run: cp o p, outputs: [p]}",
    )
    said = run(console)
    assert "step 'c' starts from files that are not as they were recorded: 'a' left something else" in said
    (console.folder / "quiet").touch()
    run(console)
    assert (console.folder / "p").read_text() == "A\n"
    assert set(planned(console).values()) == {DONE}


def test_a_step_made_from_what_a_failed_one_spoiled_runs_again(console: Console) -> None:
    job(
        console,
        "{id: a, run: echo A >o, outputs: [o]}",
        "{id: b, run: '[ -e fixed ] || { echo JUNK >o; exit 1; }', outputs: [o]}",
        "{id: c, needs: [a], run: cp o p, outputs: [p]}",
        head="continue-on-error: true\n",
    )
    run(console, code=1)
    (console.folder / "fixed").touch()
    run(console)
    assert (console.folder / "p").read_text() == "A\n"


def test_a_step_without_outputs_in_between_changes_nothing_about_that(console: Console) -> None:
    job(
        console,
        "{id: a, run: echo A >o, outputs: [o]}",
        "{id: pass, run: '[ -e quiet ] || echo EDIT >o'}",
        "{id: c, run: cp o p, outputs: [p]}",
    )
    run(console)
    (console.folder / "quiet").touch()
    run(console)
    assert (console.folder / "p").read_text() == "A\n"


def test_an_unchanged_need_is_no_reason_to_warn(console: Console) -> None:
    job(
        console,
        "{id: a, run: 'mkdir d; echo A >d/o', outputs: [d/]}",
        "{id: b, run: echo more >d/o, outputs: [d/o]}",
        "{id: c, run: cp d/o p, outputs: [p]}",
    )
    assert "warning" not in run(console)
    assert set(planned(console).values()) == {DONE}


def test_two_dots_behind_a_link_mean_what_the_system_means(console: Console) -> None:
    folder = console.folder
    (folder / "releases/5").mkdir(parents=True)
    (folder / "current").symlink_to("releases/5")
    (folder / "releases/shared").write_text("1")
    (folder / "shared").write_text("decoy")
    job(
        console,
        "{id: a, working-directory: current, inputs: [../shared], run: cp ../shared x, outputs: [x]}",
        "{id: b, inputs: [current/../shared], run: cat current/../shared}",
        "{id: c, working-directory: current, run: echo 1 >../y, outputs: [../y]}",
    )
    assert "warning" not in run(console)
    (folder / "shared").write_text("another decoy")
    assert set(planned(console).values()) == {DONE}
    (folder / "releases/shared").write_text("2")
    assert planned(console)["a"] == planned(console)["b"] == ("run", "inputs-changed")
    run(console)
    (folder / "releases/y").unlink()
    assert planned(console)["c"] == ("run", "output-missing")


def test_a_link_behind_a_followed_link_is_followed_too_and_a_circle_ends(console: Console) -> None:
    folder = console.folder
    for name in ("src", "lib", "real"):
        (folder / name).mkdir()
    (folder / "real/x").write_text("1")
    (folder / "lib/x").symlink_to("../real/x")
    (folder / "lib/back").symlink_to("../src")
    (folder / "src/l").symlink_to("../lib")
    job(console, "{id: a, inputs: [src/], run: cat src/l/x}")
    run(console)
    (folder / "real/x").write_text("2")
    assert planned(console)["a"] == ("run", "inputs-changed")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("name", ["conf", "cur/", "cur/**"])
def test_an_input_that_is_a_link_to_what_git_ignores_counts_by_content(console: Console, name: str) -> None:
    folder = console.folder
    subprocess.run(["git", "init", "-q", "."], cwd=folder, env=environment(), check=True)
    (folder / ".gitignore").write_text("build/\n")
    (folder / "build").mkdir()
    (folder / "build/c").write_text("1")
    (folder / "conf").symlink_to("build/c")
    (folder / "cur").symlink_to("build")
    job(console, f"{{id: a, inputs: ['{name}'], run: cat build/c}}")
    assert "warning" not in run(console)
    (folder / "build/c").write_text("2")
    assert planned(console)["a"] == ("run", "inputs-changed")


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="a file of no size with something in it")
def test_a_file_of_no_size_counts_by_what_is_in_it(console: Console) -> None:
    job(console, "{id: a, inputs: [/proc/self/stat], run: 'true'}")
    run(console)
    assert planned(console)["a"] == ("run", "inputs-changed")  # it tells of the reading process


def test_a_pattern_that_matches_a_pipe_alone_is_no_output(console: Console) -> None:
    job(console, "{id: a, run: 'mkdir out; mkfifo out/p', outputs: ['out/*']}")
    assert "its declared output out/* matches no file, folder or link" in run(console, code=1)


def test_what_may_not_be_read_is_told_and_an_output_of_that_kind_is_never_trusted(console: Console) -> None:
    as_user: tuple[str, ...] = ()
    if os.geteuid() == 0:  # without its privileges root may read no more than anybody else
        as_user = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
        if shutil.which("setpriv") is None:
            pytest.skip("root reads everything, and there is no setpriv")
    folder = console.folder
    (folder / "src/d").mkdir(parents=True)
    (folder / "src/d").chmod(0)
    (folder / "sec").write_text("1")
    (folder / "sec").chmod(0)
    job(
        console,
        "{id: a, inputs: [src/, sec], run: 'mkdir -p out/d; echo hi >out/d/f; chmod 0 out/d', outputs: [out/]}",
    )
    process = console.start("--quiet", prefix=as_user)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "its input sec cannot be read, so what is in it does not count" in said
    assert "its input src/d/ cannot be read, so what is in it does not count" in said
    process = console.start("plan", prefix=as_user)
    shown, _ = process.communicate(timeout=60)
    (folder / "out/d").chmod(0o700)
    assert "output-changed: out/d/: cannot be read" in shown


def test_a_reader_of_an_output_that_it_does_not_need_waits_for_it_in_the_plan_too(console: Console) -> None:
    job(
        console,
        "{id: a, inputs: [in], run: cp in o, outputs: [o]}",
        "{id: b, needs: [], inputs: [o], run: cp o p, outputs: [p]}",
    )
    (console.folder / "in").write_text("1")
    run(console)
    (console.folder / "in").write_text("2")
    assert planned(console)["b"] == ("run", "needs-changed")
    assert "[2/2] b: runs (inputs-changed" in run(console)
    (console.folder / "o").unlink()
    assert planned(console)["b"] == ("run", "needs-changed")
    assert "[2/2] b: skipped (done)" in run(console)


def test_a_step_that_may_turn_out_not_to_run_holds_nothing_back_that_only_names(console: Console) -> None:
    job(console, "{id: a, run: echo 1 >o, outputs: [o]}", "{id: b, run: 'true'}", "{id: c, run: echo c}")
    run(console)
    assert planned(console, "--only", "a", "c") == {
        "a": ("run", "selected"),
        "b": ("stop", "needs-changed"),
        "c": ("run", "selected"),
    }
    assert "job j: 2 done, 1 skipped" in run(console, "--only", "a", "c")


def test_a_done_step_whose_run_died_early_does_not_go_on_from_its_old_folder(console: Console) -> None:
    job(console, "{id: a, inputs: [in], run: 'ls -A $CHECKPOINT_DIR >seen; touch $CHECKPOINT_DIR/x'}")
    (console.folder / "in").write_text("1")
    run(console)
    left = StatePaths(console.folder, "j").progress / "_a.progress"  # as a kill right after the record leaves it
    left.mkdir(parents=True)
    (left / "old").touch()
    run(console)
    assert not left.exists()
    left.mkdir(parents=True)
    (left / "old").touch()
    (console.folder / "in").write_text("2")
    run(console)
    assert (console.folder / "seen").read_text() == ""


def test_an_output_too_large_for_a_variable_is_in_the_file_alone(console: Console) -> None:
    job(
        console,
        "{id: a, run: '{ echo small=1; printf big=; head -c 140000 /dev/zero | tr \"\\\\0\" x; } >>$GITHUB_OUTPUT'}",
        "{id: b, run: 'echo \"$STEPS_A_OUTPUTS_SMALL/${STEPS_A_OUTPUTS_BIG-none}\"; wc -c <$CHECKPOINT_STEPS'}",
    )
    shown = console.run()
    assert shown.returncode == 0, shown.stderr
    small, size = shown.stdout.split()
    assert small == "1/none"
    assert int(size) > 140_000


def test_a_variable_too_large_to_start_anything_is_named(console: Console) -> None:
    job(
        console,
        "{id: a, run: '{ printf BIG=; head -c 140000 /dev/zero | tr \"\\\\0\" x; echo; } >>$GITHUB_ENV'}",
        "{id: b, run: 'true'}",
    )
    assert "its largest variable is BIG with 140000 bytes" in run(console, code=1)


@pytest.mark.parametrize("words", [["plan"], ["plan", "--json"], []])
def test_a_secret_in_the_name_of_a_file_is_hidden_in_our_own_lines(console: Console, words: list[str]) -> None:
    job(console, "{id: a, run: 'touch f-$TOKEN', outputs: ['f-*']}", head="secrets: [TOKEN]\n")
    env = {"TOKEN": "hush-777"}
    run(console, env=env)
    (console.folder / "f-hush-777").unlink()
    shown = console.run(*words, env=env)
    assert "output-missing" in shown.stdout + shown.stderr
    assert "hush-777" not in shown.stdout + shown.stderr
    assert "f-***" in shown.stdout + shown.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["plan", "plan --json", "status --json", "--json", "logs a"])
def test_an_answer_that_cannot_be_written_ends_with_5(console: Console, words: str) -> None:
    job(console, "{id: a, run: echo hi}")
    run(console)
    with open("/dev/full", "w") as full:
        process = console.start(*words.split(), stdout=full)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 5
    assert said.splitlines()[-1] == "checkpoint-run: error CPR116: cannot write the answer: No space left on device"


def test_a_variable_and_an_output_of_the_same_name_are_told_apart(console: Console) -> None:
    job(
        console,
        "{id: a, inputs: [in], run: 'echo v=$(cat in) >>$GITHUB_OUTPUT; echo steps.a.outputs.v=fixed >>$GITHUB_ENV'}",
        "{id: b, run: echo $STEPS_A_OUTPUTS_V}",
    )
    (console.folder / "in").write_text("1")
    run(console)
    (console.folder / "in").write_text("2")
    assert "[2/2] b: runs (needs-changed" in run(console)


def test_a_files_later_edit_of_the_last_time_is_no_reason_to_warn(console: Console) -> None:
    job(
        console,
        "{id: a, inputs: [in], run: cp in o, outputs: [o]}",
        "{id: b, run: echo b >>o, outputs: [o]}",
        "{id: c, run: cat o}",
    )
    (console.folder / "in").write_text("1\n")
    run(console)
    (console.folder / "in").write_text("2\n")
    assert "warning" not in run(console)
    assert set(planned(console).values()) == {DONE}
    job(
        console,
        "{id: a, inputs: [in], run: cp in o, outputs: [o]}",
        "{id: b, run: echo B >>o, outputs: [o]}",
        "{id: c, run: cat o}",
    )
    assert "warning" not in run(console)
    assert set(planned(console).values()) == {DONE}


def test_what_a_step_that_runs_beside_edits_is_no_reason_to_run_again(console: Console) -> None:
    job(
        console,
        "{id: a, run: echo A >o, outputs: [o]}",
        "{id: b, needs: [a], outputs: [o], run: 'echo B >o; touch half; while ! test -e ready; do sleep 0.05; done'}",
        "{id: wait, needs: [a], run: 'while ! test -e half; do sleep 0.05; done'}",
        "{id: c, needs: [a, wait], run: touch ready}",
    )
    assert "warning" not in run(console, "-j", "4")
    assert set(planned(console).values()) == {DONE}
