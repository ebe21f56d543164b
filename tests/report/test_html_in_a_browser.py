"""The page of a run as a real browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None or sys.platform == "win32", reason="there is no Chromium"),
]

DARK, LIGHT = 0, 1
NOTHING = "default-src 'none'; style-src 'unsafe-inline'"
JOB = """\
job: release
steps:
- {id: fetch, run: "true"}
- {id: build, needs: [fetch], run: "echo 'x.c:3: error <b>'; exit 2"}
- {id: publish, run: "true"}
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The page of a second run, in which a step is skipped, one fails and one is left."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "checkpoint.yml").write_text(JOB)
    console = Console(folder)
    console.run("--quiet")
    assert console.run("--report", "page.html", "--rate", "$1/h").returncode == 1
    return (folder / "page.html").read_bytes()


class Served:
    """A page on the loopback, and what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.page = b""
        self.policy = ""
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.asked.append(self.path)
                found = self.path == "/page.html"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                if served.policy:
                    self.send_header("Content-Security-Policy", served.policy)
                self.end_headers()
                self.wfile.write(served.page if found else b"")

            def log_message(self, *_words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/page.html"


@pytest.fixture
def served() -> Iterator[Served]:
    one = Served()
    thread = threading.Thread(target=one.server.serve_forever)
    thread.start()
    yield one
    one.server.shutdown()
    thread.join()
    one.server.server_close()


def browse(served: Served, page: bytes, folder: Path, *words: str) -> tuple[str, list[str]]:
    """Load a page: what the browser prints, and what is on its console."""
    assert BROWSER is not None
    served.page = page
    served.asked.clear()
    ended = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", "--window-size=1000,900"),
            *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", *words, served.url),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ended.stdout, [line for line in ended.stderr.splitlines() if "CONSOLE" in line]


def shot(served: Served, page: bytes, folder: Path, theme: int, policy: str = "") -> bytes:
    """A picture of the page as PNG.

    :param policy: what the page may do, for the browser.
    """
    folder.mkdir()
    name = folder / "page.png"
    served.policy = policy
    theme_word = f"--blink-settings=preferredColorScheme={theme}"
    _, console = browse(served, page, folder, f"--screenshot={name}", theme_word)
    assert console == []
    return name.read_bytes()


def first_pixel(png: bytes) -> tuple[int, ...]:
    """The colour of the upper left corner, which no filter of PNG changes."""
    at, body = 8, b""
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            body += png[at + 8 : at + 8 + size]
        at += size + 12
    return tuple(zlib.decompress(body)[1:4])


def test_it_says_nothing_on_the_console_and_asks_for_nothing(served: Served, page: bytes, tmp_path: Path) -> None:
    served.policy = NOTHING  # what the page wants beyond itself is refused, and told on the console
    text, console = browse(served, page, tmp_path, "--dump-dom")
    assert console == []
    assert set(served.asked) <= {"/page.html", "/favicon.ico"}  # the latter is the browser's own wish
    assert re.search(r"<h1>Job release: failed</h1>", text)
    assert "x.c:3: error &lt;b&gt;" in text
    # It would have been noticed.
    loads = page.replace(b"</main>", b'<img src="http://elsewhere.example/x.png"><script>throw 1</script></main>')
    _, console = browse(served, loads, tmp_path, "--dump-dom")
    assert len(console) == 2


def test_it_follows_the_theme_and_needs_no_script(served: Served, page: bytes, tmp_path: Path) -> None:
    light = shot(served, page, tmp_path / "light", LIGHT)
    dark = shot(served, page, tmp_path / "dark", DARK)
    assert first_pixel(light) == (0xFF, 0xFF, 0xFF)
    assert first_pixel(dark) == (0x0D, 0x11, 0x17)
    assert shot(served, page, tmp_path / "still", LIGHT, NOTHING) == light
