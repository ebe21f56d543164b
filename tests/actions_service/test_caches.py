"""The loopback cache services answer as the protocols say, seen from the wire."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from tests.actions_service import ActionsService, make_token

if TYPE_CHECKING:
    from collections.abc import Iterator

TWIRP = "/twirp/github.actions.results.api.v1.CacheService/"
VERSION = "a" * 64


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as running:
        yield running


class Wire:
    """Requests with nothing in between."""

    def __init__(self, service: ActionsService, token: str | None = None) -> None:
        self._host = service.origin.removeprefix("http://")
        self._token = make_token() if token is None else token

    def send(self, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Make one request and return the status and the body."""
        connection = HTTPConnection(self._host, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, target, body, sent)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def twirp(self, method: str, **fields: Any) -> tuple[int, dict[str, Any]]:
        """Call a method of cache v2."""
        bearer = {"authorization": f"Bearer {self._token}"} if self._token else {}
        status, data = self.send("POST", TWIRP + method, json.dumps(fields).encode(), **bearer)
        answer = json.loads(data)
        assert isinstance(answer, dict)
        return status, answer

    def upload(self, url: str, content: bytes) -> int:
        target = url.removeprefix(f"http://{self._host}")
        return self.send("PUT", target, content, x_ms_blob_type="BlockBlob")[0]


def test_v2_speaks_at_the_root_and_to_bearers_only(service: ActionsService) -> None:
    assert Wire(service, token="").twirp("GetCacheEntryDownloadURL", key="k", version=VERSION)[0] == 401
    assert Wire(service).twirp("ListCacheEntries")[:1] == (404,)
    assert Wire(service).twirp("ListCacheEntries")[1]["code"] == "bad_route"
    assert Wire(service).send("GET", f"{TWIRP}GetCacheEntryDownloadURL")[0] in {404, 405}
    assert Wire(service).send("POST", f"/below{TWIRP}GetCacheEntryDownloadURL")[0] == 404


@pytest.mark.parametrize("camel", [False, True])
@pytest.mark.parametrize("size", ["5", 5])
def test_v2_reads_both_spellings_and_sizes_as_text_or_number(
    service: ActionsService, camel: bool, size: str | int
) -> None:
    wire = Wire(service)
    status, answer = wire.twirp("CreateCacheEntry", key="job-1", version=VERSION, unknown={"x": 1})
    assert (status, answer["ok"]) == (200, True)
    assert wire.upload(answer["signed_upload_url"], b"12345") == 201
    field = "sizeBytes" if camel else "size_bytes"
    status, answer = wire.twirp("FinalizeCacheEntryUpload", key="job-1", version=VERSION, **{field: size})
    assert (status, answer) == (200, {"ok": True, "entry_id": "1"})
    service.v2.camel_case = camel
    others = {"restoreKeys" if camel else "restore_keys": ["none", "job-"]}
    status, answer = wire.twirp("GetCacheEntryDownloadURL", key="other", version=VERSION, **others)
    assert answer["matchedKey" if camel else "matched_key"] == "job-1"
    assert "signedDownloadUrl" in answer if camel else "signed_download_url" in answer


def test_v2_keeps_a_reservation_to_itself_until_it_is_whole(service: ActionsService) -> None:
    wire = Wire(service)
    url = wire.twirp("CreateCacheEntry", key="job-1", version=VERSION)[1]["signed_upload_url"]
    miss = (200, {"ok": False})
    conflict = "cache entry with the same key, version, and scope already exists"
    assert wire.twirp("GetCacheEntryDownloadURL", key="job-1", version=VERSION) == miss
    taken = wire.twirp("CreateCacheEntry", key="job-1", version=VERSION)
    assert taken == (409, {"code": "already_exists", "msg": conflict})
    finalize = {"key": "job-1", "version": VERSION}
    bad_size = (400, {"code": "invalid_argument", "msg": "size invalid cache size value"})
    assert wire.twirp("FinalizeCacheEntryUpload", **finalize, size_bytes="0") == bad_size  # nothing came yet
    target = url.removeprefix(service.origin)
    assert wire.send("PUT", f"{target}&comp=block&blockid=YWE%3D", b"12345")[0] == 201
    assert wire.twirp("FinalizeCacheEntryUpload", **finalize, size_bytes="5") == bad_size  # no list came yet
    block_list = b"<BlockList><Latest>YWE=</Latest></BlockList>"
    assert wire.send("PUT", f"{target}&comp=blocklist", block_list)[0] == 201
    assert wire.twirp("FinalizeCacheEntryUpload", **finalize, size_bytes="4") == bad_size
    assert wire.twirp("GetCacheEntryDownloadURL", key="job-1", version=VERSION) == miss
    assert wire.twirp("FinalizeCacheEntryUpload", **finalize, size_bytes="5")[0] == 200
    assert wire.twirp("FinalizeCacheEntryUpload", key="none", version=VERSION, size_bytes="5")[1]["code"] == "not_found"
    assert wire.twirp("CreateCacheEntry", key="job-1", version=VERSION)[0] == 409
    assert wire.twirp("CreateCacheEntry", key="job-1", version="b" * 64)[0] == 200


def test_a_url_for_one_direction_does_not_serve_the_other(service: ActionsService) -> None:
    service.blobs.content["b"] = b"content"
    read, write = (service.blobs.sign("", "b", permission) for permission in "rw")
    wire = Wire(service)
    assert wire.send("GET", read) == (200, b"content")
    assert wire.send("GET", write)[0] == 403
    assert wire.send("PUT", read, b"x", x_ms_blob_type="BlockBlob")[0] == 403
    assert wire.send("GET", read, authorization="Bearer x")[0] == 403
    status, body = wire.send("GET", read.replace("sig=", "sig=x"))
    assert (status, b"<Code>AuthenticationFailed</Code>" in body) == (403, True)
    service.blobs.expire_all()
    assert wire.send("GET", read)[0] == 403


def test_v1_is_found_below_its_path_and_lists_where_a_server_does(service: ActionsService) -> None:
    wire = Wire(service)
    base = service.cache_url.removeprefix(service.origin) + "_apis/artifactcache/"
    bearer = {"authorization": f"Bearer {make_token()}"}
    assert wire.send("GET", f"/_apis/artifactcache/cache?keys=k&version={VERSION}", b"", **bearer)[0] == 404
    assert wire.send("GET", f"{base}cache?keys=k&version={VERSION}")[0] == 401
    assert wire.send("GET", f"{base}cache?keys=k&version={VERSION}", b"", **bearer)[0] == 204
    reserved = json.dumps({"key": "job-1", "version": VERSION}).encode()
    assert wire.send("POST", f"{base}caches", reserved, **bearer) == (201, b'{"cacheId": 1}')
    assert wire.send("POST", f"{base}caches", reserved, **bearer)[0] == 409
    for start, piece in ((3, b"45"), (0, b"xxx"), (0, b"123")):  # any order; what is sent again counts
        place = f"bytes {start}-{start + len(piece) - 1}/*"
        assert wire.send("PATCH", f"{base}caches/1", piece, content_range=place, **bearer)[0] == 204
    assert wire.send("POST", f"{base}caches/1", b'{"size": 5}', **bearer)[0] == 204
    assert wire.send("POST", f"{base}caches/1", b'{"size": 5}', **bearer)[0] == 400
    listed = json.loads(wire.send("GET", f"{base}caches?key=job", b"", **bearer)[1])
    assert [(one["cacheKey"], one["scope"]) for one in listed["artifactCaches"]] == [("job-1", "refs/heads/main")]
    location = json.loads(wire.send("GET", f"{base}cache?keys=job&version={VERSION}", b"", **bearer)[1])[
        "archiveLocation"
    ]
    assert wire.send("GET", location.removeprefix(service.origin)) == (200, b"12345")
    service.v1.manner = "act"
    assert wire.send("GET", f"{base}caches?key=job")[0] == 405
    assert wire.send("POST", f"{base}caches", reserved)[0] == wire.send("POST", f"{base}caches", reserved)[0] == 200


def test_no_more_uploads_are_taken_in_a_minute_than_github_takes(service: ActionsService) -> None:
    now = 0.0
    service.entries.uploads_per_minute, service.entries.clock = 200, lambda: now
    wire = Wire(service)
    for number in range(200):
        now = number / 10
        assert wire.twirp("CreateCacheEntry", key=f"job-{number}", version=VERSION)[0] == 200
    assert wire.twirp("CreateCacheEntry", key="job-200", version=VERSION)[0] == 429
    now = 60.05
    assert wire.twirp("CreateCacheEntry", key="job-200", version=VERSION)[0] == 200
    assert wire.twirp("CreateCacheEntry", key="job-201", version=VERSION)[0] == 429
