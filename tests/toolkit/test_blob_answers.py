"""Answers that are not what was asked for, and ranges of a blob."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.errors import (
    DigestError,
    HttpStatusError,
    NetworkError,
    ProtocolError,
)
from tests.actions_service import ActionsService, Fault
from tests.actions_service.messages import Reply, Request, Route

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.toolkit.http import HttpClient


CONTENT = bytes(range(256)) * 40
PARTS = blob.DownloadPlan(part=1000, parallel=4)
ONE = blob.DownloadPlan(part=100_000)


@pytest.fixture
def url(service: ActionsService) -> str:
    service.blobs.content["b"] = CONTENT
    return service.blobs.sign(service.origin, "b", "r")


def ranges(service: ActionsService) -> list[str | None]:
    return [request.headers.get("range") for request in service.requests]


class Replies:
    """Below ``/raw``: one reply after the other."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def route(self, request: Request) -> Route | None:
        return Route("raw", lambda: self.replies.pop(0)) if request.path == "/raw" else None


def download_raw(service: ActionsService, http: HttpClient, folder: Path, *replies: Reply) -> bytes:
    service.parts.append(Replies(*replies))
    blob.download(http, f"{service.origin}/raw", folder / "target", plan=ONE)
    return (folder / "target").read_bytes()


def test_a_server_without_ranges_is_read_from_the_start_again(
    service: ActionsService, http: HttpClient, tmp_path: Path
) -> None:
    first, again = Reply(200, b"abcdef", cut_after=2), Reply(200, b"abcdef")
    assert download_raw(service, http, tmp_path, first, again) == b"abcdef"
    assert ranges(service) == ["bytes=0-99999", "bytes=2-"]


@pytest.mark.parametrize(
    "again",
    [
        Reply(206, b"CDEF", {"etag": '"new"', "content-range": "bytes 2-5/6"}),
        Reply(206, b"CDEFGH", {"etag": '"old"', "content-range": "bytes 2-7/8"}),
        Reply(200, b"ABCDEF", {"etag": '"new"'}),
    ],
)
def test_other_content_in_the_middle_is_read_from_the_start(
    service: ActionsService, http: HttpClient, tmp_path: Path, again: Reply
) -> None:
    first = Reply(200, b"abcdef", {"etag": '"old"'}, cut_after=2)
    assert download_raw(service, http, tmp_path, first, again, Reply(200, b"ABCDEF")) == b"ABCDEF"


def test_content_that_never_stays_the_same_is_an_error(
    service: ActionsService, http: HttpClient, tmp_path: Path
) -> None:
    pairs = []
    for _ in range(3):
        pairs.append(Reply(200, b"abcdef", {"etag": '"old"'}, cut_after=2))
        pairs.append(Reply(206, b"CDEF", {"etag": '"new"', "content-range": "bytes 2-5/6"}))
    with pytest.raises(ProtocolError, match="other content"):
        download_raw(service, http, tmp_path, *pairs)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("told", ["", "bytes */6", "bytes 0-5/*", "items 0-5/6", f"bytes 0-{'9' * 4400}/6"])
def test_a_part_without_its_place_is_refused(
    service: ActionsService, http: HttpClient, tmp_path: Path, told: str
) -> None:
    with pytest.raises(ProtocolError, match="without saying where"):
        download_raw(service, http, tmp_path, Reply(206, b"abcdef", {"content-range": told}))


def test_a_length_that_nothing_has_is_refused(service: ActionsService, http: HttpClient, tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="a length of 4400 digits"):
        download_raw(service, http, tmp_path, Reply(200, b"abc", {"content-length": "9" * 4400}, cut_after=3))


def test_another_part_than_the_one_asked_for_is_refused(
    service: ActionsService, http: HttpClient, tmp_path: Path
) -> None:
    other = Reply(206, b"def", {"content-range": "bytes 3-5/6"})
    with pytest.raises(ProtocolError, match="from byte 3 on, not from 2"):
        download_raw(service, http, tmp_path, Reply(200, b"abcdef", cut_after=2), other)


@pytest.mark.parametrize(
    "again",
    [
        Reply(206, b"cdefgh", {"content-range": "bytes 2-5/6"}),
        Reply(206, b"cd", {"content-range": "bytes 2-5/6"}),
        Reply(206, b"cdefgh", {"content-range": "bytes 2-7/6"}),
    ],
)
def test_more_or_less_than_was_announced_is_refused(
    service: ActionsService, http: HttpClient, tmp_path: Path, again: Reply
) -> None:
    with pytest.raises(ProtocolError, match=r"brought \d bytes where \d were announced"):
        download_raw(service, http, tmp_path, Reply(200, b"abcdef", cut_after=2), again)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("plan", [ONE, PARTS])
@pytest.mark.parametrize("without_ranges", [False, True])
def test_what_came_damaged_is_fetched_again(
    service: ActionsService,
    http: HttpClient,
    url: str,
    tmp_path: Path,
    plan: blob.DownloadPlan,
    without_ranges: bool,
) -> None:
    service.blobs.digests, service.blobs.without_ranges = True, without_ranges
    service.faults.next("GetBlob", Fault.corrupted())
    assert blob.download(http, url, tmp_path / "target", plan=plan) == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT


def test_what_always_comes_damaged_is_an_error(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    service.blobs.digests = True
    service.faults.next("GetBlob", Fault.corrupted(), times=99)
    with pytest.raises(DigestError, match="not the digest"):
        blob.download(http, url, tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("told", ["", "0123456789abcdef0123456789abcdef", "md5"])
def test_what_is_no_digest_is_not_compared(
    service: ActionsService, http: HttpClient, tmp_path: Path, told: str
) -> None:
    assert download_raw(service, http, tmp_path, Reply(200, b"abcdef", {"content-md5": told})) == b"abcdef"


def test_that_there_is_nothing_is_not_taken_from_a_refused_range(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.status(416))
    assert blob.download(http, url, tmp_path / "target") == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT


def test_a_page_in_place_of_the_content_is_not_taken_for_it(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.not_json(), times=3)
    blob.download(http, url, tmp_path / "target", plan=PARTS)
    assert (tmp_path / "target").read_bytes() == CONTENT
    service.faults.next("GetBlob", Fault.not_json(), times=99)
    with pytest.raises(NetworkError, match="a page for people"):
        blob.download(http, url, tmp_path / "target", plan=PARTS)


@pytest.mark.parametrize("without_ranges", [False, True])
@pytest.mark.parametrize(("start", "length"), [(0, 10), (0, 1), (500, 3000), (10_000, 240), (10_239, 99), (0, 99_999)])
def test_a_range_is_read_and_no_more(
    service: ActionsService, http: HttpClient, url: str, start: int, length: int, without_ranges: bool
) -> None:
    service.blobs.without_ranges = without_ranges
    excerpt = blob.read_range(http, url, start, length)
    assert excerpt.data == CONTENT[start : start + length]
    assert excerpt.total == len(CONTENT)
    assert service.calls["GetBlob"] == 1


def test_nothing_is_behind_the_end(service: ActionsService, http: HttpClient, url: str) -> None:
    assert blob.read_range(http, url, len(CONTENT), 10) == blob.Excerpt(b"", None)
    service.blobs.content["b"] = b""
    assert blob.read_range(http, url, 0, 10) == blob.Excerpt(b"", 0)


def test_a_range_is_continued_and_its_address_renewed(service: ActionsService, http: HttpClient, url: str) -> None:
    service.faults.next("GetBlob", Fault.truncated(300), times=2)
    service.blobs.expire_after(300)
    renewed = service.blobs.sign(service.origin, "b", "r")
    assert blob.read_range(http, url, 100, 2000, renew=lambda: renewed).data == CONTENT[100:2100]


def test_a_part_of_a_range_is_not_taken_for_all_there_is(service: ActionsService, http: HttpClient, url: str) -> None:
    service.faults.next("GetBlob", Fault.truncated(300))
    service.faults.next("GetBlob", Fault.status(416))
    with pytest.raises(HttpStatusError, match="answered 416"):
        blob.read_range(http, url, 100, 2000)


def test_what_follows_a_range_is_not_waited_for(service: ActionsService, http: HttpClient, url: str) -> None:
    service.blobs.without_ranges = True
    service.faults.next("GetBlob", Fault.truncated(5000))
    assert blob.read_range(http, url, 100, 200).data == CONTENT[100:300]
    assert service.calls["GetBlob"] == 1


def test_a_range_of_other_content_is_an_error(service: ActionsService, http: HttpClient) -> None:
    first = Reply(206, b"abcdef", {"etag": '"old"', "content-range": "bytes 0-5/9"}, cut_after=2)
    other = Reply(206, b"cdef", {"etag": '"new"', "content-range": "bytes 2-5/9"})
    service.parts.append(Replies(first, other))
    with pytest.raises(ProtocolError, match="other content"):
        blob.read_range(http, f"{service.origin}/raw", 0, 6)
