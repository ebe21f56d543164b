"""A line to a service that goes wrong as chance has it: a proxy, as an endpoint and as what ``HTTP_PROXY`` names."""

from __future__ import annotations

import http.client
import random
import socket
import ssl
import struct
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.torture.network_ends import closed_port
from tests.torture.network_weather import Weather

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Line"]

_PAGE = b"<!doctype html><html><body><h1>One moment, please</h1></body></html>"
_AZURE = b'<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code><Message>Signature not valid</Message></Error>'
_HOPS = frozenset({"connection", "proxy-connection", "keep-alive", "transfer-encoding", "content-length"})
_UPSTREAM_SECONDS = 60.0
_DRIP = 0.02


class Line:
    """The line; :meth:`open` opens one.

    :param upstream: where the service really is.
    :ivar weather: what goes wrong.
    :ivar address: where the line begins, as host and port.
    :ivar public: the address that the service's own answers are to name.
    :ivar requests: how many came.
    :ivar proxied: how many of them came as to a proxy.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.weather = Weather("", (), 0, 0)
        self.requests = 0
        self.proxied = 0
        self.seen: list[bytes] = []
        self.over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.line = self
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.public = f"http://{self.address}"

    @classmethod
    @contextmanager
    def open(cls, upstream: str, certificate: Path | None = None) -> Iterator[Line]:
        """A line until the block ends.

        :param certificate: a PEM file with key and certificate: the line then speaks TLS.
        """
        line = cls(upstream)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            line._server.socket = context.wrap_socket(
                line._server.socket, server_side=True, do_handshake_on_connect=False
            )
            line.public = f"https://{line.address}"
        thread = threading.Thread(target=line._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield line
        finally:
            line.over.set()
            line._server.shutdown()
            line._server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    line: Line

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        line = self.server.line
        line.requests += 1
        line.proxied += "://" in self.path
        kind = line.weather.next()
        length = int(self.headers.get("content-length", 0))
        if kind == "hang-up":
            self.rfile.read(length // 2)
            self._reset()
            return
        body = self._body(length)
        if kind == "silence":
            line.over.wait()
            self._reset()
        elif kind == "reset":
            self._reset()
        elif kind == "garbage":
            self.wfile.write(b"\x00\x17SSH-2.0-not a web server\r\n\r\n" * 3)
            self._reset()
        elif (fixed := self._fixed(kind)) is not None:
            self._send(*fixed)
        else:
            self._forward(kind, body)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names that the base class looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep stderr clean."""

    def _fixed(self, kind: str) -> tuple[int, bytes, dict[str, str]] | None:
        """An answer that the service has no part in."""
        line = self.server.line
        page = {"content-type": "text/html"}
        plain = {"content-type": "text/plain"}
        again = f"{line.public}{_target(self.path)}"
        around = f"{again}{'&' if '?' in again else '?'}again=1"
        answers: dict[str, tuple[int, bytes, dict[str, str]]] = {
            "429": (429, b"slow down", plain),
            "429-after": (429, b"slow down", {**plain, "retry-after": "1"}),
            "429-long": (429, b"slow down", {**plain, "retry-after": "86400"}),
            "500": (500, b"", {}),
            "502": (502, _PAGE, page),
            "503": (503, _PAGE, {**page, "retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}),
            "504": (504, b"upstream request timeout", plain),
            "401": (401, b'{"code":"unauthenticated","msg":"no"}', {"content-type": "application/json"}),
            "403": (403, _AZURE, {"content-type": "application/xml"}),
            "404": (404, b"404 page not found", plain),
            "page": (200, _PAGE, page),
            "empty": (200, b"", plain),
            "redirect": (307, b"", {"location": again}),
            "redirect-loop": (302, b"", {"location": around}),
            "redirect-dead": (307, b"", {"location": f"http://127.0.0.1:{closed_port()}{_target(self.path)}"}),
        }
        if kind == "other-bytes":
            return (200, random.Random(line.requests).choice(line.seen or [b"{}"]), plain)
        return answers.get(kind)

    def _forward(self, kind: str, body: bytes) -> None:
        line = self.server.line
        if kind == "flipped-request":
            body = _flipped(body)
        status, answer, headers = self._ask(body)
        if headers.get("content-type", "").startswith("application/json"):
            answer = answer.replace(line.upstream.encode(), line.public.encode())
        if answer:
            line.seen = [*line.seen[-20:], answer]
        if kind == "500-after":
            self._send(500, b"", {})
        elif kind == "reset-after":
            self._reset()
        elif kind == "flipped-answer":
            self._send(status, _flipped(answer), headers)
        elif kind == "cut":
            self._send(status, answer, headers, sent=len(answer) // 2)
            self._reset()
        elif kind == "too-long":
            self._send(status, answer, headers, says=len(answer) + 1000)
            line.over.wait()
            self._reset()
        elif kind == "too-short":
            self._send(status, answer, headers, says=len(answer) * 2 // 3)
        elif kind == "slow-bytes":
            self._send(status, answer, headers, drip=True)
        else:
            if kind == "late":
                line.over.wait(0.5)
            self._send(status, answer, headers)

    def _ask(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        upstream = urlsplit(self.server.line.upstream)
        connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=_UPSTREAM_SECONDS)
        try:
            connection.putrequest(self.command, _target(self.path), skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOPS:
                    connection.putheader(name, value)
            connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            headers = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in _HOPS}
            if self.command == "HEAD":
                headers["content-length"] = answer.getheader("content-length", "0")
            return answer.status, content, headers
        except (OSError, http.client.HTTPException):
            return 502, b"the service itself failed", {"content-type": "text/plain"}
        finally:
            connection.close()

    def _body(self, length: int) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
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

    def _send(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str],
        *,
        says: int | None = None,
        sent: int | None = None,
        drip: bool = False,
    ) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204 and "content-length" not in headers:
            self.send_header("content-length", str(len(body) if says is None else says))
        self.end_headers()
        if self.command == "HEAD":
            return
        if drip:
            self.wfile.flush()
            for start in range(min(len(body), 100)):
                self.wfile.write(body[start : start + 1])
                time.sleep(_DRIP)
            body = body[100:]
        self.wfile.write(body[:sent])

    def _reset(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.wfile.flush()
        with suppress(OSError):
            self.connection.close()


def _target(path: str) -> str:
    """Path and query as they were sent, of a request to a proxy too."""
    if "://" not in path:
        return path
    rest = path.split("://", 1)[1]
    return rest[rest.index("/") :] if "/" in rest else "/"


def _flipped(body: bytes) -> bytes:
    middle = len(body) // 2
    return body[:middle] + bytes([body[middle] ^ 4]) + body[middle + 1 :] if body else body
