"""Which store the action uses: every offer of a runner, and every wish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.action_inputs import read_inputs
from checkpoint_action.errors import UsageError
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.store_choice import choose_store
from tests.actions_service.tokens import make_token

if TYPE_CHECKING:
    from pathlib import Path

BOTH = {"ACTIONS_RESULTS_URL": "http://127.0.0.1:9/", "ACTIONS_CACHE_SERVICE_V2": "True"}
ACT = {"ACTIONS_RESULTS_URL": "http://127.0.0.1:9/", "ACT": "true"}
V1 = {"ACTIONS_CACHE_URL": "http://127.0.0.1:9/cache/"}
ENTERPRISE = {"GITHUB_SERVER_URL": "https://git.example.com"}
ALL, READ, WRITE = [("refs/heads/main", 3)], [("refs/heads/main", 1)], [("", 2)]
TWO = "FallbackStore to Actions cache"
READ_ONLY = "FallbackStore to Actions artifacts"
CACHE, ARTIFACTS = "GithubCacheStore", "GithubArtifactStore"


class Choice:
    """What is chosen, and what is said.

    :ivar masked: what must not appear in the log.
    """

    def __init__(self, folder: Path, given: dict[str, str], offered: dict[str, str]) -> None:
        self.warned: list[str] = []
        self.told: list[str] = []
        self.masked: list[str] = []
        env = {"GITHUB_WORKSPACE": str(folder), "GITHUB_RUN_ID": "7", "GITHUB_REPOSITORY": "octo/demo"}
        env |= {f"CPR_INPUT_{name}": value for name, value in given.items()}
        env |= {name: value for name, value in offered.items() if not name.startswith("ACTIONS_")}
        store = choose_store(
            read_inputs(env),
            env,
            {name: value for name, value in offered.items() if name.startswith("ACTIONS_")},
            order=KeyScheme("run7", "job", "7", "1").origin,
            warn=self.warned.append,
            tell=self.told.append,
            mask=self.masked.append,
        )
        kind = type(store).__name__
        self.store = "" if store is None else f"{kind} to {store.name}" if kind == "FallbackStore" else kind


@pytest.mark.parametrize(
    ("offered", "scopes", "store", "said"),
    [
        (BOTH, ALL, TWO, ""),
        (BOTH, [], TWO, ""),
        (BOTH, WRITE, TWO, ""),
        (BOTH, READ, READ_ONLY, "read-only"),
        (BOTH, [("refs/heads/main", 0)], ARTIFACTS, "may not be read"),
        (BOTH | {"ACTIONS_CACHE_MODE": "write"}, ALL, TWO, ""),
        (BOTH | {"ACTIONS_CACHE_MODE": "read"}, ALL, READ_ONLY, "read-only"),
        (BOTH | {"ACTIONS_CACHE_MODE": "none"}, ALL, ARTIFACTS, "may not be read"),
        (BOTH | {"ACTIONS_CACHE_MODE": "write-only"}, ALL, ARTIFACTS, "may not be read"),
        (ACT, WRITE, ARTIFACTS, "no cache service"),
        (ACT | V1, WRITE, TWO, ""),
        (V1 | ENTERPRISE, ALL, CACHE, ""),
        (BOTH | V1 | ENTERPRISE, ALL, CACHE, ""),
        (V1 | {"ACT": "true"}, None, CACHE, ""),
        (V1 | ENTERPRISE | {"ACTIONS_CACHE_MODE": "none"}, ALL, CACHE, ""),
    ],
)
def test_auto_takes_the_best_of_what_is_offered(
    tmp_path: Path, offered: dict[str, str], scopes: list[tuple[str, int]] | None, store: str, said: str
) -> None:
    token = "" if scopes is None else make_token(scopes)
    choice = Choice(tmp_path, {}, offered | {"ACTIONS_RUNTIME_TOKEN": token})
    assert (choice.store, choice.warned) == (store, [])
    assert [said in text for text in choice.told] == ([True] if said else [])
    assert choice.masked == ([token] if token else [])


@pytest.mark.parametrize(
    ("offered", "said"),
    [
        ({}, "no artifact service was handed over either"),
        (ENTERPRISE, "this server has no artifact service of version 4"),
        ({"ACTIONS_RESULTS_URL": "http://127.0.0.1:9/", "ACT": "true"}, "no artifact service was handed over either"),
    ],
)
def test_nothing_on_offer_is_one_warning_or_an_error_where_that_is_asked_for(
    tmp_path: Path, offered: dict[str, str], said: str
) -> None:
    choice = Choice(tmp_path, {}, offered)
    assert (choice.store, choice.told) == ("", [])
    [warning] = choice.warned
    assert "no cache service was handed to this action" in warning
    assert said in warning
    for given in ({"FAIL_ON_STORE_ERROR": "true"}, {"STORE": "cache"}, {"STORE": "artifact"}):
        with pytest.raises(UsageError, match="use the input 'store: none' if that is meant"):
            Choice(tmp_path, given, offered)
    assert Choice(tmp_path, {"STORE": "none", "FAIL_ON_STORE_ERROR": "true"}, offered).warned == []


@pytest.mark.parametrize(("store", "wanted"), [("cache", CACHE), ("artifact", ARTIFACTS), ("none", "")])
def test_one_store_that_is_asked_for_is_that_store(tmp_path: Path, store: str, wanted: str) -> None:
    offered = BOTH | {"ACTIONS_RUNTIME_TOKEN": make_token(READ), "ACTIONS_CACHE_MODE": "read"}
    choice = Choice(tmp_path, {"STORE": store}, offered)
    assert (choice.store, choice.warned, choice.told) == (wanted, [], [])


@pytest.mark.parametrize("scope", ["commit", "content"])
def test_a_scope_that_artifacts_do_not_serve_is_a_warning_where_they_are_used_from_the_start(
    tmp_path: Path, scope: str
) -> None:
    offered = BOTH | {"ACTIONS_RUNTIME_TOKEN": make_token()}
    assert Choice(tmp_path, {"SCOPE": scope}, offered).warned == []
    for mode in ("read", "none"):
        choice = Choice(tmp_path, {"SCOPE": scope}, offered | {"ACTIONS_CACHE_MODE": mode})
        [warning] = choice.warned
        assert f"not 'scope: {scope}'" in warning
        assert choice.told == []


@pytest.mark.parametrize(
    ("given", "most", "warnings"), [("", "3", 0), ("", "0", 0), ("3", "3", 0), ("4", "3", 1), ("400", "", 0)]
)
def test_only_days_that_were_asked_for_and_are_not_to_be_had_are_worth_a_warning(
    tmp_path: Path, given: str, most: str, warnings: int
) -> None:
    offered = BOTH | {"ACTIONS_RUNTIME_TOKEN": make_token(), "GITHUB_RETENTION_DAYS": most}
    assert len(Choice(tmp_path, {"RETENTION_DAYS": given}, offered).warned) == warnings


@pytest.mark.parametrize("event", ["pull_request_target", "issue_comment"])
@pytest.mark.parametrize("wanted", ["auto", "cache"])
def test_what_a_strangers_code_may_have_made_serves_no_other_run(tmp_path: Path, event: str, wanted: str) -> None:
    token = {"ACTIONS_RUNTIME_TOKEN": make_token(ALL), "GITHUB_EVENT_NAME": event}
    choice = Choice(tmp_path, {"SCOPE": "content", "STORE": wanted}, BOTH | token)
    assert choice.store == READ_ONLY
    assert len(choice.warned) == 1
    assert choice.warned[0].startswith(f"a run for {event} may work with a stranger's code")
    of_the_run = Choice(tmp_path, {"SCOPE": "run", "STORE": "auto"}, BOTH | token)
    assert (of_the_run.store, of_the_run.warned) == (TWO, [])
    without_artifacts = Choice(tmp_path, {"SCOPE": "content", "STORE": wanted}, V1 | ENTERPRISE | token)
    assert without_artifacts.store == ""
    assert len(without_artifacts.warned) == 1


@pytest.mark.parametrize("event", ["push", "pull_request", "workflow_dispatch"])
def test_other_events_write_to_the_cache(tmp_path: Path, event: str) -> None:
    token = {"ACTIONS_RUNTIME_TOKEN": make_token(ALL), "GITHUB_EVENT_NAME": event}
    assert Choice(tmp_path, {"SCOPE": "content"}, BOTH | token).store == TWO
