"""Fuzzed: what the cache, artifact and REST services and the stores behind them answer."""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.artifact_messages import Artifact, FindBy
from checkpoint_action.toolkit.artifact_rest import ArtifactRest
from checkpoint_action.toolkit.artifact_transfer import fetch
from checkpoint_action.toolkit.artifact_v4 import ArtifactV4
from checkpoint_action.toolkit.cache_v1 import CacheV1
from checkpoint_action.toolkit.cache_v2 import CacheV2
from checkpoint_action.toolkit.commands import encode
from checkpoint_action.toolkit.errors import ToolkitError
from checkpoint_action.toolkit.http import HttpClient, Limits, Retries
from checkpoint_action.toolkit.rest import RestClient
from checkpoint_action.toolkit.rest_caches import cache_usage, list_caches
from checkpoint_action.toolkit.runtime import Runtime
from tests.torture.fuzz_target import Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["TARGETS"]

_ADDRESS = "http://service.test"
"""No such host: all calls go through a proxy, which is the server that gives the fuzzed answers."""

_CLAIMS = base64.urlsafe_b64encode(json.dumps({"scp": "Actions.Results:run:job"}).encode()).decode().rstrip("=")
_ENVIRONMENT = {
    "ACTIONS_RUNTIME_TOKEN": f"a.{_CLAIMS}.c",
    "ACTIONS_RESULTS_URL": _ADDRESS + "/",
    "ACTIONS_CACHE_SERVICE_V2": "1",
}
_ARTIFACT = Artifact("logs", 7, run_backend_id="run", job_backend_id="job")


class _Answers:
    """A server that gives the same bytes to whoever asks."""

    def __init__(self) -> None:
        self.answer = b""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection, suppress(OSError):
                connection.settimeout(5)
                if self._read(connection):
                    connection.sendall(self.answer)

    @staticmethod
    def _read(connection: socket.socket) -> bool:
        """Read all of a request, so that nothing is reset when the connection is closed; whether there was one."""
        asked, wanted = b"", 0
        while not wanted or len(asked) < wanted:
            more = connection.recv(1 << 16)
            if not more:
                return False
            asked += more
            head, end, _ = asked.partition(b"\r\n\r\n")
            if end and not wanted:
                length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
                wanted = len(head) + 4 + (int(length[1]) if length else 0)
        return True


def _service(folder: Path) -> Callable[[bytes], bool]:
    """The first byte says which call is answered; what follows is a JSON body, or a whole answer (``HTTP/``)."""
    server = _Answers()
    env = {"HTTP_PROXY": server.address, "HTTPS_PROXY": server.address}
    http = HttpClient(
        env=env,
        limits=Limits(connect=5, idle=5, total=8),
        retries=Retries(tries=2, first=0, retry_after_cap=0),
        jitter=lambda: 0.0,
        sleep=lambda _seconds: None,
    )
    masked: list[str] = []
    calls = _calls(http, folder, masked.append)

    def check(data: bytes) -> bool:
        answer = data[1:]
        if not answer.startswith(b"HTTP/"):
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            answer = head % len(answer) + answer
        server.answer = answer
        masked.clear()
        try:
            calls[(data[0] if data else 0) % len(calls)]()
        except ToolkitError as error:
            said = str(error)
            assert not {*"\r\n"} & {*said}, f"an error of several lines: {said!r}"
            encode(said)
            return False
        finally:
            for path in folder.iterdir():
                if path.name != "source":
                    path.unlink()
            for text in masked:
                encode(text)
        return True

    return check


def _calls(http: HttpClient, folder: Path, mask: Callable[[str], None]) -> list[Callable[[], object]]:
    """All that the answers are read by."""
    source, target = folder / "source", folder / "target"
    source.write_bytes(b"0123456789" * 10)
    plan = blob.UploadPlan(single=50, block=50, parallel=2)
    parts = blob.DownloadPlan(part=30, parallel=2)
    runtime = Runtime.resolve(_ENVIRONMENT)
    v2 = CacheV2(http, _ADDRESS, "token", mask=mask, plan=plan)
    v1 = CacheV1(http, _ADDRESS + "/", "token", mask=mask, plan=plan)
    v4 = ArtifactV4(http, runtime, mask=mask)
    listed = ArtifactRest(http, FindBy("owner/name", 1, "token", _ADDRESS), mask=mask)
    rest = RestClient(http, repository="owner/name", token="token", api_url=_ADDRESS)

    def resolve() -> Runtime:
        token = http.request("GET", url, label="x").body.decode("latin-1")
        return Runtime.resolve({**_ENVIRONMENT, "ACTIONS_RUNTIME_TOKEN": token})

    url = f"{_ADDRESS}/blob?sig=secret"
    return [
        lambda: v2.lookup(["key", "ke"], "0" * 64),
        lambda: v2.save("key", "0" * 64, source),
        lambda: v1.lookup(["key", "ke"], "0" * 64),
        lambda: v1.save("key", "0" * 64, source),
        lambda: v4.create("logs", mime_type="text/plain"),
        lambda: v4.finalize("logs", size=1, digest="sha256:0"),
        v4.find,
        lambda: v4.locate(_ARTIFACT),
        lambda: v4.delete(_ARTIFACT),
        listed.find,
        lambda: listed.locate(_ARTIFACT),
        lambda: list_caches(rest),
        lambda: cache_usage(rest),
        lambda: blob.download(http, url, target, renew=lambda: url, plan=parts),
        lambda: blob.read_range(http, url, 10, 20),
        lambda: fetch(http, listed, _ARTIFACT, target, plan=parts),
        resolve,
    ]


def _seeds() -> list[bytes]:
    signed = "http://blob.test/x?sig=abc%2Bd&se=1"
    artifact = {
        "name": "logs",
        "database_id": "7",
        "size": "100",
        "created_at": "2026-01-01T00:00:00.123Z",
        "digest": "sha256:0",
        "workflow_run_backend_id": "run",
        "workflow_job_run_backend_id": "job",
    }
    cache = {"id": 1, "key": "k", "ref": "refs/heads/main", "version": "v", "size_in_bytes": 1, "created_at": "x"}
    bodies: list[object] = [
        {"ok": True, "signed_download_url": signed, "matched_key": "key"},
        {"ok": True, "signed_upload_url": signed, "entry_id": "7"},
        {"archiveLocation": signed, "cacheKey": "key"},
        {"cacheId": 7},
        {"ok": True, "signed_upload_url": signed},
        {"ok": True, "artifact_id": "7"},
        {"artifacts": [artifact, artifact]},
        {"signed_url": signed},
        {"ok": True, "artifact_id": "7"},
        {"total_count": 1, "artifacts": [{"id": 7, "name": "logs", "size_in_bytes": 1, "expired": False}]},
        {},
        {"total_count": 250, "actions_caches": [cache] * 3},
        {"active_caches_size_in_bytes": 1, "active_caches_count": 2},
    ]
    seeds = [bytes([number]) + json.dumps(body).encode() for number, body in enumerate(bodies)]
    refused = b'{"ok":false,"message":"cache write denied: x","code":"not_found"}'
    seeds += [bytes([number]) + refused for number in (0, 1, 3)]
    seeds += [bytes([number]) + b"HTTP/1.1 " + answer for answer in _ANSWERS for number in (0, 9, 10, 13, 14, 15)]
    return [*seeds, b"\x10" + _ENVIRONMENT["ACTIONS_RUNTIME_TOKEN"].encode()]


_NAMED = b'Content-Disposition: attachment; filename="a.zip"\r\nContent-Type: application/zip\r\n'
_USED_UP = b"X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 99999999999\r\n"
_ANSWERS = [
    b'206 Partial\r\nContent-Range: bytes 0-29/60\r\nContent-Length: 30\r\nETag: "a"\r\nContent-MD5: x\r\n\r\n'
    + b"x" * 30,
    b"200 OK\r\n" + _NAMED + b"Content-Length: 10\r\n\r\n0123456789",
    b"302 Found\r\nLocation: http://blob.test/y\r\nContent-Length: 0\r\n\r\n",
    b"429 Too Many\r\nRetry-After: 5\r\nContent-Length: 2\r\n\r\n{}",
    b"403 No\r\n" + _USED_UP + b'Content-Length: 21\r\n\r\n{"message":"no more"}',
    b"503 Out\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"416 Range\r\nContent-Length: 0\r\n\r\n",
]
_WORDS = [
    *(b"HTTP/1.1 206 x\r\n", b"HTTP/1.1 301 x\r\n", b"Content-Range: bytes ", b"Content-Length: ", b"Retry-After: "),
    *(b"Location: ", b"ETag: ", b"Transfer-Encoding: chunked\r\n", b"Content-Type: text/html\r\n", b"\r\n\r\n"),
    *(b"http://[", b"?sig=", b'"signed_url"', b'"message"', b'"id":', b'"id":[],', b"cache read denied:"),
    *(b"insufficient usage", b"9" * 4500),
]

TARGETS = (Target("service", _service, _seeds, _WORDS),)
