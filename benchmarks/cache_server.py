"""The loopback cache service of the tests, v2, as a process of its own that keeps blobs in files and copies nothing.

::

    python -m benchmarks.cache_server FOLDER

Prints its address and serves until its standard input ends. What a client sends goes from the socket to a file in
large pieces; what it fetches goes from the file to the socket inside the kernel. So clients are measured, not this.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from tests.actions_service.blobs import Blobs
from tests.actions_service.cache_v2 import CacheV2Service
from tests.actions_service.entries import Entries
from tests.actions_service.messages import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

_PIECE = 1 << 20


class _FileBlobs(Blobs):
    """Blobs whose blocks are files.

    :param folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._serial = count()
        self._blocks: dict[tuple[str, str], Path] = {}
        self._lists: dict[str, list[Path]] = {}

    def size(self, name: str) -> int | None:
        files = self._lists.get(name)
        return None if files is None else sum(file.stat().st_size for file in files)

    def refusal(self, request: Request, permission: str) -> Reply | None:
        """Why the URL does not open the blob, if it does not."""
        return self._refusal(request, blob_name(request), permission)

    def new_file(self) -> Path:
        return self._folder / str(next(self._serial))

    def take(self, request: Request, file: Path) -> Reply:
        """Take what was sent with a PUT, once it lies in ``file``."""
        name = blob_name(request)
        if refusal := self.refusal(request, "w"):
            return refusal
        kind = request.query.get("comp", "")
        if kind == "block":
            self._blocks[name, request.query["blockid"]] = file
        elif kind == "blocklist":
            wanted = re.findall(r"<Latest>([^<]*)</", file.read_text())
            self._lists[name] = [self._blocks[name, block] for block in wanted]
        else:
            self._lists[name] = [file]
        return self._created(b"")

    def pieces(self, name: str, start: int, end: int) -> Iterator[tuple[Path, int, int]]:
        """The files, each with a first byte and a length, that bytes ``start`` to before ``end`` lie in."""
        for file in self._lists[name]:
            size = file.stat().st_size
            if start < size and end > 0:
                yield file, max(start, 0), min(size, end) - max(start, 0)
            start, end = start - size, end - size


def blob_name(request: Request) -> str:
    return request.path.rpartition("/")[2]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        self.blobs = _FileBlobs(folder)
        self.cache = CacheV2Service(Entries(), self.blobs, self.origin)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep stderr clean."""

    def do_POST(self) -> None:
        request = self._request(self.rfile.read(int(self.headers["content-length"])))
        route = self.server.cache.route(request)
        self._send(Reply(404) if route is None else route.answer())

    def do_PUT(self) -> None:
        file = self.server.blobs.new_file()
        left = int(self.headers["content-length"])
        buffer = memoryview(bytearray(min(_PIECE, left)))
        with file.open("wb", buffering=0) as target:
            while left:
                came = self.rfile.readinto(buffer[: min(left, _PIECE)])
                if not came:
                    raise ConnectionResetError
                target.write(buffer[:came])
                left -= came
        self._send(self.server.blobs.take(self._request(b""), file))

    def do_GET(self) -> None:
        request = self._request(b"")
        name = blob_name(request)
        blobs = self.server.blobs
        size = blobs.size(name)
        refusal = blobs.refusal(request, "r")
        if size is None or refusal is not None:
            self._send(refusal or Reply(404))
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        start = int(wanted[1]) if wanted else 0
        end = min(size, int(wanted[2]) + 1) if wanted and wanted[2] else size
        headers = {"content-type": "application/octet-stream", "etag": f'"{name}"', "accept-ranges": "bytes"}
        if wanted:
            headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
        self._send(Reply(206 if wanted else 200, b"", headers), end - start)
        for path, offset, length in blobs.pieces(name, start, end):
            with path.open("rb") as file:
                self.connection.sendfile(file, offset, length)

    def _request(self, body: bytes) -> Request:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, self.path, parts.path, dict(parse_qsl(parts.query)), headers, body)

    def _send(self, reply: Reply, length: int | None = None) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(reply.body) if length is None else length))
        self.end_headers()
        self.wfile.write(reply.body)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    server = _Server(parser.parse_args(argv).folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.origin, flush=True)
    sys.stdin.read()
    server.shutdown()
    server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
