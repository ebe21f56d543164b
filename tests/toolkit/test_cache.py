"""The cache client; what both protocols must do is tested with both, and with a server in act's manner."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    InputError,
    MissingEntryError,
    ReservedError,
    UnavailableError,
)
from tests.actions_service import ActionsService, Fault, make_token
from tests.toolkit.kinds import KINDS, LOOKUP, RESERVE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.cache import Cache


VERSION = "a" * 64
CONTENT = bytes(range(256)) * 40


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 1000, 1001, len(CONTENT)])
def test_what_is_saved_comes_back(make_cache: Callable[..., Cache], source: Path, kind: str, size: int) -> None:
    source.write_bytes(CONTENT[:size])
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    assert (hit.key, hit.exact) == ("job-1", True)
    assert cache.download(hit, source.with_name("target")) == size
    assert source.with_name("target").read_bytes() == CONTENT[:size]


@pytest.mark.parametrize("kind", KINDS)
def test_a_prefix_finds_the_newest_and_a_version_only_itself(
    make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    cache = make_cache(kind)
    for key in ("job-1", "job-2", "other-3"):
        cache.save(key, VERSION, source)
    hit = cache.lookup(["job-"], VERSION)
    assert hit is not None
    assert (hit.key, hit.exact) == ("job-2", False)
    assert cache.lookup(["job-"], "b" * 64) is None
    assert cache.lookup(["nothing"], VERSION) is None


@pytest.mark.parametrize("kind", KINDS)
def test_further_keys_are_asked_for_in_order(make_cache: Callable[..., Cache], source: Path, kind: str) -> None:
    cache = make_cache(kind)
    cache.save("second-1", VERSION, source)
    cache.save("third-1", VERSION, source)
    hit = cache.lookup(["first-", "second-", "third-"], VERSION)
    assert hit is not None
    assert hit.key == "second-1"


@pytest.mark.parametrize("kind", ["v2", "v1"])
def test_a_key_that_was_taken_before_is_told_apart(make_cache: Callable[..., Cache], source: Path, kind: str) -> None:
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    with pytest.raises(ReservedError) as caught:
        cache.save("job-1", VERSION, source)
    assert not caught.value.repeated


@pytest.mark.parametrize("kind", ["v2", "v1"])
def test_a_taken_key_is_a_reservation_error(make_cache: Callable[..., Cache], source: Path, kind: str) -> None:
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    with pytest.raises(ReservedError, match="cache key job-1 is taken"):
        cache.save("job-1", VERSION, source)


@pytest.mark.parametrize(("kind", "by_status"), [("v2", False), ("v2", True), ("v1", False)])
def test_a_token_that_may_not_write_is_denied_in_either_form(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, by_status: bool
) -> None:
    service.v2.denies_with_403 = by_status
    cache = make_cache(kind, token=make_token([("refs/heads/main", 1)]))
    with pytest.raises(DeniedError, match="cache write denied: token has no writ"):
        cache.save("job-1", VERSION, source)
    assert service.calls == {RESERVE[kind]: 1}
    assert cache.lookup(["job-1"], VERSION) is None


@pytest.mark.parametrize("kind", ["v2", "v1"])
def test_a_token_that_may_not_read_is_denied(
    service: ActionsService, make_cache: Callable[..., Cache], kind: str
) -> None:
    with pytest.raises(DeniedError, match="cache read denied: token has no readable"):
        make_cache(kind, token=make_token([("refs/heads/main", 2)])).lookup(["job-"], VERSION)
    assert service.calls == {LOOKUP[kind]: 1}


@pytest.mark.parametrize("kind", ["v2", "v1"])
def test_a_token_that_ran_out_is_a_denial(service: ActionsService, make_cache: Callable[..., Cache], kind: str) -> None:
    service.faults.next(LOOKUP[kind], Fault.status(401, '{"code":"unauthenticated","msg":"expired"}'))
    with pytest.raises(DeniedError, match="answered 401, unauthenticated, expired"):
        make_cache(kind).lookup(["job-"], VERSION)


@pytest.mark.parametrize("mode", ["read", "write", "write-only", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_mode_is_obeyed_without_asking(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, mode: str
) -> None:
    cache = make_cache(kind, ACTIONS_CACHE_MODE=mode)
    reads, writes = mode in {"read", "write"}, mode in {"write", "write-only"}
    with nullcontext() if writes else pytest.raises(DeniedError, match=f"cache mode '{mode}' permits no writes"):
        cache.save("job-1", VERSION, source)
    with nullcontext() if reads else pytest.raises(DeniedError, match=f"cache mode '{mode}' permits no reads"):
        cache.lookup(["job-"], VERSION)
    assert (service.calls[LOOKUP[kind]], service.calls[RESERVE[kind]]) == (reads, writes)


def test_where_v2_is_not_served_v1_takes_over_for_good(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    service.v2.present = False
    cache = make_cache("v2", ACTIONS_CACHE_URL=service.cache_url)
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    assert cache.service == "v1"
    assert sum(request.path.startswith("/twirp/") for request in service.requests) == 1


def test_a_v2_that_has_answered_once_is_not_given_up_for_a_strange_404(
    service: ActionsService, make_cache: Callable[..., Cache]
) -> None:
    cache = make_cache("v2", ACTIONS_CACHE_URL=service.cache_url)
    assert cache.lookup(["job-1"], VERSION) is None
    service.faults.next(LOOKUP["v2"], Fault.status(404, "<html>not here</html>"))
    with pytest.raises(HttpStatusError, match="answered 404"):
        cache.lookup(["job-1"], VERSION)
    assert cache.service == "v2"


def test_without_a_v1_address_a_missing_v2_is_an_error(
    service: ActionsService, make_cache: Callable[..., Cache]
) -> None:
    service.v2.present = False
    cache = make_cache("v2")
    with pytest.raises(HttpStatusError, match="answered 404"):
        cache.lookup(["job-1"], VERSION)
    assert cache.service == "v2"


@pytest.mark.parametrize("kind", KINDS)
def test_an_expired_address_is_asked_for_again_under_the_exact_key(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    service.v1.refuses_head = True
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-"], VERSION)
    assert hit is not None
    source.with_name("other").write_bytes(b"newer")
    cache.save("job-2", VERSION, source.with_name("other"))
    for addresses in (service.blobs, service.v1):
        addresses.expire_all()
        addresses.expire_after(2000)
    cache.download(hit, source.with_name("target"))
    assert source.with_name("target").read_bytes() == CONTENT
    assert service.calls[LOOKUP[kind]] > 2


def test_an_entry_that_was_evicted_is_missing(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    cache = make_cache("v2")
    cache.save("job-1", VERSION, source)
    cache.save("job-10", VERSION, source)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    del service.entries.all[1]
    service.blobs.content.pop("entry-1")
    with pytest.raises(MissingEntryError, match="job-1 is gone"):
        cache.download(hit, source.with_name("target"))
    assert not source.with_name("target").exists()


def test_signatures_of_both_directions_are_masked(make_cache: Callable[..., Cache], source: Path) -> None:
    masks: list[str] = []
    cache = make_cache("v2", masks=masks)
    cache.save("job-1", VERSION, source)
    after_save = len(masks)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    assert 0 < after_save < len(masks)
    assert any(mask in hit.url for mask in masks[after_save:])
    assert hit.url not in repr(hit)


@pytest.mark.parametrize("key", ["", "a,b", "k" * 513, "\udcff"])
def test_keys_that_no_server_takes_are_refused_here(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, key: str
) -> None:
    cache = make_cache("v2")
    with pytest.raises(InputError):
        cache.save(key, VERSION, source)
    with pytest.raises(InputError):
        cache.lookup([key], VERSION)
    assert service.requests == []


@pytest.mark.parametrize("count", [0, 11])
def test_too_few_and_too_many_keys_are_refused_here(make_cache: Callable[..., Cache], count: int) -> None:
    with pytest.raises(InputError, match="1 to 10 keys"):
        make_cache("v2").lookup(["k"] * count, VERSION)


def test_a_job_without_a_cache_says_so(make_cache: Callable[..., Cache]) -> None:
    cache = make_cache("v2", ACTIONS_RESULTS_URL="")
    assert cache.service is None
    with pytest.raises(UnavailableError):
        cache.lookup(["job-1"], VERSION)
