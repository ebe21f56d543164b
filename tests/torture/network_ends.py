"""Ends of lines at which no service is."""

from __future__ import annotations

import socket
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["closed_port", "self_signed", "silent_port"]


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        number: int = listening.getsockname()[1]
        return number


class _Silent(NamedTuple):
    address: str
    connections: list[socket.socket]


@contextmanager
def silent_port() -> Iterator[_Silent]:
    """Accepts each connection and never says a word."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    silent = _Silent(f"127.0.0.1:{listening.getsockname()[1]}", [])

    def accept() -> None:
        with suppress(OSError):
            while True:
                silent.connections.append(listening.accept()[0])

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield silent
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for connection in silent.connections:
            connection.close()


def self_signed(folder: Path) -> Path | None:
    """A certificate that nobody trusts, with its key; ``None`` without openssl."""
    made = folder / "line.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    try:
        command = ["openssl", *words.split(), "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    made.write_bytes(key.read_bytes() + certificate.read_bytes())
    return made
