from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.errors import (
    DeniedError,
    InputError,
    ProtocolError,
    RateLimitedError,
)
from checkpoint_action.toolkit.http import HttpClient, Limits
from checkpoint_action.toolkit.rest import RestClient
from checkpoint_action.toolkit.rest_caches import CacheUsage, cache_usage, delete_cache, delete_caches, list_caches
from tests.actions_service import ActionsService, Fault
from tests.actions_service.messages import Reply, Request, Route

if TYPE_CHECKING:
    from tests.toolkit.clock import Clock

VERSION = "a" * 64


@pytest.fixture
def rest(service: ActionsService, http: HttpClient) -> RestClient:
    return RestClient(http, repository="octo/demo", token="rest-token", api_url=service.rest.url)


@pytest.fixture
def fork(service: ActionsService, http: HttpClient) -> RestClient:
    """What a pull request from a fork may do."""
    return RestClient(http, repository="octo/demo", token="fork-token", api_url=service.rest.url)


def keep(service: ActionsService, key: str, *, ref: str = "refs/heads/main", size: int = 10) -> int:
    entry = service.entries.reserve(ref, key, VERSION)
    service.entries.complete(entry, size)
    return entry.number


@pytest.mark.parametrize("repository", ["", "octo", "octo/", "/demo", "octo/demo/x", "../..", "octo/.."])
def test_a_repository_has_an_owner_and_a_name(http: HttpClient, repository: str) -> None:
    with pytest.raises(InputError, match="owner/name"):
        RestClient(http, repository=repository, token="")


def test_calls_carry_what_github_asks_for(service: ActionsService, rest: RestClient) -> None:
    cache_usage(rest)
    (request,) = service.requests
    assert request.headers["authorization"] == "Bearer rest-token"
    assert request.headers["accept"] == "application/vnd.github+json"
    assert request.headers["x-github-api-version"] == "2022-11-28"
    assert request.headers["user-agent"]


def test_a_list_is_read_to_a_thousand_at_most(service: ActionsService, rest: RestClient) -> None:
    for index in range(1101):
        keep(service, f"k-{index}")
    assert len(list_caches(rest)) == 1000
    assert service.calls["ListCaches"] == 10


class Moving:
    """A list that grows at its head between two pages."""

    def __init__(self) -> None:
        self.items = [{"id": number, "key": f"k-{number}"} for number in range(120, 0, -1)]

    def route(self, request: Request) -> Route | None:
        if not request.path.endswith("/actions/caches"):
            return None

        def answer() -> Reply:
            start = (int(request.query["page"]) - 1) * 100
            page = self.items[start : start + 100]
            self.items.insert(0, {"id": 1000 + len(self.items), "key": "k-new"})
            return Reply(200, json.dumps({"total_count": len(self.items), "actions_caches": page}).encode())

        return Route("moving", answer)


def test_a_list_that_moves_gives_each_item_once(service: ActionsService, rest: RestClient) -> None:
    service.parts.insert(0, Moving())
    numbers = [item.id for item in list_caches(rest)]
    assert numbers == list(range(120, 0, -1))


@pytest.mark.parametrize(
    "answer",
    [{}, *({"actions_caches": items} for items in (5, ["x"], [{"id": 1}], [{"id": [], "key": "k"}], [{"key": "k"}]))],
)
def test_a_list_that_is_none_is_refused(service: ActionsService, rest: RestClient, answer: object) -> None:
    service.faults.next("ListCaches", Fault.status(200, json.dumps(answer)))
    with pytest.raises(ProtocolError):
        list_caches(rest)


def test_what_the_token_may_not_do_is_denied(service: ActionsService, fork: RestClient, http: HttpClient) -> None:
    number = keep(service, "k")
    assert [item.id for item in list_caches(fork)] == [number]
    with pytest.raises(DeniedError, match="not accessible by integration"):
        delete_cache(fork, number)
    for token in ("stale", ""):
        stranger = RestClient(http, repository="octo/demo", token=token, api_url=service.rest.url)
        with pytest.raises(DeniedError, match="Bad credentials"):
            list_caches(stranger)
    assert service.calls == {"ListCaches": 3, "DeleteCache": 1}


def test_without_a_token_no_empty_one_is_sent(service: ActionsService, http: HttpClient) -> None:
    stranger = RestClient(http, repository="octo/demo", token="", api_url=service.rest.url)
    with pytest.raises(DeniedError):
        cache_usage(stranger)
    assert "authorization" not in service.requests[0].headers


def test_caches_are_listed_by_the_beginning_of_their_key(service: ActionsService, rest: RestClient) -> None:
    keep(service, "cpr1-a-1")
    pull = keep(service, "cpr1-b-1", ref="refs/pull/1/merge", size=77)
    newest = keep(service, "cpr1-a-2", size=5)
    keep(service, "other")
    service.entries.reserve("refs/heads/main", "cpr1-unfinished", VERSION)
    assert [item.key for item in list_caches(rest, key="cpr1-")] == ["cpr1-a-2", "cpr1-b-1", "cpr1-a-1"]
    assert list_caches(rest, key="cpr1-", sort="size_in_bytes")[0].key == "cpr1-b-1"
    (found,) = list_caches(rest, key="cpr1-", ref="refs/pull/1/merge")
    assert (found.id, found.ref, found.size, found.version) == (pull, "refs/pull/1/merge", 77, VERSION)
    assert list_caches(rest, key="cpr1-a-2")[0].id == newest
    assert list_caches(rest, key="none") == []


class Careless:
    """A server that lists whatever there is."""

    def route(self, request: Request) -> Route | None:
        if not request.path.endswith("/actions/caches"):
            return None
        items = [{"id": 1, "key": "mine-1", "ref": "r"}, {"id": 3, "key": "theirs", "ref": "r"}]
        return Route("careless", lambda: Reply(200, json.dumps({"actions_caches": items}).encode()))


def test_what_was_not_asked_for_is_not_deleted(service: ActionsService, rest: RestClient) -> None:
    numbers = [keep(service, "mine-1"), keep(service, "theirs")]
    assert numbers == [1, 3]
    service.parts.insert(0, Careless())
    assert [item.key for item in delete_caches(rest, key="mine-")] == ["mine-1"]
    assert list(service.entries.all) == [3]


def test_caches_are_deleted_by_the_beginning_of_their_key(service: ActionsService, rest: RestClient) -> None:
    for index in range(130):
        keep(service, f"cpr1-{index}")
    keep(service, "cpr1-pull", ref="refs/pull/1/merge")
    kept = keep(service, "other")
    assert len(delete_caches(rest, key="cpr1-", ref="refs/heads/main")) == 130
    assert [item.key for item in delete_caches(rest, key="cpr1-")] == ["cpr1-pull"]
    assert list(service.entries.all) == [kept]
    assert delete_caches(rest, key="cpr1-") == []


def test_all_of_them_cannot_be_deleted_by_mistake(service: ActionsService, rest: RestClient) -> None:
    with pytest.raises(InputError, match="beginning of a key"):
        delete_caches(rest, key="")
    assert not service.requests


def test_an_entry_that_somebody_else_deletes_meanwhile_does_not_count(
    service: ActionsService, rest: RestClient
) -> None:
    for index in range(3):
        keep(service, f"k-{index}")
    service.faults.next("DeleteCache", Fault.status(404))
    assert len(delete_caches(rest, key="k-")) == 2
    assert not delete_cache(rest, 999)


def test_usage_is_told(service: ActionsService, rest: RestClient) -> None:
    keep(service, "a", size=7)
    keep(service, "b", size=5)
    assert cache_usage(rest) == CacheUsage(size=12, count=2)
    service.faults.next("CacheUsage", Fault.status(200, "{}"))
    with pytest.raises(ProtocolError, match="without its numbers"):
        cache_usage(rest)


@pytest.mark.parametrize(
    "fault", [Fault.status(500), Fault.status(502), Fault.not_json(), Fault.reset(), Fault.truncated(3)]
)
def test_what_passes_is_sat_out(service: ActionsService, rest: RestClient, fault: Fault) -> None:
    keep(service, "k")
    service.faults.next("ListCaches", fault, times=3)
    assert len(list_caches(rest)) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        Fault.status(429, "{}", retry_after="7"),
        Fault.status(403, '{"message":"You have exceeded a secondary rate limit"}', retry_after="7"),
    ],
)
def test_a_refusal_for_too_many_calls_is_waited_out(
    service: ActionsService, rest: RestClient, clock: Clock, refusal: Fault
) -> None:
    service.faults.next("ListCaches", refusal, times=2)
    assert list_caches(rest) == []
    assert clock.sleeps == [7, 7]


def test_used_up_calls_are_waited_for_as_long_as_is_told(
    service: ActionsService, rest: RestClient, clock: Clock
) -> None:
    refusal = Fault.status(403, '{"message":"API rate limit exceeded"}')
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(clock.wall()) + 20)}
    refusal.reply.headers.update(headers)
    service.faults.next("ListCaches", refusal)
    assert list_caches(rest) == []
    assert clock.sleeps == [20]


def test_calls_that_stay_used_up_are_no_denial_and_are_not_waited_for(
    service: ActionsService, rest: RestClient, clock: Clock
) -> None:
    service.rest.remaining, service.rest.reset_at = 0, int(clock.wall()) + 3000
    with pytest.raises(RateLimitedError, match="rate limit exceeded"):
        list_caches(rest)
    assert sum(clock.sleeps) < Limits().total


def test_a_plain_403_is_not_waited_out(service: ActionsService, rest: RestClient, clock: Clock) -> None:
    refusal = Fault.status(403, '{"message":"no"}')
    refusal.reply.headers.update({"x-ratelimit-remaining": "12", "x-ratelimit-reset": "99999999999"})
    service.faults.next("ListCaches", refusal, times=99)
    with pytest.raises(DeniedError):
        list_caches(rest)
    assert clock.sleeps == []
    assert service.calls["ListCaches"] == 1
