"""The download of the guide to flaky networks, with a server that breaks off."""

from __future__ import annotations

import shutil
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "flaky-network.md"
DATA = Random(1).randbytes(300_000)
PIECE = 120_000

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None or sys.platform == "win32", reason="curl and a POSIX shell are needed"
)


class Breaking(BaseHTTPRequestHandler):
    """Answers ranges, breaks off after a piece, and refuses to go on where there is nothing more."""

    protocol_version = "HTTP/1.1"
    asked: list[int]

    def do_GET(self) -> None:
        given = self.headers.get("Range")
        start = int(given.removeprefix("bytes=").removesuffix("-")) if given else 0
        self.asked.append(start)
        rest = DATA[start:]
        self.send_response(200 if given is None else 206 if rest else 416)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header(
            "Content-Range", f"bytes {start}-{len(DATA) - 1}/{len(DATA)}" if rest else f"bytes */{len(DATA)}"
        )
        self.end_headers()
        self.wfile.write(rest[:PIECE])
        self.close_connection = True

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@contextmanager
def breaking() -> Iterator[tuple[str, list[int]]]:
    """The server's address, and where each request began."""

    class Handler(Breaking):
        asked: list[int] = []  # noqa: RUF012  # this server's own

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", Handler.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
def test_it_goes_on_where_it_broke_and_may_run_again_when_all_is_there(tmp_path: Path) -> None:
    example = PAGE.read_text("utf-8").partition('title="checkpoint.yml"\n')[2].partition("```")[0]
    console = Console(tmp_path)
    with breaking() as (address, asked):
        text = example.replace("https://example.com", f"http://{address}").replace("example.com:443", address)
        (tmp_path / "checkpoint.yml").write_text(text.replace("backoff: 2s", "backoff: 0"))
        first = console.run()
        assert first.returncode == 0, first.stderr
        assert asked == [0, PIECE, 2 * PIECE]
        assert (tmp_path / "model.bin").read_bytes() == DATA
        again = console.run("--force", "fetch")
        assert again.returncode == 0, again.stderr
        assert (tmp_path / "model.bin").read_bytes() == DATA
