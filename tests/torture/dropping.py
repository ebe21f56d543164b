"""A server on the loopback that gives one file by ranges, and whose connections break: cleanly, hard, for a while."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["DroppingServer", "content"]

_BLOCK = 1 << 16
_MARK = struct.Struct("<Q")
_LONGEST = 60.0


def content(start: int, end: int) -> bytes:
    """The file's bytes from ``start`` to before ``end``: no two of its blocks are the same."""
    data = bytearray()
    for number in range(start // _BLOCK, -(-end // _BLOCK)):
        data += _MARK.pack(number * 0x9E3779B97F4A7C15 % (1 << 64)) * (_BLOCK // _MARK.size)
    first = start - start // _BLOCK * _BLOCK
    return bytes(data[first : first + end - start])


class DroppingServer:
    """Serves ``size`` bytes, of which a connection brings ``every`` at most before it breaks.

    Every other connection ends as by a server that closes it, every other as by a line that is cut (a reset); after
    each fourth nobody listens for a while.

    :param rate: bytes a second; none: as fast as it goes.
    :ivar sent: bytes of the file that were handed to the system in all.
    :ivar requests: how many there were.
    :ivar drops: how many connections were broken.
    :ivar resets: how many of these hard.
    """

    def __init__(self, size: int, every: int, rate: float | None = None, away: float = 1.0) -> None:
        self.size, self.sent, self.requests, self.drops, self.resets = size, 0, 0, 0, 0
        self._every, self._rate, self._away = every, rate, away
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            connection, _ = self._listener.accept()
            with connection, suppress(OSError):
                connection.settimeout(_LONGEST)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        asked = b""
        while b"\r\n\r\n" not in asked:
            more = connection.recv(1 << 16)
            if not more:
                return  # somebody who only looked whether we are there
            asked += more
        self.requests += 1
        match = re.search(rb"(?i)^range: bytes=(\d+)-", asked, re.MULTILINE)
        start = int(match[1]) if match else 0
        if start >= self.size:
            connection.sendall(b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        head = f"Content-Length: {self.size - start}\r\nConnection: close\r\nAccept-Ranges: bytes\r\n\r\n"
        part = f"206 Partial Content\r\nContent-Range: bytes {start}-{self.size - 1}/{self.size}"
        status = part if match else "200 OK"
        connection.sendall(f"HTTP/1.1 {status}\r\n{head}".encode())
        end = min(self.size, start + self._every)
        begin, at = time.monotonic(), start
        while at < end:
            piece = content(at, min(end, at + _BLOCK))
            connection.sendall(piece)
            at += len(piece)
            self.sent += len(piece)
            if self._rate:
                self._over.wait(max(0.0, begin + (at - start) / self._rate - time.monotonic()))
        if end < self.size:
            self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self.drops += 1
        if self.drops % 4 == 0:  # first nobody listens, so that whoever asks after this break finds nobody
            self._listener.close()
        if self.drops % 2 == 0:
            self.resets += 1
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        if self.drops % 4 == 0:
            self._over.wait(self._away)
            self._listener = socket.create_server(("127.0.0.1", self.port))
