"""What counts as done, where users of such tools were bitten; one behaviour a test, through the installed program."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import checkpoint_action
from tests.console import Console, environment, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(120),  # a run that does not end fails the test, not the whole suite
]


@pytest.fixture
def console(tmp_path: Path) -> Console:
    folder = tmp_path / "here"
    folder.mkdir()
    return Console(folder)


def job(console: Console, *steps: str, head: str = "") -> None:
    """Write the job file; each step leaves its id in ``ran`` each time it runs."""
    text = "".join(f"- {step}\n" for step in steps)
    (console.folder / "checkpoint.yml").write_text(f"job: j\n{head}steps:\n{text}")


def echoing(name: str, more: str = "") -> str:
    """A step that does nothing else."""
    return f"{{id: {name}, run: 'echo {name} >>ran'{more}}}"


def ran(console: Console, *words: str, code: int = 0, env: Mapping[str, str] | None = None) -> list[str]:
    """Which steps a run starts."""
    (console.folder / "ran").unlink(missing_ok=True)
    ended = console.run("--quiet", *words, env=env)
    assert ended.returncode == code, ended.stderr
    file = console.folder / "ran"
    return file.read_text().split() if file.exists() else []


def planned(console: Console, *words: str, env: Mapping[str, str] | None = None) -> dict[str, tuple[str, str]]:
    """Reason and detail for each step."""
    shown = console.run("plan", "--json", *words, env=env)
    assert shown.returncode == 0, shown.stderr
    return {one["id"]: (one["reason"], one["detail"]) for one in json.loads(shown.stdout)["steps"]}


# ---------------------------------------------------------------------------------------------- outputs


@pytest.mark.parametrize(
    ("outputs", "named"),
    [
        ("[a.txt, b.txt]", "b.txt"),
        ("[a.txt, dist/]", "dist/"),
        ("[a.txt, '*.o']", "*.o"),
        ("[a.txt/]", "a.txt/"),
        ("[a.txt, 'empty/**']", "empty/**"),
    ],
)
def test_success_without_all_outputs_is_a_failure_that_names_the_first_missing(
    console: Console, outputs: str, named: str
) -> None:
    job(
        console,
        f"{{id: a, run: 'echo a >>ran; echo made >a.txt; mkdir -p empty', outputs: {outputs}}}",
        echoing("b"),
    )
    assert ran(console, code=1) == ["a"]
    record = console.state("j")["a"]
    assert (record["status"], record["exit_code"]) == ("failed", -2)
    assert record["error"] == f"it ended without its declared output {named}"
    # Not even once somebody else has made it.
    for name in ("b.txt", "x.o", "empty/x", "dist/x"):
        (console.folder / name).parent.mkdir(exist_ok=True)
        (console.folder / name).write_text("by hand")
    assert planned(console)["a"][0] == "failed-before"


MAKES = "rm -rf out; mkdir -p out/empty; echo made >out/f; echo other >out/g; ln -s f out/link"


def unlike_time(path: Path) -> None:
    """Other content of the same size, under the same time."""
    before = path.stat()
    path.write_text("edam\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    make(path)


DAMAGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "an empty folder is gone": (lambda out: (out / "empty").rmdir(), "output-missing", "out/empty"),
    "the whole folder is gone": (shutil.rmtree, "output-missing", "out"),
    "a file in it is gone": (lambda out: (out / "g").unlink(), "output-missing", "out/g"),
    "a link is gone": (lambda out: (out / "link").unlink(), "output-missing", "out/link"),
    "a link leads elsewhere": (
        lambda out: replaced(out / "link", lambda path: path.symlink_to("g")),
        "output-changed",
        "out/link: link:f → link:g",
    ),
    "a link has become what it led to": (
        lambda out: replaced(out / "link", lambda path: path.write_text("made\n")),
        "output-changed",
        "out/link: link:f → sha256 ",
    ),
    "a file has become a link to such a file": (
        lambda out: replaced(out / "f", lambda path: path.symlink_to("../same")),
        "output-changed",
        "out/f: sha256 ",
    ),
    "a file has become a folder": (
        lambda out: replaced(out / "g", lambda path: path.mkdir()),
        "output-changed",
        "out/g: sha256 ",
    ),
    "one more byte": (lambda out: (out / "f").write_text("made\n\n"), "output-changed", "out/f: sha256 "),
    "same size and time": (lambda out: unlike_time(out / "f"), "output-changed", "out/f: sha256 "),
    "a file may be executed": (
        lambda out: (out / "f").chmod(0o755),
        "output-changed",
        "out/f: mode 0644 → 0755",
    ),
    "a folder's mode": (lambda out: (out / "empty").chmod(0o700), "output-changed", "out/empty: mode 0755 → 0700"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_step_whose_output_is_not_as_it_was_left_runs_again_with_that_reason(console: Console, damage: str) -> None:
    do, reason, detail = DAMAGES[damage]
    job(console, f"{{id: a, run: 'umask 022; echo a >>ran; {MAKES}', outputs: [out/]}}", echoing("b", ", needs: []"))
    (console.folder / "same").write_text("made\n")
    assert ran(console) == ["a", "b"]
    do(console.folder / "out")
    found = planned(console)
    assert found["a"][0] == reason
    assert found["a"][1].startswith(detail)
    assert found["b"] == ("done", "")
    assert ran(console) == ["a"]
    assert (console.folder / "out/link").readlink() == Path("f")
    assert (console.folder / "out/f").read_text() == "made\n"
    assert (console.folder / "out/empty").is_dir()
    assert ran(console) == []


def test_a_clean_checkout_costs_the_steps_whose_outputs_it_removed(console: Console) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    job(
        console,
        "{id: a, run: 'echo a >>ran; echo made >out', outputs: [out], needs: []}",
        echoing("b", ", needs: []"),
        "{id: c, run: 'cat out; echo c >>ran', needs: [a]}",
    )
    subprocess.run(["git", "init", "--quiet"], cwd=console.folder, check=True)
    subprocess.run(["git", "add", "checkpoint.yml"], cwd=console.folder, check=True)
    words = ("--state-dir", "../state")
    assert ran(console, *words) == ["a", "b", "c"]
    subprocess.run(["git", "clean", "-ffdxq"], cwd=console.folder, check=True)
    assert planned(console, *words)["a"] == ("output-missing", "out")
    assert ran(console, *words) == ["a"]


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "failure"])
def test_half_an_output_never_counts_and_nothing_goes_on_from_it(console: Console, how: str) -> None:
    end = "exit 7" if how == "failure" else "exec sleep 600"
    job(
        console,
        "{id: a, run: 'echo a >>ran; printf half >out; if [ -e hold ]; then echo up >up; " + end + "; fi; "
        "printf whole >out', outputs: [out]}",
        "{id: b, run: 'echo b >>ran; cp out copy', outputs: [copy]}",
    )
    up = console.fifo("up")
    (console.folder / "hold").touch()
    running = console.start("--quiet")
    assert up.read_text() == "up\n"
    if how != "failure":
        running.send_signal(signal.Signals[how])
    running.communicate(timeout=60)
    assert running.returncode == {"SIGINT": 130, "SIGTERM": 143, "failure": 1}[how]
    assert (console.folder / "out").read_text() == "half"
    assert not (console.folder / "copy").exists()
    reason = "failed-before" if how == "failure" else "interrupted-before"
    assert planned(console)["a"][0] == reason
    # Not even if what lies about is whole by now.
    (console.folder / "out").write_text("whole")
    assert planned(console)["a"][0] == reason
    (console.folder / "hold").unlink()
    assert ran(console) == ["a", "b"]
    assert (console.folder / "copy").read_text() == "whole"


def test_a_file_that_a_later_step_edits_is_nobodys_damage(console: Console) -> None:
    compiles = "{id: compile, run: 'echo compile >>ran; echo symbols >app', outputs: [app]}"
    strips = "{id: strip, run: 'echo strip >>ran; if [ -e broken ]; then exit 1; fi; echo bare >app', outputs: [app]}"
    job(console, compiles, strips)
    assert ran(console) == ["compile", "strip"]
    assert ran(console) == []
    # A failed edit may have left anything.
    job(console, compiles, strips.replace("bare", "naked"))
    (console.folder / "broken").touch()
    assert ran(console, code=1) == ["strip"]
    (console.folder / "broken").unlink()
    assert ran(console) == ["compile", "strip"]
    # Without the edit the file has to be as it was before.
    job(console, compiles)
    assert ran(console) == ["compile"]
    assert (console.folder / "app").read_text() == "symbols\n"


# ---------------------------------------------------------------------------------------------- the step itself


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("echo x", "echo  x"),
        ("echo x", "echo\\tx"),
        ("echo x", "echo x "),
        ("echo x", "echo x\\n"),
        ("if true\\nthen echo x\\nfi", "if true\\nthen  echo x\\nfi"),
    ],
)
def test_a_change_of_white_space_counts_and_the_plan_shows_it(console: Console, before: str, after: str) -> None:
    job(console, f'{{id: a, run: "{before}"}}')
    assert console.run().returncode == 0
    job(console, f'{{id: a, run: "{after}"}}')
    reason, detail = planned(console)["a"]
    assert reason == "command-changed"
    old, arrow, new = detail.partition(" → ")
    assert arrow
    assert old != new


def test_unset_empty_and_set_are_three_values_of_an_outside_variable(console: Console) -> None:
    name = "CHECKED_OUTSIDE"
    job(console, echoing("a", f", pass-env: [{name}]"), echoing("b", ", needs: []"))
    worlds: dict[str, dict[str, str]] = {"unset": {}, "empty": {name: ""}, "value": {name: "1"}}
    assert ran(console, env=worlds["unset"]) == ["a", "b"]
    now = "unset"
    for then in ("empty", "value", "unset", "value", "empty", "unset"):
        reason, detail = planned(console, env=worlds[then])["a"]
        old, _, new = detail.removeprefix(f"{name}: ").partition(" → ")
        assert (reason, old.partition(" ")[0], new.partition(" ")[0]) == ("env-changed", now, then)
        assert ran(console, env=worlds[then]) == ["a"]
        assert ran(console, env=worlds[then]) == []
        now = then


def test_an_input_under_another_name_is_another_input(console: Console) -> None:
    (console.folder / "src").mkdir()
    (console.folder / "src/one").write_text("same")
    job(console, echoing("a", ", inputs: ['src/**']"))
    assert ran(console) == ["a"]
    (console.folder / "src/one").rename(console.folder / "src/two")
    reason, detail = planned(console)["a"]
    assert reason == "inputs-changed"
    assert detail.startswith("src/one: 0644 sha256 ")
    assert " → not there" in detail
    assert ran(console) == ["a"]


def test_what_a_step_does_to_its_shell_ends_with_it(console: Console) -> None:
    (console.folder / "sub").mkdir()
    job(
        console,
        "{id: a, run: 'cd sub; export LEFT=1; set +e; alias ls=false'}",
        "{id: b, run: 'pwd; echo ${LEFT-unset}'}",
    )
    assert console.run().stdout == f"{console.folder}\nunset\n"


def test_another_version_of_the_program_runs_nothing_again(console: Console, tmp_path: Path) -> None:
    (console.folder / "in").write_text("in")
    job(console, "{id: a, run: 'echo a >>ran; echo made >out', inputs: [in], outputs: [out]}", echoing("b"))
    assert ran(console) == ["a", "b"]
    shutil.copytree(Path(checkpoint_action.__file__).parent, tmp_path / "newer/checkpoint_action")
    source = tmp_path / "newer/checkpoint_action/__init__.py"
    version = checkpoint_action.__version__
    assert source.read_text().count(f'"{version}"') == 1
    source.write_text(source.read_text().replace(f'"{version}"', '"99.0.0"'))

    def newer(*words: str) -> str:
        program = [sys.executable, "-m", "checkpoint_action", *words]
        env = environment({"PYTHONPATH": str(tmp_path / "newer")})
        done = subprocess.run(program, cwd=console.folder, env=env, capture_output=True, text=True, check=True)
        return done.stdout

    assert newer("--version") == "checkpoint-run 99.0.0\n"
    assert lines_of(newer("--json", "--quiet"))[-1]["skipped"] == ["a", "b"]
    # And back again.
    assert ran(console) == []


# ---------------------------------------------------------------------------------------------- the list of steps

LEAVES = "{id: %s, run: 'echo %s >>ran; echo same >%s.out', outputs: [%s.out]}"


def leaving(name: str) -> str:
    """A step that leaves a file, always the same."""
    return LEAVES % ((name,) * 4)


def test_an_inserted_step_runs_with_what_needs_it_and_no_further_than_it_matters(console: Console) -> None:
    job(console, leaving("a"), leaving("b"), leaving("c"))
    assert ran(console) == ["a", "b", "c"]
    job(console, leaving("a"), leaving("new"), leaving("b"), leaving("c"))
    assert planned(console)["b"][0] == "needs-changed"
    assert ran(console) == ["new", "b"]
    assert ran(console) == []


def test_a_renamed_step_runs_and_costs_no_other_that_does_not_need_it(console: Console) -> None:
    job(console, leaving("a"), leaving("b"), echoing("c", ", needs: [a]"), echoing("d", ", needs: []"))
    assert ran(console) == ["a", "b", "c", "d"]
    job(console, leaving("a"), leaving("e"), echoing("c", ", needs: [a]"), echoing("d", ", needs: []"))
    assert planned(console)["e"] == ("never-ran", "")
    assert ran(console) == ["e"]


def test_the_order_in_the_file_does_not_count(console: Console) -> None:
    steps = [leaving("a"), echoing("b", ", needs: []"), echoing("c", ", needs: [a]"), echoing("d", ", needs: [b, c]")]
    job(console, steps[0].replace("outputs", "needs: [], outputs"), *steps[1:])
    assert ran(console) == ["a", "b", "c", "d"]
    job(console, *reversed(steps[1:]), steps[0].replace("outputs", "needs: [], outputs"))
    assert ran(console) == []


def test_a_step_that_was_left_out_for_a_while_is_still_done(console: Console) -> None:
    job(console, leaving("a"), echoing("b", ", needs: []"))
    assert ran(console) == ["a", "b"]
    job(console, echoing("b", ", needs: []"))
    assert ran(console) == []
    job(console, leaving("a"), echoing("b", ", needs: []"))
    assert ran(console) == []


def test_from_runs_what_is_not_done_before_the_named_step_too(console: Console) -> None:
    breaks = "{id: b, run: 'echo b >>ran; test -e fixed'}"
    job(console, echoing("a"), breaks, echoing("c"), echoing("d"))
    assert ran(console, "--from", "c", code=1) == ["a", "b"]
    # What has failed never counts, also behind the back of --from.
    (console.folder / "fixed").touch()
    assert planned(console, "--from", "c")["b"][0] == "failed-before"
    assert ran(console, "--from", "c") == ["b", "c", "d"]
    assert ran(console, "--from", "c") == ["c", "d"]
