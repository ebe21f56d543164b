"""Blobs in the real Azurite; and that the loopback service answers as it does."""

from __future__ import annotations

import base64
import itertools
import random
import time
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.errors import HttpStatusError
from checkpoint_action.toolkit.exchange import FileSlice
from checkpoint_action.toolkit.http import HttpClient, Retries
from tests.actions_service import ActionsService

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.peers.azurite.server import Azurite

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONTENT = random.Random(1).randbytes(3_000_001)
BLOCKS = blob.UploadPlan(single=0, block=400_000, parallel=4)
PARTS = blob.DownloadPlan(part=300_000, parallel=4)
numbers = itertools.count()


@pytest.fixture
def http() -> Iterator[HttpClient]:
    client = HttpClient(env={}, retries=Retries(tries=3))
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    return f"blob-{next(numbers)}"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("size", [0, 1, len(CONTENT)])
@pytest.mark.parametrize("plan", [None, BLOCKS])
def test_what_goes_up_comes_down(
    azurite: Azurite, http: HttpClient, name: str, source: Path, size: int, plan: blob.UploadPlan | None
) -> None:
    source.write_bytes(CONTENT[:size])
    for _ in range(2):  # over what is there, too
        assert blob.upload(http, azurite.sign(name, "cw"), source, plan=plan, content_type="application/x-test") == size
    told: list[Any] = []
    target = source.with_name("target")
    url = azurite.sign(name, "r")
    assert blob.download(http, url, target, plan=PARTS, described=told.append) == size
    assert target.read_bytes() == CONTENT[:size]
    assert told[0]["content-type"] == "application/x-test"


def test_digests_are_given_and_looked_at(azurite: Azurite, http: HttpClient, name: str, source: Path) -> None:
    blob.upload(http, azurite.sign(name, "cw"), source)
    told: list[Any] = []
    blob.download(http, azurite.sign(name, "r"), source.with_name("target"), described=told.append)
    assert "content-md5" in told[0] or "x-ms-blob-content-md5" in told[0]


def test_pieces_are_ordered_at_the_end(azurite: Azurite, http: HttpClient, name: str, source: Path) -> None:
    with blob.BlockUpload(http, azurite.sign(name, "cw"), plan=BLOCKS) as pieces:
        rest = pieces.put(FileSlice(source, 1000, len(CONTENT) - 1000))
        pieces.put(b"of no use")
        pieces.commit([pieces.put(CONTENT[:1000]), rest])
    assert blob.read_range(http, azurite.sign(name, "r"), 0, len(CONTENT) + 1).data == CONTENT


@pytest.mark.parametrize(("start", "length"), [(0, 1), (999, 100_000), (3_000_000, 50)])
def test_ranges_are_read(azurite: Azurite, http: HttpClient, name: str, source: Path, start: int, length: int) -> None:
    blob.upload(http, azurite.sign(name, "cw"), source)
    excerpt = blob.read_range(http, azurite.sign(name, "r"), start, length)
    assert excerpt == blob.Excerpt(CONTENT[start : start + length], len(CONTENT))


def test_nothing_is_behind_the_end(azurite: Azurite, http: HttpClient, name: str, source: Path) -> None:
    blob.upload(http, azurite.sign(name, "cw"), source)
    assert blob.read_range(http, azurite.sign(name, "r"), len(CONTENT) + 5, 5).data == b""


def test_a_signature_that_expires_under_way_is_renewed(
    azurite: Azurite, http: HttpClient, name: str, source: Path
) -> None:
    blob.upload(http, azurite.sign(name, "cw"), source)
    renewals: list[str] = []

    def renew() -> str:
        renewals.append(azurite.sign(name, "r"))
        return renewals[-1]

    def until_expired(_headers: object) -> None:
        time.sleep(3.5)  # the signature's time is in whole seconds

    target = source.with_name("target")
    url = azurite.sign(name, "r", 3)
    blob.download(http, url, target, renew=renew, described=until_expired, plan=blob.DownloadPlan(300_000, 1))
    assert target.read_bytes() == CONTENT
    assert len(renewals) == 1


def test_what_a_signature_does_not_open_is_refused(azurite: Azurite, http: HttpClient, name: str, source: Path) -> None:
    for url in (
        azurite.sign(name, "r"),
        azurite.sign(name, "cw", -5),
        azurite.sign("other", "cw").replace("other", name),
    ):
        with pytest.raises(HttpStatusError, match="answered 403, Auth"):
            blob.upload(http, url, source)
    blob.upload(http, azurite.sign(name, "cw"), source)
    for url in (azurite.sign(name, "cw"), azurite.sign(name, "r", -5)):
        with pytest.raises(HttpStatusError, match="answered 403, Auth"):
            blob.download(http, url, source.with_name("target"))
    with pytest.raises(HttpStatusError, match="answered 404, BlobNotFound"):
        blob.download(http, azurite.sign("never", "r"), source.with_name("target"))


def block_id(text: str) -> str:
    return base64.b64encode(text.encode()).decode().replace("=", "%3D")


def block_list(*ids: str, kind: str = "Latest") -> bytes:
    items = "".join(f"<{kind}>{base64.b64encode(one.encode()).decode()}</{kind}>" for one in ids)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{items}</BlockList>'.encode()


BLOB = {"x-ms-blob-type": "BlockBlob"}
TALK: list[tuple[str, str, bytes, dict[str, str]]] = [
    ("GET", "", b"", {}),
    ("PUT", "", b"0123456789", BLOB),
    ("GET", "", b"", {"range": "bytes=0-3"}),
    ("GET", "", b"", {"range": "bytes=8-99"}),
    ("GET", "", b"", {"range": "bytes=12-19"}),
    ("GET", "", b"", {"x-ms-range": "bytes=2-4"}),
    ("HEAD", "", b"", {}),
    ("PUT", f"comp=block&blockid={block_id('aa')}", b"AA", {}),
    ("PUT", f"comp=block&blockid={block_id('bbb')}", b"BBB", {}),
    ("PUT", f"comp=block&blockid={block_id('bb')}", b"old", {}),
    ("PUT", f"comp=block&blockid={block_id('bb')}", b"BB", {}),
    ("GET", "", b"", {}),
    ("PUT", "comp=blocklist", block_list("aa", "cc"), {}),
    ("GET", "", b"", {}),
    ("PUT", "comp=blocklist", block_list("bb", "aa", "bb"), {}),
    ("GET", "", b"", {}),
    ("PUT", "comp=blocklist", block_list("bb", "aa", "bb"), {}),  # its answer was lost
    ("PUT", "comp=blocklist", block_list("aa", kind="Uncommitted"), {}),
    ("PUT", "comp=blocklist", block_list("aa", kind="Committed"), {}),
    ("GET", "", b"", {}),
    ("PUT", "comp=blocklist", block_list(), {}),
    ("GET", "", b"", {}),
    ("GET", "", b"", {"range": "bytes=0-3"}),
    ("PUT", "", b"", BLOB),
    ("GET", "", b"", {}),
]


def answers(read: str, write: str) -> list[tuple[object, ...]]:
    heard: list[tuple[object, ...]] = []
    for method, query, body, headers in TALK:
        host, _, target = (write if method == "PUT" else read).removeprefix("http://").partition("/")
        connection = HTTPConnection(host, timeout=60)
        sent = {"x-ms-version": "2021-12-02", "content-length": str(len(body)), **headers}
        connection.request(method, f"/{target}&{query}" if query else f"/{target}", body=body, headers=sent)
        answer = connection.getresponse()
        data = answer.read()
        told = answer.getheader("content-range"), answer.getheader("x-ms-error-code")
        heard.append((method, query, answer.status, *told, data if answer.status < 300 else b""))
        connection.close()
    return heard


def test_the_loopback_service_answers_as_azurite_does(azurite: Azurite, name: str) -> None:
    with ActionsService.running() as service:
        read, write = (service.blobs.sign(service.origin, name, permission) for permission in "rw")
        ours = answers(read, write)
        theirs = answers(azurite.sign(name, "r"), azurite.sign(name, "cw"))
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []
