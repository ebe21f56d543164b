"""Entries handed over piece by piece, and ranges of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.blob import Excerpt
from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    InputError,
    MissingEntryError,
    ReservedError,
    ToolkitError,
)
from checkpoint_action.toolkit.exchange import FileSlice
from tests.actions_service import ActionsService, Fault, make_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.cache import Cache

VERSION = "a" * 64
CONTENT = bytes(range(256)) * 40

all_kinds = pytest.mark.parametrize("kind", ["v2", "gitea", "v1", "act"])


def content_of(cache: Cache, key: str, folder: Path) -> bytes:
    hit = cache.lookup([key], VERSION)
    assert hit is not None
    cache.download(hit, folder / "fetched")
    return (folder / "fetched").read_bytes()


@all_kinds
def test_the_first_piece_may_be_made_last(make_cache: Callable[..., Cache], source: Path, kind: str) -> None:
    cache = make_cache(kind)
    with cache.begin("job-1", VERSION) as entry:
        body = [entry.put(FileSlice(source, 0, 5000)), entry.put(b"middle"), entry.put(FileSlice(source, 5000, 5240))]
        entry.put(b"of no use after all")
        head = entry.put(b"head" * 1000)
        assert cache.lookup(["job-1"], VERSION) is None
        assert entry.finish([head, *body]) == 4000 + len(CONTENT) + 6
    assert content_of(cache, "job-1", source.parent) == b"head" * 1000 + CONTENT[:5000] + b"middle" + CONTENT[5000:]


def test_with_v2_a_piece_is_up_before_the_next_is_made(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    with make_cache("v2").begin("job-1", VERSION) as entry:
        for _ in range(4 + 1):
            entry.put(FileSlice(source, 0, 1000))
        assert service.calls["PutBlock"] > 0
    assert service.calls["PutBlockList"] == 0


@all_kinds
def test_what_is_not_finished_is_never_seen(make_cache: Callable[..., Cache], kind: str) -> None:
    cache = make_cache(kind)
    with cache.begin("job-1", VERSION) as entry:
        entry.put(b"some")
    with pytest.raises(ZeroDivisionError), cache.begin("job-2", VERSION) as entry:
        entry.finish([entry.put(b"more")][1 // 0 :])
    assert cache.lookup(["job-"], VERSION) is None


@all_kinds
def test_a_piece_that_fails_makes_no_entry(
    service: ActionsService, make_cache: Callable[..., Cache], kind: str
) -> None:
    cache = make_cache(kind)
    for operation in ("PutBlock", "chunk"):
        service.faults.next(operation, Fault.status(400), times=99)
    with pytest.raises(HttpStatusError, match="answered 400"), cache.begin("job-1", VERSION) as entry:
        entry.finish([entry.put(b"some")])
    assert cache.lookup(["job-"], VERSION) is None


def test_a_file_that_cannot_be_read_makes_no_entry(make_cache: Callable[..., Cache], tmp_path: Path) -> None:
    cache = make_cache("v1")
    with pytest.raises(ToolkitError, match="cannot read"), cache.begin("job-1", VERSION) as entry:
        entry.finish([entry.put(FileSlice(tmp_path / "missing", 0, 5))])


def test_beginning_is_refused_as_saving_is(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    cache = make_cache("v2")
    cache.save("job-1", VERSION, source)
    with pytest.raises(ReservedError), cache.begin("job-1", VERSION):
        pass
    with pytest.raises(InputError), cache.begin("a,b", VERSION):
        pass
    with pytest.raises(DeniedError, match="write denied"):
        make_cache("v2", token=make_token([("refs/heads/main", 1)])).begin("job-2", VERSION).__enter__()
    calls = service.calls.total()
    with pytest.raises(DeniedError, match="permits no writes"):
        make_cache("v2", ACTIONS_CACHE_MODE="read").begin("job-2", VERSION).__enter__()
    assert service.calls.total() == calls


def test_beginning_goes_on_with_v1_where_v2_is_not_served(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    service.v2.present = False
    cache = make_cache("v2", ACTIONS_CACHE_URL=service.cache_url)
    with cache.begin("job-1", VERSION) as entry:
        entry.finish([entry.put(CONTENT)])
    assert content_of(cache, "job-1", source.parent) == CONTENT


@all_kinds
def test_the_first_bytes_can_be_looked_at_alone(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-"], VERSION)
    assert hit is not None
    assert cache.read_range(hit, 0, 100) == Excerpt(CONTENT[:100], len(CONTENT))
    assert cache.read_range(hit, 10_000, 1000).data == CONTENT[10_000:]
    assert service.requests[-1].headers["range"] == "bytes=10000-10999"


@all_kinds
def test_an_address_that_expired_is_renewed_for_a_range(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, kind: str
) -> None:
    cache = make_cache(kind)
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-"], VERSION)
    assert hit is not None
    service.blobs.expire_all()
    service.v1.expire_all()
    assert cache.read_range(hit, 5, 10).data == CONTENT[5:15]
    service.entries.all.clear()
    service.blobs.expire_all()
    service.v1.expire_all()
    with pytest.raises(MissingEntryError, match="job-1 is gone"):
        cache.read_range(hit, 5, 10)


def test_a_range_is_refused_where_reading_is(make_cache: Callable[..., Cache], source: Path) -> None:
    cache = make_cache("v2")
    cache.save("job-1", VERSION, source)
    hit = cache.lookup(["job-1"], VERSION)
    assert hit is not None
    with pytest.raises(DeniedError, match="permits no reads"):
        make_cache("v2", ACTIONS_CACHE_MODE="write-only").read_range(hit, 0, 1)
