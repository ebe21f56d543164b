"""Keys tell jobs apart and are never used twice."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.runner.keys import KeyScheme, Origin, job_slug, scheme_of, shared_slug

KEYS = KeyScheme("run42", job_slug("Build", {"job": "build"}), "42", "1")


def test_a_key_says_scope_job_step_run_attempt_and_sequence() -> None:
    assert re.fullmatch(r"cpr1-run42-build-[0-9a-f]{16}-compile\.x-42-1-000007-[0-9a-f]{8}", KEYS.new("Compile.X", 7))


def test_every_key_begins_with_the_prefix_of_its_job() -> None:
    assert KEYS.new("a", 1).startswith(KEYS.prefix)
    assert KEYS.prefix.endswith("-")


def test_a_key_is_never_used_twice() -> None:
    assert len({KEYS.new("a", 1) for _ in range(1000)}) == 1000


@given(st.text(max_size=80), st.text(min_size=1, max_size=100))
def test_keys_are_short_plain_and_in_lower_case(name: str, identity: str) -> None:
    slug = job_slug(name, identity)
    assert re.fullmatch(r"([a-z0-9._-]{1,40}-)?[0-9a-f]{16}", slug)
    key = KeyScheme("commit" + "a" * 40, slug, "9" * 12, "99").new("S" * 100, 999_999)
    assert key == key.lower()
    assert len(key) < 400
    assert "," not in key


identities = st.fixed_dictionaries(
    {"job": st.sampled_from(["a", "b"]), "matrix": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))}
)


@given(identities, identities)
def test_two_jobs_never_share_a_prefix(one: dict[str, object], other: dict[str, object]) -> None:
    keys = [KeyScheme("content", job_slug("job", identity), "1", "1") for identity in (one, other)]
    assert keys[0].new("s", 1).startswith(keys[1].prefix) == (one == other)


def test_names_that_look_alike_in_a_key_are_told_apart_by_identity() -> None:
    assert job_slug("A b", ["A b"]) != job_slug("a-b", ["a-b"])


def test_the_order_of_an_identity_does_not_count() -> None:
    assert job_slug("a", {"x": 1, "y": 2}) == job_slug("a", {"y": 2, "x": 1})


@pytest.mark.parametrize("scope", ["run1", "commitabc", "content"])
def test_scopes_never_meet(scope: str) -> None:
    others = {"run1", "run12", "commitabc", "content"} - {scope}
    mine = KeyScheme(scope, KEYS.job, "1", "1").new("s", 1)
    assert not [other for other in others if mine.startswith(KeyScheme(other, KEYS.job, "1", "1").prefix)]


@pytest.mark.parametrize("step", ["compile", "Compile.X", "a-1-2-000003-0123abcd", "b_-1"])
def test_a_key_tells_where_it_comes_from(step: str) -> None:
    key = KEYS.new(step, 7)
    assert KEYS.origin(key) == KEYS.origin(key.upper()) == Origin(42, 1, 7, step.lower())
    assert key.startswith((KEYS.of_step(step), KEYS.of_step_in_run(step)))


def test_origins_are_ordered_by_age() -> None:
    ages = [("9", "1", 3), ("10", "1", 9), ("10", "2", 1), ("10", "10", 1), ("10", "10", 1_000_000)]
    made = [
        KeyScheme("content", "j", run, attempt).new(step, sequence)
        for (run, attempt, sequence), step in zip(ages, "zyxwv", strict=True)
    ]
    origins = [KeyScheme("content", "j", "1", "1").origin(key) for key in made]
    assert origins == sorted(origins, key=lambda origin: origin or Origin(0, 0, 0, ""))


@pytest.mark.parametrize("rest", ["", "x", "a-1-1-1-0123abcd", "a-1-x-000001-0123abcd", "a-1-1-000001-0123abcd\n"])
def test_a_key_of_another_form_has_no_origin(rest: str) -> None:
    assert KEYS.origin(KEYS.prefix + rest) is None
    assert KEYS.origin("other-" + KEYS.new("a", 1)) is None


@pytest.mark.parametrize("step", ["a", "a-b", "A", "a-42-1-000003-0123abcd"])
def test_where_keys_are_shared_no_step_hides_another(step: str) -> None:
    shared = replace(KEYS, shared=True)
    key = shared.new(step, 7)
    assert shared.origin(key) == Origin(42, 1, 7, step.lower())
    assert key.startswith(shared.of_step(step))
    assert key.startswith(shared.of_step_in_run(step))
    others = {"a", "a-b", "a-42", "a-42-1-000003-0123abcd"} - {step.lower()}
    assert not [other for other in others if key.startswith(shared.of_step(other))]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("scope", ["run77", "commit" + "a" * 40, "content", "run1_2.x"])
@pytest.mark.parametrize(
    ("name", "step"),
    [
        *((name, step) for name in ("Build it!", "", "0123456789abcdef-x", "a") for step in ("a", "x.y_z-1", "b-c")),
        ("build", "0123456789abcdef"),
    ],
)
def test_a_key_tells_of_which_scheme_it_is(name: str, step: str, scope: str, shared: bool) -> None:
    keys = KeyScheme(scope, job_slug(name, 1), "77", "3", shared=shared)
    assert scheme_of(keys.new(step, 12)) == keys
    assert scheme_of(keys.new(step, 12).upper()) == keys


@pytest.mark.parametrize("key", ["", "cpr1-run7-a-b", "checkpoint-run-logs-build-0123456789abcdef-1", "cpr2-run7-"])
def test_what_is_no_key_of_ours_is_of_no_scheme(key: str) -> None:
    assert scheme_of(key) is None


def test_a_shared_name_is_of_one_job_on_one_kind_of_machine() -> None:
    slugs = [shared_slug(*words) for words in (("b", "Linux", "X64"), ("b", "Linux", "ARM64"), ("b", "macOS", "X64"))]
    assert len({*slugs, shared_slug("c", "Linux", "X64"), job_slug("b", None)}) == 5
    assert shared_slug("b", "Linux", "X64") == slugs[0]
