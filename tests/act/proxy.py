"""A TCP proxy between the action and a service, which can go away or fall silent at will."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress

__all__ = ["Proxy", "free_port"]


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Proxy:
    """Passes bytes both ways until told otherwise.

    :param upstream: port of the service on 127.0.0.1.
    :param dies_after: bytes sent to the service after which every connection is reset and none is taken any more.
    """

    def __init__(self, upstream: int, *, dies_after: int | None = None) -> None:
        self.upstream = upstream
        self.dies_after = dies_after
        self.connections = 0
        self.sent = 0
        self.silent = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._server: socket.socket | None = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def die(self) -> None:
        """Reset all connections and refuse new ones, as a service that was killed."""
        with self._lock:
            server, self._server = self._server, None
            connections, self._open = self._open, set()
        if server is not None:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)  # wakes accept()
            server.close()
        for connection in connections:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def fall_silent(self) -> None:
        """Keep connections and take new ones, but pass nothing on any more."""
        self.silent.set()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
                self.connections += 1
                service = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                return
            with self._lock:
                alive = self._server is not None
                if alive:
                    self._open |= {client, service}
            if not alive:
                client.close()
                service.close()
                return
            threading.Thread(target=self._pump, args=(client, service, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(service, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, up: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.silent.is_set():
                    continue
                if up:
                    with self._lock:
                        self.sent += len(data)
                        over = self.dies_after is not None and self.sent > self.dies_after
                    if over:
                        self.die()
                        return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
