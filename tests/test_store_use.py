"""Which keys a command line's job has in a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.arguments import parse_arguments
from checkpoint_action.errors import UsageError
from checkpoint_action.model import Job, Step
from checkpoint_action.runner.keys import KeyScheme, shared_slug
from checkpoint_action.store_use import keys_of, store_use_of, url_of

if TYPE_CHECKING:
    from pathlib import Path

GITLAB = {
    "GITLAB_CI": "true",
    "CI_PIPELINE_ID": "41",
    "CI_JOB_ID": "900",
    "CI_JOB_NAME": "compile",
    "CI_COMMIT_SHA": "b" * 40,
}
MACHINE = {"RUNNER_OS": "Linux", "RUNNER_ARCH": "X64"}
SHARED = shared_slug("j", "Linux", "X64")


def keys(tmp_path: Path, *words: str, env: dict[str, str] | None = None, name: str = "j") -> KeyScheme:
    job = Job(name, tmp_path, (Step("a", "x", "sh", tmp_path),))
    return keys_of(parse_arguments(["run", *words]), job, {**MACHINE, **(env or {})})


def test_at_home_a_checkpoint_serves_whoever_knows_store_and_name(tmp_path: Path) -> None:
    assert keys(tmp_path) == KeyScheme("content", SHARED, "local", "1", shared=True)
    assert keys(tmp_path, "--run-id", "Night_1.x") == KeyScheme("runnight_1.x", SHARED, "night_1.x", "1", shared=True)
    assert keys(tmp_path, name="k").job != SHARED


def test_in_ci_it_serves_the_tries_of_one_job_of_one_run(tmp_path: Path) -> None:
    first = keys(tmp_path, env=GITLAB)
    again = keys(tmp_path, env={**GITLAB, "CI_JOB_ID": "950"})
    assert (first.scope, first.run, first.attempt, again.attempt) == ("run41", "41", "900", "950")
    assert first.prefix == again.prefix
    assert keys(tmp_path, env={**GITLAB, "CI_JOB_NAME": "other"}).job != first.job
    assert keys(tmp_path, env={**GITLAB, "CI_PIPELINE_ID": "42"}).prefix != first.prefix


def test_ci_and_people_meet_where_that_is_asked_for(tmp_path: Path) -> None:
    assert keys(tmp_path, "--scope", "content", env=GITLAB).prefix == keys(tmp_path).prefix
    commit = keys(tmp_path, "--scope", "commit", env=GITLAB)
    assert (commit.scope, commit.job, commit.run) == ("commit" + "b" * 40, SHARED, "41")
    assert keys(tmp_path, "--run-id", "x", env=GITLAB).prefix == keys(tmp_path, "--run-id", "x").prefix


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scope", "run"), "--scope run: no CI system tells which run this is; name it with --run-id NAME"),
        (("--scope", "commit"), "git tells no commit"),
        (("--scope", "content", "--run-id", "x"), "--run-id is for --scope run, not content"),
        (("--run-id", "a-b"), "--run-id 'a-b' is not valid"),
        (("--run-id", "a" * 61), "at most 60"),
    ],
)
def test_what_a_scope_is_bound_to_must_be_known(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        keys(tmp_path, *words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "env", "url"),
    [
        ((), {}, ""),
        (("--store", "file:///a"), {}, "file:///a"),
        ((), {"CHECKPOINT_STORE": "file:///b"}, "file:///b"),
        (("--store", "file:///a"), {"CHECKPOINT_STORE": "file:///b"}, "file:///a"),
        (("--store", "none"), {"CHECKPOINT_STORE": "file:///b"}, ""),
    ],
)
def test_the_option_goes_before_the_variable(words: tuple[str, ...], env: dict[str, str], url: str) -> None:
    assert url_of(parse_arguments(["run", *words]), env) == url


@pytest.mark.parametrize(
    "words",
    [
        ("--scope", "run"),
        ("--run-id", "x"),
        ("--exclude", "*.o"),
        ("--max-size", "1MB"),
        ("--read-only",),
        ("--fail-on-store-error",),
    ],
)
def test_what_is_about_a_store_needs_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=f"{words[0]} is for a store; give one with --store URL"):
        store_use_of(parse_arguments(["run", *words]), Job("j", tmp_path, ()), os.environ)


def test_an_empty_signing_key_is_a_mistake(tmp_path: Path) -> None:
    options = parse_arguments(["run", "--store", f"file://{tmp_path}/s"])
    with pytest.raises(UsageError, match="CHECKPOINT_SIGNING_KEY is set but empty"):
        store_use_of(options, Job("j", tmp_path, ()), {"CHECKPOINT_SIGNING_KEY": ""})
    use = store_use_of(options, Job("j", tmp_path, ()), {"CHECKPOINT_SIGNING_KEY": "secret"})
    assert use is not None
    assert use.signing_key == b"secret"
    assert "secret" not in repr(use)
