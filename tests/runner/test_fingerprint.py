"""What makes a step the same step, and how a change is named."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_action.model import SYSTEM_SHELL, Reason, Step
from checkpoint_action.runner.fingerprint import explain_change, fingerprint, fingerprint_parts
from checkpoint_action.runner.hashing import ContentDigests
from tests.runner.jobs import as_nobody, step

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them")


def parts_of(root: Path, outside: dict[str, str] | None = None, **of: Any) -> dict[str, str]:
    return fingerprint_parts(step("a", of.pop("cwd", root), **of), root, outside or {}, {}, ContentDigests())


texts = st.text(st.sampled_from('ab :=/\n\0"\\\udcff'), max_size=4)
parts = st.dictionaries(texts, texts, max_size=4)


@settings(max_examples=80, deadline=None)
@given(parts, parts)
def test_two_different_sets_of_parts_never_have_one_fingerprint(one: dict[str, str], other: dict[str, str]) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


words = st.text(st.sampled_from("ab =:"), min_size=1, max_size=3)
steps = st.builds(
    Step,
    id=st.just("s"),
    command=st.sampled_from(["", "a", "a b"]),
    shell=st.sampled_from([SYSTEM_SHELL, "bash", "sh"]),
    cwd=st.sampled_from([Path("/w"), Path("/w/a"), Path("/x")]),
    env=st.dictionaries(words, st.sampled_from(["", "a", "unset"]), max_size=2),
    pass_env=st.lists(words, max_size=2, unique=True).map(lambda found: tuple(sorted(found))),
)
worlds = st.tuples(
    steps,
    st.dictionaries(words, st.sampled_from(["", "1", "unset"]), max_size=3),
    st.dictionaries(words, st.sampled_from(["", "done", "not done"]), max_size=2),
)


def meaning(world: tuple[Step, dict[str, str], dict[str, str]]) -> Any:
    """All that counts of a step."""
    one, env, needs = world
    passed = {name: env.get(name) for name in one.pass_env}
    return one.command, one.shell, one.cwd, dict(one.env), passed, needs


@settings(max_examples=80, deadline=None)
@given(worlds, worlds)
def test_steps_that_differ_in_what_counts_never_have_one_fingerprint(
    one: tuple[Step, dict[str, str], dict[str, str]], other: tuple[Step, dict[str, str], dict[str, str]]
) -> None:
    marks = [
        fingerprint(fingerprint_parts(of, Path("/w"), env, needs, ContentDigests())) for of, env, needs in (one, other)
    ]
    assert (marks[0] == marks[1]) == (meaning(one) == meaning(other))


def test_the_fingerprint_is_stable_across_versions() -> None:
    text = b'{"format":1,"parts":{"command":"x","env a\\udcff":"1"}}'
    assert fingerprint({"env a\udcff": "1", "command": "x"}) == hashlib.sha256(text).hexdigest()


def test_the_order_of_parts_does_not_count() -> None:
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})


def test_another_place_of_the_workspace_is_the_same_step(tmp_path: Path) -> None:
    marks = set()
    for name in ("one", "two"):
        root = tmp_path / name
        (root / "sub").mkdir(parents=True)
        (root / "sub" / "in").write_text("in")
        marks.add(fingerprint(parts_of(root, cwd=root / "sub", inputs=("in",))))
    assert len(marks) == 1


def test_values_of_variables_are_nowhere_in_the_parts(tmp_path: Path) -> None:
    found = parts_of(tmp_path, {"P": "hunter2"}, env={"E": "hunter2"}, pass_env=("P",))
    assert "hunter2" not in repr(found)


def test_unset_empty_and_set_are_three_things(tmp_path: Path) -> None:
    worlds: list[dict[str, str]] = [{}, {"V": ""}, {"V": "1"}, {"V": "unset"}]
    assert len({fingerprint(parts_of(tmp_path, env, pass_env=("V",))) for env in worlds}) == 4


@posix
def test_inputs_count_by_path_mode_and_content_and_not_by_time(tmp_path: Path) -> None:
    def mark() -> str:
        return fingerprint(parts_of(tmp_path, inputs=("src",)))

    (tmp_path / "src").mkdir()
    (tmp_path / "src/f").write_text("a")
    marks = [mark()]
    os.utime(tmp_path / "src/f", ns=(1, 1))
    (tmp_path / "other").write_text("no input")
    assert mark() == marks[0]
    (tmp_path / "src/f").chmod(0o755)
    marks.append(mark())
    (tmp_path / "src/f").write_text("b")
    marks.append(mark())
    (tmp_path / "src/f").rename(tmp_path / "src/g")
    marks.append(mark())
    (tmp_path / "src/l").symlink_to("g")
    marks.append(mark())
    (tmp_path / "src/g").unlink()
    (tmp_path / "src/l").unlink()
    marks.append(mark())
    assert len(set(marks)) == len(marks)


@posix
@pytest.mark.parametrize("pattern", ["l", "l*", "**", "./l"])
def test_what_is_behind_a_declared_link_counts(tmp_path: Path, pattern: str) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "far").mkdir()
    (root / "l").symlink_to("../far")
    marks = set()
    for text in ("a", "b"):
        (tmp_path / "far/f").write_text(text)
        marks.add(fingerprint(parts_of(root, inputs=(pattern,))))
    assert len(marks) == 2


@posix
def test_an_input_that_is_a_link_to_nothing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("nowhere")
    assert parts_of(tmp_path, inputs=("l",))["unmatched l"] == "missing"
    (tmp_path / "nowhere").symlink_to("l")
    assert parts_of(tmp_path, inputs=("l", "**"))["unmatched l"] == "missing"


def test_our_own_files_are_no_inputs(tmp_path: Path) -> None:
    before = parts_of(tmp_path, inputs=("**",))
    (tmp_path / ".checkpoint-run-demo.json").write_text("")
    assert list(parts_of(tmp_path, inputs=("**",))) == list(before)


@posix
def test_an_input_that_cannot_be_looked_at_stops_nothing(public: Path) -> None:
    (public / "d").mkdir()
    (public / "d/f").write_text("")
    with as_nobody(public):
        (public / "d").chmod(0o600)
        assert parts_of(public, inputs=("d",))["input d/f"] == "cannot be read"


def explain(root: Path, old: dict[str, Any], new: dict[str, Any]) -> tuple[Reason, str]:
    before, after = parts_of(root, **old), parts_of(root, **new)
    return explain_change(before, after, old.get("command", "true"), new.get("command", "true"))


@pytest.mark.parametrize(
    ("old", "new", "reason", "detail"),
    [
        ({"command": "make"}, {"command": "make  -j\n"}, Reason.COMMAND_CHANGED, "make → make -j"),
        ({"command": "x" * 99}, {"command": "y"}, Reason.COMMAND_CHANGED, "x" * 57 + "... → y"),
        (
            {"command": "x" * 99 + " one"},
            {"command": "x" * 99 + " two"},
            Reason.COMMAND_CHANGED,
            f"...{'x' * 14} one → ...{'x' * 14} two",
        ),
        ({"command": "a\n b"}, {"command": "a  b"}, Reason.COMMAND_CHANGED, "a b → the same with other white space"),
        ({"shell": "bash"}, {"shell": "sh"}, Reason.COMMAND_CHANGED, "shell: bash → sh"),
        ({}, {"env": {"V": ""}}, Reason.ENV_CHANGED, "V: not declared → empty"),
        ({"pass_env": ("V",)}, {"pass_env": ("V",), "env_now": {"V": ""}}, Reason.ENV_CHANGED, "V: unset → empty"),
        ({"needs": {"a": "0" * 64}}, {"needs": {}}, Reason.NEEDS_CHANGED, "a: result 000000000000 → not needed"),
        ({"inputs": ("in",)}, {"inputs": ("in", "x")}, Reason.INPUTS_CHANGED, "x: matches no file now"),
    ],
)
def test_a_change_is_named(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any], reason: Reason, detail: str
) -> None:
    (tmp_path / "in").write_text("")

    def parts(given: dict[str, Any]) -> dict[str, str]:
        given = dict(given)
        needs, env = given.pop("needs", {}), given.pop("env_now", {})
        return fingerprint_parts(step("a", tmp_path, **given), tmp_path, env, needs, ContentDigests())

    found = explain_change(parts(old), parts(new), old.get("command", "true"), new.get("command", "true"))
    assert found == (reason, detail)


def test_a_changed_working_directory_is_named(tmp_path: Path) -> None:
    found = explain(tmp_path, {"cwd": tmp_path}, {"cwd": tmp_path / "sub"})
    assert found == (Reason.COMMAND_CHANGED, "working-directory: . → sub")


def test_a_value_is_never_shown(tmp_path: Path) -> None:
    reason, detail = explain(tmp_path, {"env": {"V": "hunter2"}}, {"env": {"V": "hunter3"}})
    assert reason is Reason.ENV_CHANGED
    assert "hunter" not in detail
    assert detail.startswith("V: value ")


def test_the_command_is_named_before_what_follows_from_it(tmp_path: Path) -> None:
    reason, _ = explain(tmp_path, {"command": "a", "env": {"V": "1"}}, {"command": "b", "env": {"V": "2"}})
    assert reason is Reason.COMMAND_CHANGED


def test_records_of_another_layout_are_said_to_be_so() -> None:
    assert explain_change({"old": "1"}, {"old": "2"}, "a", "a") == (
        Reason.COMMAND_CHANGED,
        "recorded by another format",
    )
