"""Where the action keeps checkpoints: the cache, artifacts where it takes nothing, nothing where neither is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.actions_service.faults import Fault
from tests.actions_service.tokens import make_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.action.machine import Workflow
    from tests.action.running import Ended

STEPS = """\
- {id: build, run: 'mkdir dist; echo app > dist/app; echo ran >> "$KEEP/build"'}
- {id: test, run: 'cat dist/app; test $GITHUB_RUN_ATTEMPT -gt 1'}
- {id: last, run: 'cat dist/app > "$KEEP/last"', outputs: []}
"""
DENIED = json.dumps({"ok": False, "message": "cache write denied: token has no writable scopes"})


def attempt(workflow: Workflow, number: int, steps: str = STEPS, **inputs: str) -> Ended:
    """The next attempt, with the token that it has on github.com."""
    workflow.runtime["ACTIONS_RUNTIME_TOKEN"] = make_token(scopes(workflow), run=f"run-77.{number}")
    return workflow.run(steps, **inputs)


def scopes(workflow: Workflow) -> list[tuple[str, int]]:
    return [("refs/heads/main", 1 if workflow.runtime.get("TEST_CACHE") == "read-only" else 3)]


def without_cache(workflow: Workflow) -> None:
    workflow.runtime["ACTIONS_CACHE_MODE"] = "none"


def read_only(workflow: Workflow) -> None:
    workflow.runtime["ACTIONS_CACHE_MODE"] = "read"


def read_only_token(workflow: Workflow) -> None:
    workflow.runtime["TEST_CACHE"] = "read-only"


def write_only(workflow: Workflow) -> None:
    workflow.runtime["ACTIONS_CACHE_MODE"] = "write-only"


def refusing(workflow: Workflow) -> None:
    workflow.service.faults.next("CreateCacheEntry", Fault.status(200, DENIED), 999)


def unwilling(workflow: Workflow) -> None:
    workflow.service.faults.next("CreateCacheEntry", Fault.status(200, '{"ok":false}'), 999)


def failing(workflow: Workflow) -> None:
    for call in ("CreateCacheEntry", "GetCacheEntryDownloadURL"):
        workflow.service.faults.next(call, Fault.status(400), 999)


def checkpoints(workflow: Workflow) -> list[str]:
    """Names of the artifacts that are checkpoints; logs of steps are others."""
    names = [item.name for item in workflow.service.artifact_store.items]
    assert all(name.startswith(("cpr1-", "checkpoint-run-logs-")) for name in names)
    return [name for name in names if name.startswith("cpr1-")]


def restored(workflow: Workflow) -> Ended:
    """What the second machine does after the first has failed at the second step."""
    assert attempt(workflow, 1).outputs["ran"] == ["build", "test"]
    second = attempt(workflow, 2)
    assert second.code == 0
    assert (second.outputs["restored"], second.outputs["ran"]) == (["build"], ["test", "last"])
    assert workflow.kept("build") == ["ran"]
    assert workflow.kept("last") == ["app"]
    return second


@pytest.mark.parametrize("cache", [without_cache, read_only, read_only_token, write_only, refusing, unwilling, failing])
def test_a_second_machine_restores_from_artifacts_where_the_cache_does_not_take_or_give(
    workflow: Workflow, cache: Callable[[Workflow], None]
) -> None:
    cache(workflow)
    second = restored(workflow)
    assert "kept in the Actions artifacts: test" in second.log
    assert not [entry for entry in workflow.service.entries.all.values() if entry.complete]
    names = checkpoints(workflow)
    assert all(
        re.fullmatch(r"cpr1-run77-build-[0-9a-f]{16}-(build|test|last)-77-[12]-[0-9]{6,18}-[0-9a-f]{8}", n)
        for n in names
    )
    told_once = cache in (refusing, unwilling, failing)
    assert len(second.warnings) == told_once, second.warnings
    if told_once:
        assert "Actions artifacts" in second.warnings[0]
    elif cache is not write_only:
        assert re.search(
            "^the cache (is read-only|may not be read) here: steps are kept as artifacts", second.log, re.MULTILINE
        )


def test_what_the_cache_holds_is_still_restored_once_it_takes_nothing_more(workflow: Workflow) -> None:
    assert attempt(workflow, 1).outputs["ran"] == ["build", "test"]
    assert checkpoints(workflow) == []
    read_only(workflow)
    second = attempt(workflow, 2)
    assert (second.outputs["restored"], second.outputs["ran"]) == (["build"], ["test", "last"])
    assert workflow.service.artifact_store.items != []
    third = attempt(workflow, 3)
    assert (third.outputs["restored"], third.outputs["ran"]) == (["build"], [])
    assert third.outputs["skipped"] == ["test", "last"]
    assert not third.warnings


@pytest.mark.parametrize("cache", [refusing, without_cache])
def test_what_is_large_goes_to_artifacts_in_pieces_and_comes_back(
    workflow: Workflow, cache: Callable[[Workflow], None]
) -> None:
    cache(workflow)
    steps = """\
- id: make
  run: |
    for n in 1 2 3; do head -c 14000000 /dev/urandom > part-$n; done
    sha256sum part-* > "$KEEP/sums"
- {id: check, run: 'sha256sum --check --quiet "$KEEP/sums"; test $GITHUB_RUN_ATTEMPT -gt 1', outputs: []}
"""
    assert attempt(workflow, 1, steps).outputs["ran"] == ["make", "check"]
    assert max(item.size for item in workflow.service.artifact_store.items) > 42_000_000
    second = attempt(workflow, 2, steps)
    assert (second.code, second.outputs["restored"], second.outputs["ran"]) == (0, ["make"], ["check"])


def test_artifacts_alone_can_be_asked_for(workflow: Workflow) -> None:
    assert attempt(workflow, 1, store="artifact", retention_days="3").outputs["ran"] == ["build", "test"]
    second = attempt(workflow, 2, store="artifact")
    assert second.outputs["restored"] == ["build"]
    assert not second.warnings
    assert not {"GetCacheEntryDownloadURL", "CreateCacheEntry"} & set(workflow.service.calls)
    days = {item.name.split("-")[-3]: item.expires_at for item in workflow.service.artifact_store.items}
    assert days["1"] < days["2"], "3 days, and 7 that are meant when nothing is said"


@pytest.mark.parametrize("force", ["false", "true"])
def test_of_two_uses_in_one_attempt_the_later_one_is_the_newer(workflow: Workflow, force: str) -> None:
    steps = "- {id: a, run: echo > a}\n- {id: b, run: echo > b}\n- {id: c, run: 'echo VALUE > c'}\n"
    workflow.runtime["ACTIONS_RUNTIME_TOKEN"] = make_token(run="run-77.1")
    machine = workflow.machine()
    machine.run(steps.replace("VALUE", "old"), store="artifact")
    machine.checkout()
    machine.run(steps.replace("VALUE", "new"), store="artifact", force=force)
    second = attempt(workflow, 2, steps.replace("VALUE", "new"), store="artifact")
    assert (second.outputs["restored"], second.outputs["ran"]) == (["a", "b", "c"], [])


def test_an_artifact_of_an_earlier_attempt_that_the_service_hides_comes_with_the_token(workflow: Workflow) -> None:
    without_cache(workflow)
    attempt(workflow, 1)
    workflow.service.artifacts.old_attempts_are_hidden = True
    second = attempt(workflow, 2)
    assert second.outputs["restored"] == ["build"]
    workflow.token = ""
    third = attempt(workflow, 3)
    assert (third.code, third.outputs["restored"]) == (0, [])
    [warning] = third.warnings
    assert "not usable" in warning


def test_the_cache_alone_can_be_asked_for(workflow: Workflow) -> None:
    read_only(workflow)
    first = attempt(workflow, 1, store="cache")
    assert checkpoints(workflow) == []
    [warning] = first.warnings
    assert "permits no writes" in warning


@pytest.mark.parametrize("how", ["no addresses", "no cache, artifacts refuse", "enterprise"])
def test_where_neither_is_there_the_job_is_green_with_one_warning(workflow: Workflow, how: str) -> None:
    steps = "- {id: build, run: 'echo app > app'}\n- {id: test, run: cat app}\n"
    if how == "no cache, artifacts refuse":
        without_cache(workflow)
        workflow.service.artifacts.read_only = True
    else:
        for name in [name for name in workflow.runtime if name.startswith("ACTIONS_")]:
            del workflow.runtime[name]
    if how == "enterprise":
        workflow.runtime["GITHUB_SERVER_URL"] = "https://github.example.com"
    ended = workflow.run(steps)
    assert (ended.code, ended.outputs["ran"]) == (0, ["build", "test"])
    [warning] = ended.warnings
    assert "not kept for" in warning
    assert ("version 4" in warning) == (how == "enterprise")


@pytest.mark.parametrize("store", ["cache", "artifact"])
def test_a_store_that_is_asked_for_and_not_there_is_an_error(workflow: Workflow, store: str) -> None:
    workflow.runtime = {"GITHUB_SERVER_URL": "https://github.com"}
    ended = workflow.run(STEPS, store=store)
    assert (ended.code, ended.outputs["ran"]) == (2, [])
    [error] = ended.errors
    assert "use the input 'store: none' if that is meant" in error


@pytest.mark.parametrize("scope", ["commit", "content"])
def test_artifacts_that_cannot_serve_the_scope_are_a_warning_or_an_error(workflow: Workflow, scope: str) -> None:
    workflow.commit_sources()
    read_only(workflow)
    [warning] = attempt(workflow, 1, scope=scope).warnings
    assert f"they serve re-runs of this run only, not 'scope: {scope}'" in warning
    second = attempt(workflow, 2, scope=scope)
    assert second.outputs["restored"] == ["build"]
    [error] = attempt(workflow, 3, scope=scope, store="artifact").errors
    assert f"cannot serve 'scope: {scope}'" in error


def test_a_time_that_the_repository_does_not_allow_is_one_warning(workflow: Workflow) -> None:
    [warning] = attempt(workflow, 1, store="artifact", retention_days="400").warnings
    assert "at most 90 days here, not 400" in warning


def test_secrets_among_the_inputs_reach_no_step_and_no_line_of_the_log(workflow: Workflow) -> None:
    secrets = {"signing_key": "key-hush\nkey-quiet", "token": "token-hush"}
    steps = """\
- id: look
  run: |
    env > "$KEEP/env"
    cat /proc/$PPID/environ > "$KEEP/parents" 2>/dev/null || true
"""
    ended = workflow.run(steps, **secrets)
    assert ended.code == 0
    plain = [line for line in ended.log.splitlines() if not line.startswith("::add-mask::")]
    assert {f"::add-mask::{value}" for value in ("token-hush", "key-hush%0Akey-quiet")} <= set(ended.log.splitlines())
    for name in ("env", "parents"):
        plain += workflow.kept(name)
    assert workflow.kept("env")
    assert not [line for line in plain if "hush" in line or "quiet" in line]


def test_files_whose_size_and_times_are_the_same_are_not_read_again_where_that_is_asked_for(workflow: Workflow) -> None:
    steps = "- {id: build, run: 'echo app > app; sleep 0.2', inputs: [src/main.c], outputs: [app]}\n"
    machine = workflow.machine()
    machine.run(steps, verify="stat")
    assert list(machine.temporary.rglob("*.index")), "what is known is kept on the machine"
    again = machine.run(steps, verify="stat")
    assert (again.code, again.outputs["ran"]) == (0, [])


def test_a_checkpoint_that_is_signed_with_another_key_is_not_used(workflow: Workflow) -> None:
    assert attempt(workflow, 1, signing_key="one").outputs["ran"] == ["build", "test"]
    forged = attempt(workflow, 2, signing_key="another")
    assert (forged.outputs["restored"], forged.outputs["ran"]) == ([], ["build", "test", "last"])
    assert forged.code == 0
    assert len(forged.warnings) == 1
    third = attempt(workflow, 3, signing_key="another")
    assert third.outputs["restored"] == ["build"]


def test_a_step_that_leaves_too_much_is_done_and_not_kept(workflow: Workflow) -> None:
    steps = """\
- {id: small, run: 'echo x > small'}
- {id: large, run: 'head -c 3000000 /dev/zero > large'}
- {id: fails, run: 'test $GITHUB_RUN_ATTEMPT -gt 1'}
"""
    first = attempt(workflow, 1, steps, max_size="2MiB")
    assert any("max-size" in text and "large" in text for text in first.warnings)
    second = attempt(workflow, 2, steps, max_size="2MiB")
    assert (second.outputs["restored"], second.outputs["ran"]) == (["small"], ["large", "fails"])
    assert second.code == 0


def test_a_miss_tells_where_was_looked_once_there_might_be_something(workflow: Workflow) -> None:
    fails = "- {id: a, run: 'false', outputs: []}\n"
    assert "no checkpoint of this job" not in attempt(workflow, 1, fails, store="cache").log
    for entry in workflow.service.entries.all.values():
        entry.complete = False
    said = "no checkpoint of this job was found (this job can read entries of refs/heads/main and write"
    assert said in attempt(workflow, 2, fails, store="cache").log
