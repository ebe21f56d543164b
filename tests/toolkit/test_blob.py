from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.errors import DeadlineError, HttpStatusError, NetworkError, ProtocolError
from tests.actions_service import ActionsService, Fault
from tests.actions_service.messages import Reply, Request, Route

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.http import HttpClient
    from tests.toolkit.clock import Clock

CONTENT = bytes(range(256)) * 40
PLAN = blob.UploadPlan(single=1000, block=1000, parallel=4)


@pytest.fixture
def upload_url(service: ActionsService) -> str:
    return service.blobs.sign(service.origin, "b", "w")


@pytest.fixture
def download_url(service: ActionsService) -> str:
    service.blobs.content["b"] = CONTENT
    return service.blobs.sign(service.origin, "b", "r")


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_small_file_goes_as_one_blob(
    service: ActionsService, http: HttpClient, upload_url: str, source: Path, size: int
) -> None:
    source.write_bytes(CONTENT[:size])
    assert blob.upload(http, upload_url, source, plan=PLAN) == size
    assert service.blobs.content["b"] == CONTENT[:size]
    assert service.calls == {"PutBlob": 1}


@pytest.mark.parametrize("size", [1001, 2000, len(CONTENT)])
def test_a_larger_file_goes_as_blocks_in_order(
    service: ActionsService, http: HttpClient, upload_url: str, source: Path, size: int
) -> None:
    source.write_bytes(CONTENT[:size])
    assert blob.upload(http, upload_url, source, plan=PLAN) == size
    assert service.blobs.content["b"] == CONTENT[:size]
    assert service.calls == {"PutBlock": -(-size // 1000), "PutBlockList": 1}


def test_the_signed_query_is_kept_and_no_token_is_sent(
    service: ActionsService, http: HttpClient, upload_url: str, source: Path
) -> None:
    blob.upload(http, upload_url, source, plan=PLAN)
    signed = upload_url.removeprefix(service.origin)
    assert all(request.target.startswith(f"{signed}&comp=block") for request in service.requests)
    assert not any("authorization" in request.headers for request in service.requests)


@pytest.mark.parametrize("fault", [Fault.status(503), Fault.status(500), Fault.reset(), Fault.reset(handled=True)])
@pytest.mark.parametrize("operation", ["PutBlock", "PutBlob"])
def test_a_part_that_fails_is_sent_again(
    service: ActionsService, http: HttpClient, upload_url: str, source: Path, operation: str, fault: Fault
) -> None:
    service.faults.next(operation, fault, times=2)
    blob.upload(http, upload_url, source, plan=PLAN if operation == "PutBlock" else None)
    assert service.blobs.content["b"] == CONTENT


def test_a_refused_upload_leaves_no_blob(
    service: ActionsService, http: HttpClient, upload_url: str, source: Path
) -> None:
    service.blobs.expire_all()
    with pytest.raises(HttpStatusError, match="answered 403, AuthenticationFailed") as caught:
        blob.upload(http, upload_url, source, plan=PLAN)
    assert caught.value.code == "AuthenticationFailed"
    assert service.calls["PutBlock"] < 10
    assert service.blobs.content == {}


def test_a_download_is_moved_into_place(http: HttpClient, download_url: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    assert blob.download(http, download_url, target) == len(CONTENT)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_broken_download_goes_on_where_it_broke(
    service: ActionsService, http: HttpClient, download_url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.truncated(3000), times=3)
    service.faults.next("GetBlob", Fault.reset())
    assert blob.download(http, download_url, tmp_path / "target") == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT
    ranges = [request.headers.get("range") for request in service.requests]
    assert ranges == [None, "bytes=3000-", "bytes=6000-", "bytes=9000-", "bytes=9000-"]


def test_more_breaks_than_tries_do_no_harm_while_bytes_come(
    service: ActionsService, http: HttpClient, download_url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.truncated(500), times=20)
    assert blob.download(http, download_url, tmp_path / "target") == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT


def test_a_download_that_gets_nowhere_ends_and_leaves_the_target_alone(
    service: ActionsService, http: HttpClient, download_url: str, tmp_path: Path
) -> None:
    (tmp_path / "target").write_bytes(b"old")
    service.faults.next("GetBlob", Fault.truncated(3000))
    service.faults.next("GetBlob", Fault.truncated(0), times=99)
    with pytest.raises(NetworkError):
        blob.download(http, download_url, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_download_out_of_time_does_not_wait(
    service: ActionsService, http: HttpClient, download_url: str, tmp_path: Path, clock: Clock
) -> None:
    service.faults.next("GetBlob", Fault.truncated(0), times=99)
    with pytest.raises(DeadlineError):
        blob.download(http.within(2.5), download_url, tmp_path / "target")
    assert sum(clock.sleeps) < 2.5


def test_an_expired_url_is_renewed_in_the_middle(
    service: ActionsService, http: HttpClient, download_url: str, tmp_path: Path
) -> None:
    service.blobs.expire_after(4000)
    renewals: list[str] = []

    def renew() -> str:
        renewals.append(service.blobs.sign(service.origin, "b", "r"))
        return renewals[-1]

    assert blob.download(http, download_url, tmp_path / "target", renew=renew) == len(CONTENT)
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert len(renewals) == 1
    assert service.requests[-1].headers["range"] == "bytes=4000-"


def test_a_url_that_stays_refused_is_not_renewed_for_ever(
    service: ActionsService, http: HttpClient, download_url: str, tmp_path: Path
) -> None:
    service.faults.next("GetBlob", Fault.status(403), times=99)
    with pytest.raises(HttpStatusError):
        blob.download(http, download_url, tmp_path / "target", renew=lambda: download_url)
    with pytest.raises(HttpStatusError):
        blob.download(http, download_url, tmp_path / "target")


class Replies:
    """Below ``/raw``: one reply after the other."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def route(self, request: Request) -> Route | None:
        return Route("raw", lambda: self.replies.pop(0)) if request.path == "/raw" else None


def _download(service: ActionsService, http: HttpClient, folder: Path, *replies: Reply) -> bytes:
    service.parts.append(Replies(*replies))
    blob.download(http, f"{service.origin}/raw", folder / "target")
    return (folder / "target").read_bytes()


def test_a_server_without_ranges_is_read_from_the_start_again(
    service: ActionsService, http: HttpClient, tmp_path: Path
) -> None:
    assert _download(service, http, tmp_path, Reply(200, b"abcdef", cut_after=2), Reply(200, b"abcdef")) == b"abcdef"


@pytest.mark.parametrize(
    "headers",
    [{"etag": '"new"', "content-range": "bytes 2-5/6"}, {"etag": '"old"', "content-range": "bytes 2-7/8"}],
)
def test_other_content_in_the_middle_is_read_from_the_start(
    service: ActionsService, http: HttpClient, tmp_path: Path, headers: dict[str, str]
) -> None:
    first = Reply(200, b"abcdef", {"etag": '"old"'}, cut_after=2)
    assert _download(service, http, tmp_path, first, Reply(206, b"CDEF", headers), Reply(200, b"ABCDEF")) == b"ABCDEF"


def test_a_part_without_its_place_is_refused(service: ActionsService, http: HttpClient, tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="without saying where"):
        _download(service, http, tmp_path, Reply(200, b"abcdef", cut_after=2), Reply(206, b"cdef"))


def test_more_than_was_announced_is_refused(service: ActionsService, http: HttpClient, tmp_path: Path) -> None:
    first = Reply(200, b"abcdef", cut_after=2)
    with pytest.raises(ProtocolError, match="where 6 were announced"):
        _download(service, http, tmp_path, first, Reply(206, b"cdefgh", {"content-range": "bytes 2-5/6"}))


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
    http: HttpClient, download_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Callable[..., None]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "replace", full)
    with pytest.raises(OSError, match="No space"):
        blob.download(http, download_url, tmp_path / "target")
    assert list(tmp_path.iterdir()) == []
