"""The cache client where calls fail, break, lie or lose their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.errors import (
    HttpStatusError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    ReservedError,
)
from checkpoint_action.toolkit.http import HttpClient, Retries
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault
from tests.toolkit.conftest import SMALL
from tests.toolkit.kinds import CLOSE, KINDS, LOOKUP, PART, READ, RESERVE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.exchange import Call
    from tests.toolkit.clock import Clock

VERSION = "a" * 64
CONTENT = bytes(range(256)) * 40


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
