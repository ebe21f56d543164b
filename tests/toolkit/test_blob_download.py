"""Downloads of whole blobs that break, expire and go on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.errors import (
    DeadlineError,
    HttpStatusError,
    MissingEntryError,
    NetworkError,
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


def test_the_headers_of_the_content_are_told(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    told: list[str] = []
    blob.download(http, url, tmp_path / "target", plan=PARTS, described=lambda headers: told.append(headers["etag"]))
    assert len(told) == 1


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
