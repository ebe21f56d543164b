from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.errors import (
    HttpStatusError,
    ProtocolError,
    ReservedError,
)
from tests.actions_service import ActionsService, Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.cache import Cache
    from tests.toolkit.clock import Clock

VERSION = "a" * 64


def test_a_taken_key_that_is_answered_with_200_is_a_reservation_error(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    service.v2.taken_is_ok_false = True
    cache = make_cache("v2")
    cache.save("job-1", VERSION, source)
    with pytest.raises(ReservedError):
        cache.save("job-1", VERSION, source)


def test_both_json_spellings_are_read(service: ActionsService, make_cache: Callable[..., Cache], source: Path) -> None:
    service.v2.camel_case = True
    cache = make_cache("v2")
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-"], VERSION)
    assert hit is not None
    assert cache.download(hit, source.with_name("target")) == source.stat().st_size


@pytest.mark.parametrize("told", ['"true"', '"false"', "1", "null", "[]"])
def test_only_true_is_taken_for_true(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, told: str
) -> None:
    body = f'{{"ok":{told},"signed_download_url":"http://h/","matched_key":"job-1","signed_upload_url":"http://h/"}}'
    for method in ("GetCacheEntryDownloadURL", "CreateCacheEntry"):
        service.faults.next(method, Fault.status(200, body))
    cache = make_cache("v2")
    assert cache.lookup(["job-1"], VERSION) is None
    with pytest.raises(ReservedError):
        cache.save("job-1", VERSION, source)


def test_finalize_is_repeated_while_the_blob_is_not_seen(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, clock: Clock
) -> None:
    service.v2.unseen_blobs = 3
    make_cache("v2").save("job-1", VERSION, source)
    assert service.calls["FinalizeCacheEntryUpload"] == 4
    assert clock.sleeps == [1, 2, 4]


def test_finalize_does_not_wait_for_a_blob_for_ever(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    service.v2.unseen_blobs = 99
    with pytest.raises(HttpStatusError, match="not_found"):
        make_cache("v2").save("job-1", VERSION, source)


def test_a_refused_finalize_says_why(service: ActionsService, make_cache: Callable[..., Cache], source: Path) -> None:
    service.faults.next("FinalizeCacheEntryUpload", Fault.status(200, '{"ok":false,"message":"quota"}'))
    with pytest.raises(ProtocolError, match="was refused: quota"):
        make_cache("v2").save("job-1", VERSION, source)


def test_a_path_in_the_results_address_is_dropped(service: ActionsService, make_cache: Callable[..., Cache]) -> None:
    cache = make_cache("v2", ACTIONS_RESULTS_URL=f"{service.origin}/some/path?x")
    assert cache.lookup(["job-1"], VERSION) is None
