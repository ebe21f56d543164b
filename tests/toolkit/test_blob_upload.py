from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.errors import (
    DeadlineError,
    DigestError,
    HttpStatusError,
    InputError,
    NetworkError,
    ProtocolError,
)
from checkpoint_action.toolkit.exchange import FileSlice
from checkpoint_action.toolkit.http import HttpClient, Retries
from tests.actions_service import ActionsService, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.toolkit.clock import Clock

CONTENT = bytes(range(256)) * 40
PLAN = blob.UploadPlan(single=1000, block=1000, parallel=4)


@pytest.fixture
def url(service: ActionsService) -> str:
    return service.blobs.sign(service.origin, "b", "w")


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_small_file_goes_as_one_blob(
    service: ActionsService, http: HttpClient, url: str, source: Path, size: int
) -> None:
    source.write_bytes(CONTENT[:size])
    assert blob.upload(http, url, source, plan=PLAN) == size
    assert service.blobs.content["b"] == CONTENT[:size]
    assert service.calls == {"PutBlob": 1}


@pytest.mark.parametrize("size", [1001, 2000, len(CONTENT)])
def test_a_larger_file_goes_as_blocks_in_order(
    service: ActionsService, http: HttpClient, url: str, source: Path, size: int
) -> None:
    source.write_bytes(CONTENT[:size])
    assert blob.upload(http, url, source, plan=PLAN) == size
    assert service.blobs.content["b"] == CONTENT[:size]
    assert service.calls == {"PutBlock": -(-size // 1000), "PutBlockList": 1}


def test_blocks_grow_where_there_would_be_too_many(
    service: ActionsService, http: HttpClient, url: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkpoint_action.toolkit.blob_upload._MOST_BLOCKS", 3)
    blob.upload(http, url, source, plan=PLAN)
    assert service.blobs.content["b"] == CONTENT
    assert service.calls["PutBlock"] == 3
    with pytest.raises(InputError, match="at most 3 blocks, this one has 4"), blob.BlockUpload(http, url) as pieces:
        pieces.commit([pieces.put(b"x")] * 4)


def test_the_signed_query_is_kept_and_no_token_is_sent(
    service: ActionsService, http: HttpClient, url: str, source: Path
) -> None:
    blob.upload(http, url, source, plan=PLAN)
    signed = url.removeprefix(service.origin)
    assert all(request.target.startswith(f"{signed}&comp=block") for request in service.requests)
    assert not any("authorization" in request.headers for request in service.requests)


def test_block_names_have_one_length_and_differ_between_uploads(
    service: ActionsService, http: HttpClient, url: str, source: Path
) -> None:
    for _ in range(2):
        blob.upload(http, url, source, plan=PLAN)
    names = [request.query["blockid"] for request in service.requests if "blockid" in request.query]
    assert len(set(names)) == len(names) == 22
    assert {len(name) for name in names} == {60}


@pytest.mark.parametrize("plan", [PLAN, None])
def test_the_type_that_a_blob_is_served_as_can_be_said(
    service: ActionsService, http: HttpClient, url: str, source: Path, plan: blob.UploadPlan | None
) -> None:
    blob.upload(http, url, source, plan=plan, content_type="application/zip")
    assert service.requests[-1].headers["x-ms-blob-content-type"] == "application/zip"


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(500),
        Fault.status(502),
        Fault.status(503, retry_after="2"),
        Fault.status(504),
        Fault.status(408),
        Fault.status(429, retry_after="18"),
        Fault.reset(),
        Fault.reset(handled=True),
        Fault.hang_up(500),
    ],
)
@pytest.mark.parametrize("operation", ["PutBlock", "PutBlob", "PutBlockList"])
def test_a_call_that_fails_is_made_again(
    service: ActionsService, http: HttpClient, url: str, source: Path, operation: str, fault: Fault
) -> None:
    service.faults.next(operation, fault, times=2)
    blob.upload(http, url, source, plan=None if operation == "PutBlob" else PLAN)
    assert service.blobs.content["b"] == CONTENT
    assert service.calls[operation] >= 3


@pytest.mark.parametrize(("operation", "wanted"), [("PutBlock", 60), ("PutBlob", 60)])
def test_a_wait_that_the_store_asks_for_is_capped(
    service: ActionsService, http: HttpClient, url: str, source: Path, clock: Clock, operation: str, wanted: int
) -> None:
    service.faults.next(operation, Fault.status(503, retry_after="7200"))
    blob.upload(http.within(1000), url, source, plan=PLAN if operation == "PutBlock" else None)
    assert clock.sleeps == [wanted]


@pytest.mark.parametrize("plan", [PLAN, None])
def test_a_refused_upload_leaves_no_blob_and_is_not_repeated(
    service: ActionsService, http: HttpClient, url: str, source: Path, plan: blob.UploadPlan | None
) -> None:
    service.blobs.expire_all()
    with pytest.raises(HttpStatusError, match="answered 403, AuthenticationFailed") as caught:
        blob.upload(http, url, source, plan=plan)
    assert caught.value.code == "AuthenticationFailed"
    assert service.calls.total() < 10
    assert service.blobs.content == {}


def test_a_failure_ends_the_waits_of_the_other_blocks(service: ActionsService, url: str, source: Path) -> None:
    client = HttpClient(env={}, retries=Retries(retry_after_cap=3600))
    service.faults.next("PutBlock", Fault.status(503, retry_after="3600"), times=3)
    service.faults.next("PutBlock", Fault.status(400), times=9)
    with pytest.raises(HttpStatusError, match="answered 400"):
        blob.upload(client.within(7200), url, source, plan=PLAN)
    assert service.calls["PutBlock"] < 10
    assert service.calls["PutBlockList"] == 0
    client.close()


def test_an_upload_out_of_time_ends(service: ActionsService, http: HttpClient, url: str, source: Path) -> None:
    service.faults.next("PutBlock", Fault.reset(), times=999)
    with pytest.raises(NetworkError):
        blob.upload(http.within(2.5), url, source, plan=PLAN)
    assert service.blobs.content == {}


@pytest.mark.parametrize("operation", ["PutBlock", "PutBlob", "PutBlockList"])
def test_only_created_is_a_success(
    service: ActionsService, http: HttpClient, url: str, source: Path, operation: str
) -> None:
    plan = None if operation == "PutBlob" else PLAN
    service.faults.next(operation, Fault.status(200), times=2)
    blob.upload(http, url, source, plan=plan)
    assert service.blobs.content["b"] == CONTENT
    service.faults.next(operation, Fault.not_json(), times=99)
    with pytest.raises(ProtocolError, match="answered with 200 where 201 is meant to be"):
        blob.upload(http, url, source, plan=plan)


@pytest.mark.parametrize("plan", [PLAN, None])
def test_what_arrives_damaged_is_sent_again(
    service: ActionsService, http: HttpClient, url: str, source: Path, plan: blob.UploadPlan | None
) -> None:
    service.blobs.digests = True
    service.faults.next("PutBlock", Fault.corrupted(), times=2)
    service.faults.next("PutBlob", Fault.corrupted(), times=2)
    blob.upload(http, url, source, plan=plan)
    assert service.blobs.content["b"] == CONTENT


def test_what_always_arrives_damaged_is_an_error(
    service: ActionsService, http: HttpClient, url: str, source: Path
) -> None:
    service.blobs.digests = True
    service.faults.next("PutBlob", Fault.corrupted(), times=99)
    with pytest.raises(DigestError, match="Put Blob: what arrived is not what was sent"):
        blob.upload(http, url, source)


def test_pieces_go_up_as_they_are_ready_and_are_ordered_at_the_end(
    service: ActionsService, http: HttpClient, url: str, source: Path
) -> None:
    with blob.BlockUpload(http, url, plan=PLAN) as pieces:
        last = pieces.put(FileSlice(source, 100, 5000))
        middle = pieces.put(b"middle" * 1000)
        nothing = pieces.put(b"")
        unused = pieces.put(b"left out")
        first = pieces.put(b"first")
        assert pieces.commit([first, nothing, middle, last, first]) == 2 * 5 + 6000 + 5000
    assert service.blobs.content["b"] == b"first" + b"middle" * 1000 + CONTENT[100:5100] + b"first"
    assert (unused.length, nothing.blocks) == (8, ())


def test_a_piece_is_on_its_way_before_the_next_is_made(service: ActionsService, http: HttpClient, url: str) -> None:
    with blob.BlockUpload(http, url, plan=blob.UploadPlan(parallel=1)) as pieces:
        made = [pieces.put(b"1"), pieces.put(b"2")]
        assert [request.body for request in service.requests][:1] == [b"1"]
        pieces.commit(made)


def test_no_more_pieces_are_held_than_can_be_on_their_way(http: HttpClient, url: str) -> None:
    lock = threading.Lock()
    held = most = 0

    class Counted(FileSlice):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal held
            yield b"x"
            with lock:
                held -= 1

    with blob.BlockUpload(http, url, plan=blob.UploadPlan(parallel=3)) as pieces:
        parts = []
        for _ in range(40):
            with lock:
                held += 1
                most = max(most, held)
            parts.append(pieces.put(Counted(Path("unused"), 0, 1)))
        pieces.commit(parts)
    assert most <= 4


def test_nothing_is_there_without_a_commit(service: ActionsService, http: HttpClient, url: str) -> None:
    with blob.BlockUpload(http, url) as pieces:
        pieces.put(b"some")
    with pytest.raises(ZeroDivisionError), blob.BlockUpload(http, url) as pieces:
        pieces.commit([pieces.put(b"more"), blob.Part((), 1 // 0)])
    assert service.blobs.content == {}
    assert service.calls["PutBlockList"] == 0


def test_a_failed_piece_is_told_with_the_next_one_or_at_the_end(
    service: ActionsService, http: HttpClient, url: str
) -> None:
    service.faults.next("PutBlock", Fault.status(400), times=99)
    with pytest.raises(HttpStatusError, match="answered 400"), blob.BlockUpload(http, url) as pieces:
        pieces.commit([pieces.put(b"some")])
    with pytest.raises(HttpStatusError, match="answered 400"), blob.BlockUpload(http, url, plan=PLAN) as pieces:
        pieces.commit([pieces.put(b"some") for _ in range(99)])
    assert service.calls["PutBlock"] < 20


def test_blocks_made_on_the_way_become_one_blob_in_their_order(
    service: ActionsService, http: HttpClient, url: str
) -> None:
    blob.upload_blocks(http, url, (bytes([number]) * number for number in range(1, 30)), parallel=4)
    assert service.blobs.content["b"] == b"".join(bytes([number]) * number for number in range(1, 30))
    blob.upload_blocks(http, url, [], parallel=4)
    assert service.blobs.content["b"] == b""


def test_one_at_a_time_arrives_in_order(service: ActionsService, http: HttpClient, url: str) -> None:
    blob.upload_blocks(http, url, [b"%d" % number for number in range(20)], parallel=1)
    assert [request.body for request in service.requests[:-1]] == [b"%d" % number for number in range(20)]


def test_a_deadline_that_has_passed_sends_nothing(service: ActionsService, http: HttpClient, url: str) -> None:
    late = http.stoppable()
    late.stop()
    with pytest.raises(DeadlineError), blob.BlockUpload(late, url) as pieces:
        pieces.commit([pieces.put(b"some")])
    assert service.requests == []
