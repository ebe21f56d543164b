from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.errors import (
    DeadlineError,
    DigestError,
    HttpStatusError,
    MissingEntryError,
    NetworkError,
    ProtocolError,
)
from checkpoint_action.toolkit.http import HttpClient, Limits, Retries
from tests.actions_service import ActionsService, Fault
from tests.actions_service.blobs import ranged
from tests.actions_service.messages import Reply, Request, Route

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.toolkit.clock import Clock

CONTENT = bytes(range(256)) * 40
PARTS = blob.DownloadPlan(part=1000, parallel=4)
ONE = blob.DownloadPlan(part=100_000)


@pytest.fixture
def url(service: ActionsService) -> str:
    service.blobs.content["b"] = CONTENT
    return service.blobs.sign(service.origin, "b", "r")


def ranges(service: ActionsService) -> list[str | None]:
    return [request.headers.get("range") for request in service.requests]


def test_a_download_is_moved_into_place(http: HttpClient, url: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    assert blob.download(http, url, target) == len(CONTENT)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 2000, 2001, len(CONTENT)])
def test_parts_of_any_number_make_the_whole(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path, size: int
) -> None:
    service.blobs.content["b"] = CONTENT[:size]
    assert blob.download(http, url, tmp_path / "target", plan=PARTS) == size
    assert (tmp_path / "target").read_bytes() == CONTENT[:size]
    assert service.calls["GetBlob"] == max(-(-size // 1000), 2 if size == 0 else 1)
    assert {request.method for request in service.requests} == {"GET"}


class InPairs:
    """Below ``/pairs``: the content, each part but the first when another is asked for at the same time."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2, timeout=30)

    def route(self, request: Request) -> Route | None:
        return Route("pairs", lambda: self.answer(request)) if request.path == "/pairs" else None

    def answer(self, request: Request) -> Reply:
        if request.headers["range"] != "bytes=0-999":
            self.barrier.wait()
        return ranged(request, CONTENT)


def test_parts_come_at_the_same_time(service: ActionsService, http: HttpClient, tmp_path: Path) -> None:
    service.parts.append(InPairs())
    blob.download(http, f"{service.origin}/pairs", tmp_path / "target", plan=PARTS)
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert ranges(service)[0] == "bytes=0-999"  # alone: its answer tells how much there is
    assert set(ranges(service)) == {f"bytes={start}-{start + 999}" for start in range(0, len(CONTENT), 1000)}


def test_a_broken_download_goes_on_where_it_broke(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.truncated(3000), times=3)
    service.faults.next("GetBlob", Fault.reset())
    assert blob.download(http, url, tmp_path / "target", plan=ONE) == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert ranges(service) == [f"bytes={start}-99999" for start in (0, 3000, 6000, 9000, 9000)]


@pytest.mark.parametrize("without_ranges", [False, True])
@pytest.mark.parametrize("broken", [Fault.truncated(500), Fault.truncated(0), Fault.reset(), Fault.status(503)])
def test_each_part_goes_on_where_it_broke(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path, broken: Fault, without_ranges: bool
) -> None:
    service.blobs.without_ranges = without_ranges
    service.faults.next("GetBlob", broken, times=3)
    assert blob.download(http, url, tmp_path / "target", plan=PARTS) == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT


def test_more_breaks_than_tries_do_no_harm_while_bytes_come(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.truncated(500), times=20)
    assert blob.download(http, url, tmp_path / "target", plan=ONE) == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT


@pytest.mark.parametrize("plan", [ONE, PARTS])
def test_a_download_that_gets_nowhere_ends_and_leaves_the_target_alone(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path, plan: blob.DownloadPlan
) -> None:
    (tmp_path / "target").write_bytes(b"old")
    service.faults.next("GetBlob", Fault.truncated(300))
    service.faults.next("GetBlob", Fault.truncated(0), times=99)
    with pytest.raises(NetworkError):
        blob.download(http, url, tmp_path / "target", plan=plan)
    assert (tmp_path / "target").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_download_out_of_time_does_not_wait(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path, clock: Clock
) -> None:
    service.faults.next("GetBlob", Fault.truncated(0), times=99)
    with pytest.raises(DeadlineError):
        blob.download(http.within(2.5), url, tmp_path / "target")
    assert sum(clock.sleeps) < 2.5


def test_a_store_that_falls_silent_is_asked_again(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path, clock: Clock
) -> None:
    http.limits = Limits(idle=0.2)
    service.faults.next("GetBlob", Fault.slow(2))
    blob.download(http, url, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert clock.sleeps == [1]


def test_a_wait_that_the_store_asks_for_is_capped(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path, clock: Clock
) -> None:
    service.faults.next("GetBlob", Fault.status(429, retry_after="7200"))
    blob.download(http.within(1000), url, tmp_path / "target")
    assert clock.sleeps == [60]


def test_an_expired_url_is_renewed_in_the_middle(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    service.blobs.expire_after(4000)
    renewals: list[str] = []

    def renew() -> str:
        renewals.append(service.blobs.sign(service.origin, "b", "r"))
        return renewals[-1]

    assert blob.download(http, url, tmp_path / "target", renew=renew, plan=ONE) == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert len(renewals) == 1
    assert ranges(service)[-1] == "bytes=4000-99999"


def test_one_renewal_serves_all_parts(service: ActionsService, http: HttpClient, url: str, tmp_path: Path) -> None:
    service.blobs.expire_after(400)
    renewals: list[str] = []

    def renew() -> str:
        renewals.append(service.blobs.sign(service.origin, "b", "r"))
        return renewals[-1]

    blob.download(http, url, tmp_path / "target", renew=renew, plan=PARTS)
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert len(renewals) == 1


def test_as_many_renewals_as_it_takes_while_bytes_come(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    renewals = 0

    def renew() -> str:
        nonlocal renewals
        renewals += 1
        service.blobs.expire_after(1000)
        return service.blobs.sign(service.origin, "b", "r")

    service.blobs.expire_after(1000)
    blob.download(http, url, tmp_path / "target", renew=renew, plan=ONE)
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert renewals == 10


def test_a_url_that_stays_refused_is_not_renewed_for_ever(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.status(403), times=99)
    with pytest.raises(HttpStatusError):
        blob.download(http, url, tmp_path / "target", renew=lambda: url)
    with pytest.raises(HttpStatusError):
        blob.download(http, url, tmp_path / "target")
    assert service.calls["GetBlob"] == 7


def test_a_failure_ends_the_waits_of_the_other_parts(service: ActionsService, tmp_path: Path) -> None:
    client = HttpClient(env={}, retries=Retries(retry_after_cap=3600))
    waiting = threading.Event()

    class Waits:
        """Asks the second part to come back in an hour, and then fails all others for good."""

        def route(self, request: Request) -> Route | None:
            if request.path != "/waits":
                return None
            return Route("waits", lambda: self.answer(request))

        def answer(self, request: Request) -> Reply:
            if request.headers["range"] == "bytes=0-999":
                return ranged(request, CONTENT)
            if not waiting.is_set():
                waiting.set()
                return Reply(503, b"", {"retry-after": "3600"})
            return Reply(400)

    service.parts.append(Waits())
    with pytest.raises(HttpStatusError, match="answered 400"):
        blob.download(client.within(7200), f"{service.origin}/waits", tmp_path / "target", plan=PARTS)
    client.close()


def test_what_renewing_raises_is_raised(service: ActionsService, http: HttpClient, url: str, tmp_path: Path) -> None:
    def gone() -> str:
        raise MissingEntryError("it is gone")

    service.blobs.expire_after(1500)
    with pytest.raises(MissingEntryError, match="it is gone"):
        blob.download(http, url, tmp_path / "target", renew=gone, plan=PARTS)
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.parametrize("told", ["", "bytes */6", "bytes 0-5/*", "items 0-5/6"])
def test_a_part_without_its_place_is_refused(
    service: ActionsService, http: HttpClient, tmp_path: Path, told: str
) -> None:
    with pytest.raises(ProtocolError, match="without saying where"):
        download_raw(service, http, tmp_path, Reply(206, b"abcdef", {"content-range": told}))


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


def test_the_headers_of_the_content_are_told(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    told: list[str] = []
    blob.download(http, url, tmp_path / "target", plan=PARTS, described=lambda headers: told.append(headers["etag"]))
    assert len(told) == 1


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


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://h/x?se=1&sig=a%2bb%3D&sp=r", ["a%2bb%3D", "a+b=", "a%2Bb%3D"]),
        ("https://h/x?sig=plain", ["plain"]),
        ("https://h/x?X-Amz-Signature=0af1&y=2", ["0af1"]),
        ("https://h/x?design=no", []),
    ],
)
def test_signatures_are_masked_in_each_form(url: str, masked: list[str]) -> None:
    seen: list[str] = []
    blob.mask_signature(url, seen.append)
    assert seen == masked


def test_a_full_disk_leaves_no_part_file(
    http: HttpClient, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Callable[..., None]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "replace", full)
    with pytest.raises(OSError, match="No space"):
        blob.download(http, url, tmp_path / "target")
    assert list(tmp_path.iterdir()) == []
