"""Who may read and write what: scopes, denials and what is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.errors import DeniedError, QuotaError, RateLimitedError
from tests.actions_service import ActionsService, Fault, make_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.cache import Cache

VERSION = "a" * 64
PULL_REQUEST = [("refs/pull/5/merge", 3), ("refs/heads/dev", 1), ("refs/heads/main", 1)]
LOOKUP = {"v2": "GetCacheEntryDownloadURL", "v1": "lookup"}
RESERVE = {"v2": "CreateCacheEntry", "v1": "reserve"}

both = pytest.mark.parametrize("kind", ["v2", "v1"])


@both
def test_a_pull_request_reads_its_own_then_its_base_then_the_default_branch(
    make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    of_pull_request = make_cache(kind, token=make_token(PULL_REQUEST))
    for branch in ("main", "dev"):
        cache = make_cache(kind, token=make_token([(f"refs/heads/{branch}", 3)]))
        cache.save(f"job-{branch}", VERSION, source)
        hit = of_pull_request.lookup(["job-"], VERSION)
        assert hit is not None
        assert hit.key == f"job-{branch}"
    of_pull_request.save("job-own", VERSION, source)
    main = make_cache(kind, token=make_token([("refs/heads/main", 3)]))
    main.save("job-newer", VERSION, source)
    hit = of_pull_request.lookup(["job-"], VERSION)
    assert hit is not None
    assert hit.key == "job-own"
    assert main.lookup(["job-own"], VERSION) is None


@both
def test_a_tag_sees_nothing_of_another_and_is_told_what_it_could_see(
    make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    make_cache(kind, token=make_token([("refs/tags/v1", 3)])).save("job-1", VERSION, source)
    cache = make_cache(kind, token=make_token([("refs/tags/v2", 3), ("refs/heads/main", 1)]))
    assert cache.lookup(["job-"], VERSION) is None
    assert cache.reach == "this job can read entries of refs/tags/v2, refs/heads/main and write entries of refs/tags/v2"
    assert [scope.scope for scope in cache.scopes if scope.readable] == ["refs/tags/v2", "refs/heads/main"]


@pytest.mark.parametrize(
    ("scopes", "words"),
    [
        ([("refs/heads/main", 1)], "this job can read entries of refs/heads/main and write entries of no ref"),
        ([("refs/heads/main", 2)], "this job can read entries of no ref and write entries of refs/heads/main"),
        ([], ""),
    ],
)
def test_what_the_token_reaches_is_told_in_words(
    make_cache: Callable[..., Cache], scopes: list[tuple[str, int]], words: str
) -> None:
    assert make_cache("v2", token=make_token(scopes)).reach == words


def test_a_token_that_tells_nothing_is_no_error(make_cache: Callable[..., Cache]) -> None:
    cache = make_cache("v2", token="opaque")
    assert cache.reach == ""
    assert cache.lookup(["job-1"], VERSION) is None


@pytest.mark.parametrize("status", [200, 400, 403, 500])
@pytest.mark.parametrize("message", ["cache read denied: token has no readable scopes", "Cache Read Denied: expired"])
def test_a_read_is_denied_by_whatever_status(
    service: ActionsService, make_cache: Callable[..., Cache], status: int, message: str
) -> None:
    body = f'{{"ok":false,"message":"{message}"}}' if status == 200 else f'{{"code":"x","msg":"{message}"}}'
    service.faults.next("GetCacheEntryDownloadURL", Fault.status(status, body), times=9)
    with pytest.raises(DeniedError, match=message):
        make_cache("v2").lookup(["job-1"], VERSION)


@pytest.mark.parametrize("status", [200, 403, 409, 412])
def test_a_write_is_denied_by_whatever_status(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, status: int
) -> None:
    said = "cache write denied: storage budget used up"
    body = f'{{"ok":false,"message":"{said}"}}' if status == 200 else f'{{"code":"x","msg":"{said}"}}'
    service.faults.next("CreateCacheEntry", Fault.status(status, body))
    with pytest.raises(DeniedError, match=said):
        make_cache("v2").save("job-1", VERSION, source)
    assert service.calls == {"CreateCacheEntry": 1}


@both
def test_a_used_up_quota_is_told_at_once(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    body = '{"code":"resource_exhausted","msg":"insufficient usage to create cache"}'
    service.faults.next(RESERVE[kind], Fault.status(429, body, retry_after="30"), times=9)
    with pytest.raises(QuotaError, match="insufficient usage"):
        make_cache(kind).save("job-1", VERSION, source)
    assert service.calls == {RESERVE[kind]: 1}


@both
def test_a_refusal_that_asks_to_come_back_is_no_denial(
    service: ActionsService, make_cache: Callable[..., Cache], kind: str
) -> None:
    service.faults.next(LOOKUP[kind], Fault.status(403, "slow down", retry_after="1"))
    assert make_cache(kind).lookup(["job-1"], VERSION) is None
    service.faults.next(LOOKUP[kind], Fault.status(403, "slow down", retry_after="1"), times=99)
    with pytest.raises(RateLimitedError):
        make_cache(kind).lookup(["job-1"], VERSION)


def test_gitea_takes_the_token_of_this_job_alone_and_keys_as_they_are(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    service.v1.manner = "gitea"
    cache = make_cache("v1")
    cache.save("Job-1", VERSION, source)
    cache.save("Job-1", VERSION, source)  # a second entry of the name: the newest counts
    assert cache.lookup(["job-1"], VERSION) is None
    hit = cache.lookup(["Job-"], VERSION)
    assert hit is not None
    assert hit.key == "Job-1"
    with pytest.raises(DeniedError, match="answered 401, unauthorized"):
        make_cache("v1", token=make_token(signature="another")).lookup(["Job-1"], VERSION)
