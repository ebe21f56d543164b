"""The cache client; what both protocols must do is tested with both, and with a server in act's manner."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    InputError,
    MissingEntryError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    ReservedError,
    UnavailableError,
)
from checkpoint_action.toolkit.http import HttpClient, Retries
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault, make_token
from tests.toolkit.conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.exchange import Call
    from tests.toolkit.clock import Clock

VERSION = "a" * 64
CONTENT = bytes(range(256)) * 40
KINDS = ["v2", "gitea", "v1", "act"]
V2 = {"lookup": "GetCacheEntryDownloadURL", "reserve": "CreateCacheEntry", "part": "PutBlock"}
V2 |= {"close": "FinalizeCacheEntryUpload", "read": "GetBlob"}
V1 = {"lookup": "lookup", "reserve": "reserve", "part": "chunk", "close": "commit", "read": "archive"}
CALLS = {"v2": V2, "gitea": V2, "v1": V1, "act": V1}
LOOKUP, RESERVE, PART, CLOSE, READ = (
    {kind: calls[role] for kind, calls in CALLS.items()} for role in ("lookup", "reserve", "part", "close", "read")
)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(500),
        Fault.status(502),
        Fault.status(503),
        Fault.status(504),
        Fault.status(408),
        Fault.status(429, retry_after="18"),
        Fault.reset(),
        Fault.hang_up(0),
    ],
)
def test_passing_faults_of_every_call_are_overcome(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, fault: Fault
) -> None:
    for names in (LOOKUP, RESERVE, PART, CLOSE, READ):
        service.faults.next(names[kind], fault)
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    assert cache.download(hit, source.with_name("target")) == len(CONTENT)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_answer_to_the_last_call_is_overcome(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    service.faults.next(CLOSE[kind], Fault.reset(handled=True))
    service.faults.next(PART[kind], Fault.reset(handled=True), times=2)
    service.v2.finalizes_once = True
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    cache.download(hit, source.with_name("target"))
    assert source.with_name("target").read_bytes() == CONTENT


@pytest.mark.parametrize(("kind", "lookups"), [("v2", 1), ("v1", 1), ("act", 0)])
def test_whether_a_repeated_end_got_through_is_only_looked_up_where_the_server_does_not_say_it(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, lookups: int
) -> None:
    service.v2.finalizes_once = True
    service.faults.next(CLOSE[kind], Fault.reset(handled=True), times=2)
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    assert service.calls[LOOKUP[kind]] == lookups
    if lookups:
        service.faults.next(CLOSE[kind], Fault.reset(handled=True))
        service.faults.next(LOOKUP[kind], Fault.status(403))
        with pytest.raises(HttpStatusError, match=r"(Finalize|commit).* answered 4\d\d"):
            cache.save("job-2", VERSION, source)


@pytest.mark.parametrize("kind", ["v1", "act"])
def test_a_refused_chunk_ends_the_waits_of_the_others(service: ActionsService, source: Path, kind: str) -> None:
    http = HttpClient(env={}, retries=Retries(retry_after_cap=3600))
    cache = Cache(Runtime.resolve(service.env(kind)), http, plan=SMALL)
    service.v1.manner = "act" if kind == "act" else "github"
    service.faults.next("chunk", Fault.status(503, retry_after="3600"), times=3)
    service.faults.next("chunk", Fault.status(413), times=9)
    with pytest.raises(HttpStatusError, match="answered 413"):
        cache.save("job-1", VERSION, source, seconds=7200)
    assert service.calls["chunk"] < 11
    http.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_reservation_takes_its_key_with_it_where_keys_are_taken(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    service.faults.next(RESERVE[kind], Fault.reset(handled=True))
    cache = make_cache(kind)
    if kind in {"act", "gitea"}:  # these give it out again
        cache.save("job-1", VERSION, source)
        assert cache.lookup(["job-1"], VERSION) is not None
        return
    with pytest.raises(ReservedError, match="perhaps by an earlier try whose answer was lost") as caught:
        cache.save("job-1", VERSION, source)
    assert caught.value.repeated
    assert cache.lookup(["job-1"], VERSION) is None


@pytest.mark.parametrize("kind", ["v2", "v1"])
def test_a_key_that_was_taken_before_is_told_apart(make_cache: Callable[..., Cache], source: Path, kind: str) -> None:
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    with pytest.raises(ReservedError) as caught:
        cache.save("job-1", VERSION, source)
    assert not caught.value.repeated


@pytest.mark.parametrize(("kind", "fault"), [("v2", Fault.status(409)), ("v1", Fault.status(400))])
def test_an_end_that_is_refused_after_a_doubtful_try_counts_only_if_the_entry_is_there(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, fault: Fault
) -> None:
    cache = make_cache(kind)
    cache.save("job-10", VERSION, source)  # which a look-up for the other finds
    service.faults.next(CLOSE[kind], Fault.status(502))
    service.faults.next(CLOSE[kind], fault)
    with pytest.raises(HttpStatusError):
        cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    assert hit.key == "job-10"
    lookups = service.calls[LOOKUP[kind]]
    service.faults.next(CLOSE[kind], fault)
    with pytest.raises(HttpStatusError):  # no doubt, so no look
        cache.save("job-2", VERSION, source)
    assert service.calls[LOOKUP[kind]] == lookups


def test_a_list_of_blocks_whose_answer_was_lost_is_sent_again(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    service.faults.next("PutBlockList", Fault.reset(handled=True))
    cache = make_cache("v2")
    cache.save("job-1", VERSION, source)
    assert cache.lookup(["job-1"], VERSION) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_more_uploads_than_a_minute_takes_are_waited_for(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, clock: Clock
) -> None:
    service.entries.uploads_per_minute = 2
    service.entries.clock = clock.monotonic
    cache = make_cache(kind)
    for number in range(5):
        cache.save(f"job-{number}", VERSION, source)
        clock.now += 1
    assert clock.sleeps == [59, 59]
    hit = cache.lookup(["job-"], VERSION)
    assert hit is not None
    assert hit.key == "job-4"


@pytest.mark.parametrize("kind", KINDS)
def test_calls_that_must_not_be_made_twice_are_waited_for_longer(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience: dict[str, float] = {}
    plain = HttpClient._call

    def call(self: HttpClient, method: str, url: str, label: str, **options: Any) -> Call:
        made = plain(self, method, url, label, **options)
        patience[label] = made.limits.idle
        return made

    monkeypatch.setattr(HttpClient, "_call", call)
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    assert cache.lookup(["job-1"], VERSION) is not None
    longer = {label for label, seconds in patience.items() if seconds == 120}
    assert longer in (
        {"CreateCacheEntry", "Put Block List", "FinalizeCacheEntryUpload"},
        {"cache reservation", "cache commit"},
    )
    assert {seconds for label, seconds in patience.items() if label not in longer} == {30}


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_for_too_many_calls_that_lasts_is_no_miss(
    service: ActionsService, make_cache: Callable[..., Cache], kind: str, clock: Clock
) -> None:
    service.faults.next(LOOKUP[kind], Fault.status(429, retry_after="40"), times=99)
    cache = make_cache(kind)
    with pytest.raises(RateLimitedError):
        cache.lookup(["job-"], VERSION)
    assert clock.sleeps == [40, 40]


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_no_json_is_no_miss(
    service: ActionsService, make_cache: Callable[..., Cache], kind: str
) -> None:
    service.faults.next(LOOKUP[kind], Fault.not_json(), times=99)
    with pytest.raises(ProtocolError):
        make_cache(kind).lookup(["job-"], VERSION)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [Fault.not_json(), Fault.truncated(5)])
def test_answers_that_are_damaged_are_asked_for_again(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str, fault: Fault
) -> None:
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    service.faults.next(LOOKUP[kind], fault, times=2)
    hit = cache.lookup(["job-"], VERSION)
    assert hit is not None
    assert hit.key == "job-1"


@pytest.mark.parametrize("kind", KINDS)
def test_a_hit_without_its_address_is_no_miss(
    service: ActionsService, make_cache: Callable[..., Cache], kind: str
) -> None:
    service.faults.next(LOOKUP[kind], Fault.status(200, '{"ok":true,"cacheKey":"job-1"}'))
    with pytest.raises(ProtocolError, match="without its address or key"):
        make_cache(kind).lookup(["job-"], VERSION)


@pytest.mark.parametrize("kind", ["v2", "v1"])
def test_a_taken_key_is_a_reservation_error(make_cache: Callable[..., Cache], source: Path, kind: str) -> None:
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    with pytest.raises(ReservedError, match="cache key job-1 is taken"):
        cache.save("job-1", VERSION, source)


@pytest.mark.parametrize("kind", ["v2", "v1"])
def test_a_broken_upload_is_never_seen_and_keeps_its_key(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    service.faults.next(PART[kind], Fault.reset(), times=999)
    cache = make_cache(kind)
    with pytest.raises(NetworkError):
        cache.save("job-1", VERSION, source)
    assert cache.lookup(["job-1"], VERSION) is None
    with pytest.raises(ReservedError):
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
