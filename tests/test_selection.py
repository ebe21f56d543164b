"""Which steps run: ``--only`` and ``--force ID``, through the installed console script."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.console import Console, lines_of, plain, tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(90),
]

CHAIN = """\
job: j
steps:
- {id: a, run: echo a >>ran, inputs: [in.txt]}
- {id: b, run: echo b >>ran}
- {id: c, run: echo c >>ran}
- {id: d, run: echo d >>ran}
- {id: e, run: echo e >>ran}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "checkpoint.yml").write_text(CHAIN)
    (tmp_path / "in.txt").write_text("1")
    return Console(tmp_path)


@pytest.fixture
def done(console: Console) -> Console:
    """All five steps are done, and the file of what ran is empty again."""
    assert console.run("--quiet").returncode == 0
    return forget_ran(console)


def forget_ran(console: Console) -> Console:
    (console.folder / "ran").unlink(missing_ok=True)
    return console


def ran(console: Console) -> str:
    file = console.folder / "ran"
    return file.read_text().replace("\n", "") if file.exists() else ""


def planned(console: Console, *words: str) -> dict[str, tuple[str, str, str]]:
    """What a plan says of each step that it tells of: action, reason, detail."""
    shown = console.run("plan", *words, "--json")
    assert shown.returncode == 0, shown.stderr
    return {step["id"]: (step["action"], step["reason"], step["detail"]) for step in json.loads(shown.stdout)["steps"]}


def events(console: Console, *words: str, code: int) -> list[dict[str, Any]]:
    ended = console.run(*words, "--json", "--quiet")
    assert ended.returncode == code, ended.stderr
    return lines_of(ended.stdout)


def told(found: list[dict[str, Any]]) -> dict[str, tuple[str, str, str]]:
    """What a run's events say of each step that it told of, in the words of a plan."""
    return {one["id"]: (one["action"], one["reason"], one["detail"]) for one in found if "action" in one}


# ---------------------------------------------------------------------------------------------- --only


def test_only_runs_the_named_step_and_skips_what_it_needs(done: Console) -> None:
    words = ("--only", "c")
    plan = planned(done, *words)
    assert plan == {"a": ("skip", "done", ""), "b": ("skip", "done", ""), "c": ("run", "selected", "")}
    found = events(done, *words, code=0)
    assert told(found) == plan
    assert found[0]["steps"] == ["a", "b", "c"]
    assert (found[-1]["ran"], found[-1]["skipped"], found[-1]["pending"]) == (["c"], ["a", "b"], [])
    assert ran(done) == "c"


@pytest.mark.parametrize(
    "words", [("--only", "e", "b"), ("--only", "b", "--only", "e"), ("--only", "e", "--only", "b", "e")]
)
def test_only_takes_several_ids_in_any_way_and_runs_them_in_the_jobs_order(
    done: Console, words: tuple[str, ...]
) -> None:
    assert done.run(*words).returncode == 0
    assert ran(done) == "be"


def test_only_does_not_look_at_steps_outside(done: Console) -> None:
    before = done.state("j")
    # One has changed; the shell of another is not there, which would end any other run with 2.
    changed = CHAIN.replace("echo d", "echo changed; echo d")
    changed = changed.replace("{id: e,", "{id: e, shell: 'no-such-program {0}', inputs: ['none/**'],")
    (done.folder / "checkpoint.yml").write_text(changed)
    ended = done.run("--only", "b")
    assert ended.returncode == 0
    assert not [name for name in "cde" if f"] {name}: " in ended.stderr]
    assert "matches no file" not in ended.stderr
    after = done.state("j")
    assert {step: after[step] for step in "acde"} == {step: before[step] for step in "acde"}
    assert ran(done) == "b"


def test_only_runs_a_step_that_has_failed_before(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(CHAIN.replace("echo b", "test -e ok && echo b"))
    assert console.run().returncode == 1
    (console.folder / "ok").touch()
    assert console.run("--only", "b").returncode == 0
    assert ran(console) == "ab"
    assert console.statuses("j") == {"a": "done", "b": "done"}


def test_only_leaves_a_step_whose_need_would_have_to_run(done: Console) -> None:
    (done.folder / "in.txt").write_text("2")
    before = tree(done.folder)
    words = ("--only", "d", "b")
    plan = planned(done, *words)
    assert tree(done.folder) == before
    digest = "in.txt: 0644 sha256 6b86b273ff34 → 0644 sha256 d4735e3a265e"
    assert plan["a"] == ("stop", "inputs-changed", f"{digest}; --only leaves it out")
    assert plan["b"] == (
        "stop",
        "selected",
        f"it needs 'a', which would have to run (inputs-changed: {digest}); add a to --only",
    )
    assert plan["d"][:2] == ("stop", "selected")
    found = events(done, *words, code=2)
    assert told(found) == plan
    assert (found[-1]["ran"], found[-1]["held"]) == ([], ["b", "d"])
    assert ran(done) == ""
    # To a person it is one line for each step that was asked for.
    said = done.run(*words, "--quiet")
    assert said.returncode == 2
    assert len(said.stderr.splitlines()) == 2
    assert f"[2/5] b: left ({plan['b'][2]})" in said.stderr
    assert "selected" not in said.stderr
    assert done.statuses("j") == dict.fromkeys("abcde", "done")


def test_only_names_all_that_is_missing_at_once(done: Console) -> None:
    (done.folder / "in.txt").write_text("2")
    detail = planned(done, "--only", "d")["d"][2]
    # As a declares no outputs, what it will leave is known: b and c would have to run as well.
    assert detail.startswith("it needs 'a', which would have to run (inputs-changed: ")
    assert detail.endswith("), as would b and c; add a, b and c to --only")
    assert done.run("--only", "d").returncode == 2
    assert done.run("--only", "a", "b", "c", "d").returncode == 0
    assert ran(done) == "abcd"


def test_only_names_no_more_steps_than_a_line_can_bear(console: Console) -> None:
    steps = "".join(f"- {{id: s{number}, run: echo s{number} >>ran}}\n" for number in range(30))
    (console.folder / "checkpoint.yml").write_text("job: j\nsteps:\n" + steps)
    assert planned(console, "--only", "s29")["s29"][2] == (
        "it needs 's0', which would have to run (never-ran), as would 28 more; "
        "add them to --only (plan names each), or use --from s0"
    )
    detail = planned(console, "--only", "s10")["s10"][2]
    assert detail.endswith(
        "as would s1, s2, s3, s4, s5, s6, s7, s8 and s9; add s0, s1, s2, s3, s4, s5, s6, s7, s8 and s9 to --only"
    )


def test_only_in_a_fresh_folder_names_what_never_ran(console: Console) -> None:
    assert planned(console, "--only", "c")["c"] == (
        "stop",
        "selected",
        "it needs 'a', which would have to run (never-ran), as would b; add a and b to --only",
    )
    assert console.run("--only", "c").returncode == 2
    assert ran(console) == ""
    assert console.run("--only", "a").returncode == 0
    assert ran(console) == "a"


def test_only_decides_by_what_the_named_steps_leave(done: Console) -> None:
    """An unnamed step between two named ones is skipped where the first leaves the same, and holds the second else."""
    assert planned(done, "--only", "b", "d")["c"] == ("skip", "done", "")
    assert done.run("--only", "b", "d").returncode == 0
    assert ran(done) == "bd"
    (done.folder / "checkpoint.yml").write_text(CHAIN.replace("echo b", "true; echo b"))
    forget_ran(done)
    plan = planned(done, "--only", "b", "d")
    assert (plan["b"][0], plan["c"][:2], plan["d"][0]) == ("run", ("stop", "needs-changed"), "stop")
    assert told(events(done, "--only", "b", "d", code=2)) == plan
    assert ran(done) == "b"


@pytest.mark.parametrize(("words", "between"), [("a c", "b"), ("a d", "b or c")])
def test_a_plan_says_which_named_step_may_be_left_in_the_end(console: Console, words: str, between: str) -> None:
    """What a leaves is known once it has run: what is left out between it and the last step may have to run then."""
    text = CHAIN.replace("run: echo a >>ran", "run: cat in.txt >out; echo a >>ran, outputs: [out]")
    (console.folder / "checkpoint.yml").write_text(text)
    assert console.run("--quiet").returncode == 0
    names = words.split()
    perhaps = f"left after all if {between} would have to run; to be sure, add {between.replace('or', 'and')} to --only"
    plan = planned(forget_ran(console), "--only", *names)
    assert plan["b"] == (
        "stop",
        "needs-changed",
        "a runs first; skipped after all if it leaves the same; --only leaves it out",
    )
    assert plan[names[1]] == ("run", "selected", perhaps)
    assert console.run("--only", *names).returncode == 0
    assert ran(console) == "".join(names)
    (console.folder / "in.txt").write_text("2")
    assert planned(forget_ran(console), "--only", "a", "d")["a"][:2] == ("run", "selected")
    left = told(events(console, "--only", *names, code=2))[names[1]]
    assert left[:2] == ("stop", "selected")
    assert left[2].startswith("it needs 'b', which would have to run (needs-changed: a: ")
    assert ran(console) == "a"
    (console.folder / "in.txt").write_text("3")
    plan = planned(console, "--only", "a", "b", "c", "d")
    assert [plan[step] for step in "bcd"] == [("run", "selected", "")] * 3, "nothing in between is left out"


def test_a_plan_names_no_more_steps_that_may_be_missing_than_a_line_can_bear(console: Console) -> None:
    steps = "".join(f"- {{id: s{number}, run: echo s{number} >>ran}}\n" for number in range(1, 15))
    first = "- {id: s0, run: echo >out, outputs: [out]}\n"
    (console.folder / "checkpoint.yml").write_text("job: j\nsteps:\n" + first + steps)
    assert console.run("--quiet").returncode == 0
    assert planned(console, "--only", "s0", "s14")["s14"][2] == (
        "left after all if s1 or one of 12 more would have to run; "
        "to be sure, add them to --only (plan names each), or use --from s1"
    )


def test_only_goes_on_with_what_can_run(done: Console) -> None:
    (done.folder / "checkpoint.yml").write_text(CHAIN + "- {id: f, needs: [], run: echo f >>ran}\n")
    (done.folder / "in.txt").write_text("2")
    assert done.run("--only", "b", "f").returncode == 2
    assert ran(done) == "f"


def test_a_failure_weighs_more_than_a_step_left_out(done: Console) -> None:
    (done.folder / "checkpoint.yml").write_text(CHAIN + "- {id: f, needs: [], run: exit 1}\n")
    (done.folder / "in.txt").write_text("2")
    assert done.run("--only", "b", "f").returncode == 1


def test_an_always_step_that_is_needed_has_to_be_named(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nsteps:\n- {id: login, run: echo l >>ran, always: true}\n- {id: b, run: echo b >>ran}\n"
    )
    assert console.run().returncode == 0
    assert (
        "it needs 'login', which would have to run (always); add login to --only" in console.run("--only", "b").stderr
    )
    forget_ran(console)
    assert console.run("--only", "b", "login").returncode == 0
    assert ran(console) == "lb"


def test_only_blames_no_step_for_the_edit_of_a_later_one_outside(console: Console) -> None:
    """The records of all steps count for who owns a path, those of steps that are not looked at too."""
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nsteps:\n"
        "- {id: a, run: echo a >>ran; echo 1 >f, outputs: [f]}\n"
        "- {id: b, run: echo b >>ran, needs: [a]}\n"
        "- {id: edits, run: echo 2 >>f, needs: [a], outputs: [f]}\n"
    )
    assert console.run().returncode == 0
    forget_ran(console)
    assert planned(console, "--only", "b")["a"] == ("skip", "done", "")
    assert console.run("--only", "b").returncode == 0
    assert ran(console) == "b"
    (console.folder / "f").write_text("mine")
    plan = planned(console, "--only", "b")
    assert plan["a"][:2] == ("stop", "output-changed")
    assert plan["a"][2].startswith("f: sha256 ")


def test_only_with_steps_of_the_command_line(console: Console) -> None:
    words = ("--job", "k", "--step", "x:echo x >>ran", "--step", "y:echo y >>ran")
    # They are independent: one that never ran is no need of the other.
    assert console.run(*words, "--only", "y").returncode == 0
    assert ran(console) == "y"
    assert console.run(*words, "--chain", "--only", "y").returncode == 2


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_only_with_several_at_once(console: Console, jobs: str) -> None:
    text = "".join(f"- {{id: s{n}, needs: [], run: echo s{n} >>ran}}\n" for n in range(4))
    (console.folder / "checkpoint.yml").write_text("job: j\nsteps:\n" + text)
    assert console.run("-j", jobs, "--only", "s1", "s3").returncode == 0
    assert sorted((console.folder / "ran").read_text().split()) == ["s1", "s3"]
    assert console.statuses("j") == {"s1": "done", "s3": "done"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "bb"), "--only 'bb': no step has this id"),
        (("--only", "b", "C"), "--only 'C': no step has this id; did you mean 'c'?"),
        (("--only", "b", "plan"), "--only 'plan': no step has this id; a verb comes first: checkpoint-run plan and"),
        (("--only",), "--only needs the id of a step: --only ID"),
        (("--only", "b", "--from", "c"), "--only and --from exclude each other; name all steps"),
        (("--only", "b", "--force"), "--only runs its steps whatever is recorded of them; leave --force out"),
        (("--only", "b", "--force", "c"), "--force 'c': --only leaves this step out; name it there instead"),
        (("--force", "x"), "--force 'x': no step has this id"),
        (("--from", "B"), "--from 'B': no step has this id; did you mean 'b'?"),
        (("status", "--only", "b"), "--only is for run and plan"),
        (("reset", "--only", "b"), "--only is for run and plan; write reset ID"),
        (("reset", "--force", "b"), "--force is for run and plan; write reset ID"),
        (("accept", "--from", "b"), "--from is for run and plan; write accept ID"),
    ],
)
def test_a_selection_that_cannot_be_is_one_line_and_changes_nothing(
    done: Console, words: tuple[str, ...], said: str
) -> None:
    before = tree(done.folder)
    refused = done.run(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert plain(refused.stderr).startswith(f"checkpoint-run: error: {said}")
    assert refused.stderr.count("\n") == 1
    assert tree(done.folder) == before
    if words[0].startswith("-"):
        assert done.run("plan", *words).stderr == refused.stderr


# ---------------------------------------------------------------------------------------------- --force


def test_force_runs_the_named_steps_and_decides_on_the_others_as_usual(done: Console) -> None:
    words = ("--force", "b", "d")
    plan = planned(done, *words)
    assert [(step, *plan[step][:2]) for step in "abcde"] == [
        ("a", "skip", "done"),
        ("b", "run", "forced"),
        ("c", "skip", "done"),
        ("d", "run", "forced"),
        ("e", "skip", "done"),
    ]
    found = events(done, *words, code=0)
    assert told(found) == plan
    assert ran(done) == "bd"


def test_force_of_a_step_that_leaves_something_else_runs_those_that_need_it(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text(
        "job: j\nsteps:\n- {id: a, run: cat in.txt >out; echo a >>ran, outputs: [out]}\n- {id: b, run: echo b >>ran}\n"
    )
    assert console.run().returncode == 0
    forget_ran(console)
    assert console.run("--force", "a").returncode == 0
    assert ran(console) == "a"
    (console.folder / "in.txt").write_text("2")
    forget_ran(console)
    assert planned(console, "--force", "a")["b"] == (
        "run",
        "needs-changed",
        "a runs first; skipped after all if it leaves the same",
    )
    assert console.run("--force", "a").returncode == 0
    assert ran(console) == "ab"


def test_force_without_an_id_starts_from_fresh_state(done: Console) -> None:
    assert {step: one[:2] for step, one in planned(done, "--force").items()} == dict.fromkeys(
        "abcde", ("run", "forced")
    )
    (done.folder / "checkpoint.yml").write_text(CHAIN.replace("id: e", "id: z"))
    assert done.run("--force").returncode == 0
    assert ran(done) == "abcde"
    assert set(done.state("j")) == set("abcdz")  # nothing is left of the step that is no more


def test_force_of_one_step_keeps_the_records_of_all(done: Console) -> None:
    (done.folder / "checkpoint.yml").write_text(CHAIN.replace("id: e", "id: z"))
    assert done.run("--force", "b").returncode == 0
    assert set(done.state("j")) == set("abcdez")
