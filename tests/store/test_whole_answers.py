"""An object store whose server sends all of an object whatever part is asked for, as rclone's does."""

from __future__ import annotations

import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreError
from checkpoint_action.store.base import Found
from checkpoint_action.store.buckets import open_bucket
from checkpoint_action.store.object_reading import PART
from checkpoint_action.store.objects import ObjectStore
from checkpoint_action.store.resuming import ResumingStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("obstore")
pytestmark = pytest.mark.slow

KEY = "cpr1-run7-build-0123456789abcdef-a-7-1-000001-01234567"
CONTENT = os.urandom(3 * PART + 12_345)


class Server(ThreadingHTTPServer):
    """Has one object.

    :ivar gets: how often it was asked for it, or for a part of it.
    :ivar most: bytes after which the next answer breaks off.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.gets = 0
        self.most: int | None = None


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_HEAD(self) -> None:
        self._head()

    def do_GET(self) -> None:
        self.server.gets += 1
        most, self.server.most = self.server.most, None
        self._head()
        try:
            self.wfile.write(CONTENT[:most])
        except OSError:  # who asks for a part hangs up
            self.close_connection = True
        self.close_connection = self.close_connection or most is not None

    def _head(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", f"{len(CONTENT)}")
        self.send_header("ETag", '"one"')
        self.send_header("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT")
        self.end_headers()

    def log_message(self, *_said: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(server: Server, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a" * 20,
        "AWS_SECRET_ACCESS_KEY": "b" * 40,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return ObjectStore(open_bucket("s3", "bucket", ""), "s3://bucket")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkpoint_action.store.resuming._LONGEST_PAUSE", 0.0)


def test_a_part_is_read_all_the_same(store: ObjectStore) -> None:
    assert store.read(Found(KEY), 0, 100) == CONTENT[:100]
    assert store.read(Found(KEY), PART - 7, 100) == CONTENT[PART - 7 : PART + 93]
    assert store.read(Found(KEY), len(CONTENT) - 3, 100) == CONTENT[-3:]
    assert store.read(Found(KEY), len(CONTENT), 100) == b""


def test_once_this_is_known_an_archive_takes_one_request(store: ObjectStore, server: Server, tmp_path: Path) -> None:
    store.read(Found(KEY), 0, 100)
    server.gets = 0
    store.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert server.gets == 1


def test_an_archive_that_is_fetched_by_parts_elsewhere_comes_as_a_stream(
    store: ObjectStore, server: Server, tmp_path: Path
) -> None:
    sizes: list[int] = []
    resuming = ResumingStore(store, tmp_path / "fetched", told=lambda _key, size: sizes.append(size))
    resuming.read(Found(KEY), 0, 100)
    server.gets = 0
    resuming.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert server.gets == 1
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (0, len(CONTENT))


def test_a_stream_that_breaks_off_goes_on_behind_what_has_come(
    store: ObjectStore, server: Server, tmp_path: Path
) -> None:
    resuming = ResumingStore(store, tmp_path / "fetched")
    resuming.read(Found(KEY), 0, 100)
    server.gets, server.most = 0, 2 * PART
    resuming.fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert server.gets <= 3  # the library has its own try, by a range


def test_a_stream_that_was_given_up_writes_nothing_more(tmp_path: Path) -> None:
    """It may go on in its thread when another one has begun."""
    gone_on: list[str] = []

    class Slow(ObjectStore):
        tries = 0

        def __init__(self) -> None:
            self._url = "slow"

        def stream(self, found: Found, start: int, take: object) -> bool:
            assert callable(take)
            self.tries += 1
            if self.tries == 1:
                take(b"first")
                self.late = take
                raise StoreError("slow: download: out of time")
            try:
                self.late(b"stale")
            except StoreError as error:
                gone_on.append(str(error))
            take(CONTENT[start : start + 5])
            return True

    ResumingStore(Slow(), tmp_path / "fetched").fetch(Found(KEY), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"first" + CONTENT[5:10]
    assert [re.sub(".*: ", "", text) for text in gone_on] == ["out of time"]
