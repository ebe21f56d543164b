from __future__ import annotations

import base64
import json

import pytest

from checkpoint_action.toolkit.errors import InputError
from checkpoint_action.toolkit.runtime import CacheScope, Runtime
from tests.actions_service import make_token

GITHUB = "https://github.com"
GHES = "https://github.example.com"
RESULTS = "https://results.example/"
CACHE = "https://cache.example/abc/"


@pytest.mark.parametrize(
    ("server", "flag", "results", "cache", "service"),
    [
        (GITHUB, "True", RESULTS, "", "v2"),
        (GITHUB, "True", RESULTS, CACHE, "v2"),
        (GITHUB, "false", RESULTS, CACHE, "v2"),
        (GITHUB, "", RESULTS, CACHE, "v1"),
        (GITHUB, "", RESULTS, "", "v2"),
        (GITHUB, "", "", CACHE, "v1"),
        (GITHUB, "True", "", CACHE, "v1"),
        (GITHUB, "True", "", "", None),
        ("", "True", RESULTS, CACHE, "v2"),
        (GHES, "True", RESULTS, CACHE, "v1"),
        (GHES, "", RESULTS, "", "v2"),
        ("https://tenant.ghe.com", "True", RESULTS, CACHE, "v2"),
        ("http://github.localhost", "True", RESULTS, CACHE, "v2"),
        ("https://GitHub.com", "True", RESULTS, CACHE, "v2"),
        ("http://[bad", "True", RESULTS, CACHE, "v2"),
    ],
)
def test_the_cache_protocol_follows_server_flag_and_addresses(
    server: str, flag: str, results: str, cache: str, service: str | None
) -> None:
    env = {
        "GITHUB_SERVER_URL": server,
        "ACTIONS_CACHE_SERVICE_V2": flag,
        "ACTIONS_RESULTS_URL": results,
        "ACTIONS_CACHE_URL": cache,
    }
    assert Runtime.resolve(env).cache_service == service


def test_an_override_wins_and_the_argument_wins_over_the_variable() -> None:
    env = {"ACTIONS_RESULTS_URL": RESULTS, "ACTIONS_CACHE_URL": CACHE, "ACTIONS_CACHE_API_FORCE_VERSION": "V2"}
    assert Runtime.resolve(env).cache_service == "v2"
    assert Runtime.resolve(env, cache_service="v1").cache_service == "v1"


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(InputError, match="v1 or v2, not 'v3'"):
        Runtime.resolve({}, cache_service="v3")


def test_a_cache_address_gets_its_closing_slash() -> None:
    assert Runtime.resolve({"ACTIONS_CACHE_URL": " http://h/run1 "}).cache_url == "http://h/run1/"


@pytest.mark.parametrize(
    ("text", "mode", "read", "write"),
    [
        ("", "", True, True),
        ("read", "read", True, False),
        (" WRITE ", "write", True, True),
        ("write-only", "write-only", False, True),
        ("none", "none", False, False),
        ("sideways", "", True, True),
    ],
)
def test_the_cache_mode_says_what_is_permitted(text: str, mode: str, read: bool, write: bool) -> None:
    runtime = Runtime.resolve({"ACTIONS_CACHE_MODE": text})
    assert (runtime.cache_mode, runtime.may_read_cache, runtime.may_write_cache) == (mode, read, write)


def test_claims_of_the_token_are_read() -> None:
    token = make_token([("refs/pull/7/merge", 3), ("refs/heads/main", 1)], run="run-9", job="job-9")
    runtime = Runtime.resolve({"ACTIONS_RUNTIME_TOKEN": token})
    assert (runtime.run_backend_id, runtime.job_backend_id) == ("run-9", "job-9")
    assert runtime.scopes == (CacheScope("refs/pull/7/merge", 3), CacheScope("refs/heads/main", 1))
    assert [scope.writable for scope in runtime.scopes] == [True, False]
    assert all(scope.readable for scope in runtime.scopes)


def _token(claims: object) -> str:
    return f"x.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.x"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "opaque",
        "a.b.c",
        "a.%%%.c",
        _token([1]),
        _token({}),
        _token({"scp": None, "ac": ""}),
        _token({"scp": "Actions.Results:only-one", "ac": "{"}),
        _token({"scp": 3, "ac": "{}"}),
        _token({"scp": "Actions.Results:a:b:c", "ac": '[1,{"Scope":1},{"Scope":"x","Permission":"3"}]'}),
    ],
)
def test_a_token_without_usable_claims_is_no_error(token: str) -> None:
    runtime = Runtime.resolve({"ACTIONS_RUNTIME_TOKEN": token})
    assert (runtime.run_backend_id, runtime.job_backend_id, runtime.scopes) == ("", "", ())


def test_secrets_do_not_show_in_the_repr() -> None:
    runtime = Runtime.resolve({"ACTIONS_RUNTIME_TOKEN": "s3cret", "ACTIONS_CACHE_URL": "http://h/s3cret/"})
    assert "s3cret" not in repr(runtime)
