"""The service as a whole, on a port of this machine."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from tests.actions_service.artifact_act import ArtifactActService
from tests.actions_service.artifact_store import ArtifactStore
from tests.actions_service.artifact_v4 import ArtifactService
from tests.actions_service.blobs import Blobs
from tests.actions_service.cache_v1 import CacheV1Service
from tests.actions_service.cache_v2 import CacheV2Service
from tests.actions_service.entries import Entries
from tests.actions_service.faults import Fault, FaultPlan
from tests.actions_service.messages import Reply, Request
from tests.actions_service.rest import RestService
from tests.actions_service.tokens import make_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.actions_service.messages import Route, Service

__all__ = ["ActionsService"]

_CACHE_PATH = "/0123456789abcdef0123456789abcdef/"


class ActionsService:
    """All parts behind one address; :meth:`running` starts them.

    Further parts: append a :class:`~tests.actions_service.messages.Service` to ``parts``.

    :ivar faults: what is to go wrong.
    :ivar requests: all that came in, oldest first.
    :ivar calls: how often each operation was asked for, faults included.
    """

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.actions = self
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.cache_url = f"{self.origin}{_CACHE_PATH}"
        self.faults = FaultPlan()
        self.requests: list[Request] = []
        self.calls: Counter[str] = Counter()
        self.entries = Entries()
        self.blobs = Blobs()
        self.v2 = CacheV2Service(self.entries, self.blobs, self.origin)
        self.v1 = CacheV1Service(self.entries, self.origin, _CACHE_PATH)
        self.artifact_store = ArtifactStore(self.blobs)
        self.artifacts = ArtifactService(self.artifact_store, self.blobs, self.origin)
        self.artifacts_of_act = ArtifactActService(self.origin)
        self.rest = RestService(self.entries, self.artifact_store, self.blobs, self.origin)
        self.parts: list[Service] = [self.v2, self.v1, self.artifacts_of_act, self.artifacts, self.rest, self.blobs]

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[ActionsService]:
        """A service that answers until the block ends."""
        service = cls()
        thread = threading.Thread(target=service._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            service._server.shutdown()
            service._server.server_close()
            thread.join()

    def env(self, service: str = "v2", *, token: str | None = None) -> dict[str, str]:
        """The variables that a job gets: ``v2`` as on github.com, ``v1`` as on an enterprise server, or ``act``."""
        token = make_token() if token is None else token
        if service == "v2":
            return {
                "ACTIONS_RUNTIME_TOKEN": token,
                "ACTIONS_RESULTS_URL": f"{self.origin}/",
                "ACTIONS_CACHE_SERVICE_V2": "True",
                "GITHUB_SERVER_URL": "https://github.com",
            }
        if service == "v1":
            return {
                "ACTIONS_RUNTIME_TOKEN": token,
                "ACTIONS_CACHE_URL": self.cache_url,
                "GITHUB_SERVER_URL": "https://github.example.com",
            }
        return {"ACTIONS_CACHE_URL": self.cache_url, "GITHUB_SERVER_URL": "https://github.com", "ACT": "true"}

    def answer(self, request: Request) -> tuple[Reply, Fault | None]:
        self.requests.append(request)
        part, route = self._route(request)
        if part is None or route is None:
            return Reply(404, b"404 page not found\n", {"content-type": "text/plain"}), None
        self.calls[route.operation] += 1
        fault = self.faults.take(route.operation)
        if fault is None:
            return route.answer(), None
        if fault.kind == "corrupted" and request.body:
            route = part.route(replace(request, body=_flipped(request.body))) or route
        reply = route.answer() if fault.handled else fault.reply
        if fault.kind == "corrupted" and not request.body:
            reply.body = _flipped(reply.body)
        return (fault.reply if fault.kind == "reply" else reply), fault

    def early_fault(self, request: Request) -> Fault | None:
        """What goes wrong before the body of a request, not yet in it, has been read."""
        _part, route = self._route(request)
        fault = None if route is None else self.faults.take_early(route.operation)
        if fault is not None and route is not None:
            self.requests.append(request)
            self.calls[route.operation] += 1
        return fault

    def _route(self, request: Request) -> tuple[Service | None, Route | None]:
        for part in self.parts:
            route = part.route(request)
            if route is not None:
                return part, route
        return None, None


def _flipped(body: bytes) -> bytes:
    middle = len(body) // 2
    return body[:middle] + bytes([body[middle] ^ 4]) + body[middle + 1 :] if body else body


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    actions: ActionsService

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._handle()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names that the base class looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep stderr clean."""

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        request = Request(self.command, self.path, parts.path, query, headers, b"")
        fault = self.server.actions.early_fault(request)
        if fault is not None:
            self.rfile.read(min(int(fault.amount), int(headers.get("content-length", 0))))
            self._reset()
            return
        request = replace(request, body=self._body(headers))
        reply, fault = self.server.actions.answer(request)
        if reply.reset or (fault is not None and fault.kind == "reset"):
            self._reset()
            return
        if fault is not None and fault.kind == "slow":
            time.sleep(fault.amount)
        if fault is not None and fault.kind == "truncated":
            reply.cut_after = int(fault.amount)
        self._send(reply)

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            length = int(headers.get("content-length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                raise ConnectionResetError  # the client gave up: the request never was
            return body
        pieces = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return bytes(pieces)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 204 and "content-length" not in reply.headers:
            self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body[: reply.cut_after])
        if reply.cut_after is not None:
            self.close_connection = True

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()
