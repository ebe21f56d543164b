"""The look at what GitHub Actions offers, against the service on this machine."""

from __future__ import annotations

import socket

from checkpoint_action.health.actions import actions
from checkpoint_action.health.finding import Finding, Level
from tests.actions_service.server import ActionsService

IN_A_JOB = {"GITHUB_ACTIONS": "true"}


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.what: finding for finding in findings}


def test_outside_of_a_job_there_is_nothing_to_look_at() -> None:
    assert actions({"GITHUB_TOKEN": "ghp_secret"}) == []


def test_tokens_are_named_by_kind_and_never_shown() -> None:
    env = {**IN_A_JOB, "GITHUB_TOKEN": "ghs_hunter2", "GH_TOKEN": "github_pat_hunter2", "INPUT_TOKEN": "hunter2"}
    found = by_name(actions(env))["token"]
    assert found.found == (
        "GITHUB_TOKEN of the job or an app, GH_TOKEN personal (fine-grained), INPUT_TOKEN of an unknown kind"
    )
    assert "hunter2" not in str(actions(env))
    assert by_name(actions(IN_A_JOB))["token"].level is Level.OK


def test_the_cache_service_is_asked() -> None:
    with ActionsService.running() as service:
        for kind in ("v2", "v1"):
            found = by_name(actions({**IN_A_JOB, **service.env(kind)}))["cache service"]
            assert (found.level, found.found.startswith(f"answers ({kind}) in ")) == (Level.OK, True), found
        assert service.env()["ACTIONS_RUNTIME_TOKEN"] not in str(found)


def test_without_a_token_the_service_is_only_reached() -> None:
    with ActionsService.running() as service:
        env = {name: value for name, value in service.env().items() if name != "ACTIONS_RUNTIME_TOKEN"}
        found = by_name(actions({**IN_A_JOB, **env}))["cache service"]
        assert (found.level, "not asked" in found.found) == (Level.OK, True), found


def test_no_service_and_one_that_is_down() -> None:
    untold = by_name(actions(IN_A_JOB))["cache service"]
    assert (untold.level, "not told where it is" in untold.found) == (Level.OK, True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    env = {**IN_A_JOB, "ACTIONS_RESULTS_URL": f"http://127.0.0.1:{port}/", "ACTIONS_CACHE_SERVICE_V2": "1"}
    found = by_name(actions({**env, "ACTIONS_RUNTIME_TOKEN": "x.y.hunter2"}))["cache service"]
    assert (found.level, "proxy" in found.remedy) == (Level.WARNING, True), found
    assert "hunter2" not in str(found)
