"""What goes wrong with an object store."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.store import bounded, objects
from checkpoint_action.store.base import Found
from checkpoint_action.store.buckets import open_bucket, reason
from checkpoint_action.store.objects import ONE_BODY, ObjectStore
from checkpoint_action.store.urls import store_for
from tests.store.places import make_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

obstore: Any = pytest.importorskip("obstore")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

KEYS = KeyScheme("content", job_slug("build", 1), "7", "1")
_PATIENCE = 60.0  # seconds
KEY = KEYS.new("build", 1)
FOLDER, NAME = KEY[: KEY.index("-build-7-")], KEY[KEY.index("-build-7-") + 1 :] + ".tar.zst"


@pytest.fixture
def bucket(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    place = make_place("moto", request, tmp_path)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    _, _, rest = place.url.partition("://")
    return open_bucket("s3", *rest.split("/", 1))


@pytest.fixture
def store(bucket: object) -> ObjectStore:
    return ObjectStore(bucket, "s3://bucket", order=KEYS.origin)  # type: ignore[arg-type]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"all of it")
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(ONE_BODY + 1))
    return path


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the environment name a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        _say_s3(monkeypatch, f"http://127.0.0.1:{server.getsockname()[1]}")
        yield


def _say_s3(monkeypatch: pytest.MonkeyPatch, origin: str) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a" * 20,
        "AWS_SECRET_ACCESS_KEY": "b" * 40,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": origin,
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)


def test_a_key_that_is_reserved_is_no_entry_and_taken(
    store: ObjectStore, bucket: object, source: Path, large: Path
) -> None:
    obstore.put(bucket, f"{FOLDER}/{NAME}", b"", mode="create", use_multipart=False)
    assert store.entries() == []
    assert store.find(KEYS.prefix) is None
    with pytest.raises(StoreMissingError):
        store.read(Found(KEY), 0, 10)
    with pytest.raises(StoreMissingError):
        store.fetch(Found(KEY), source.with_name("target"))
    for file in (source, large):
        with pytest.raises(StoreTakenError):
            store.save(KEY, file)


def test_an_upload_in_parts_that_fails_leaves_nothing(
    store: ObjectStore, bucket: object, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = obstore.put

    def fail(bucket: object, path: str, body: object, **how: object) -> object:
        if how.get("mode") != "create":
            raise OSError("the network is gone")
        return put(bucket, path, body, **how)

    monkeypatch.setattr(obstore, "put", fail)
    with pytest.raises(StoreError, match="the network is gone"):
        store.save(KEY, large)
    assert [row for rows in obstore.list(bucket) for row in rows] == []


def test_reservations_of_a_day_ago_go_when_another_entry_comes(
    store: ObjectStore, bucket: object, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = f"{FOLDER}/{KEYS.new('stale', 1).removeprefix(FOLDER + '-')}.tar.zst"
    obstore.put(bucket, stale, b"", mode="create", use_multipart=False)
    store.save(KEY, large)
    paths = {row["path"] for rows in obstore.list(bucket) for row in rows}
    assert paths == {stale, f"{FOLDER}/{NAME}"}  # it is young
    monkeypatch.setattr(objects, "_STALE", -60.0)
    store.save(KEYS.new("next", 2), large)
    assert stale not in {row["path"] for rows in obstore.list(bucket) for row in rows}
    assert {row.key for row in store.entries()} >= {KEY}


def test_an_empty_file_cannot_be_an_entry(store: ObjectStore, source: Path) -> None:
    source.write_bytes(b"")
    with pytest.raises(StoreError, match="empty"):
        store.save(KEY, source)
    assert store.entries() == []


def test_a_wrong_key_is_refused_in_one_line_without_it(
    request: pytest.FixtureRequest, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place("rclone", request, tmp_path)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "geheim" * 6)
    store = store_for(place.url)
    calls: list[Callable[[], object]] = [lambda: store.find("cpr1-"), lambda: store.save(KEY, source)]
    for call in calls:
        with pytest.raises(StoreDeniedError) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert "geheim" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_an_error(
    request: pytest.FixtureRequest, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in make_place("moto", request, tmp_path).env.items():
        monkeypatch.setenv(name, value)
    store = store_for("s3://no-such-bucket/prefix")
    calls: list[Callable[[], object]] = [lambda: store.find("cpr1-"), lambda: store.save(KEY, source)]
    for call in calls:
        with pytest.raises(StoreError) as caught:
            call()
        assert not isinstance(caught.value, StoreMissingError)  # it is more than an entry that is not there


@pytest.mark.usefixtures("silent")
def test_a_server_that_never_answers_is_given_up(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "GRACE", 0.0)
    store = ObjectStore(open_bucket("s3", "bucket", ""), "s3://bucket", call_seconds=0.2, transfer_seconds=0.2)
    calls: list[Callable[[], object]] = [
        lambda: store.find("cpr1-"),
        lambda: store.save(KEY, source),
        lambda: store.fetch(Found(KEY), source.with_name("target")),
        lambda: store.read(Found(KEY), 0, 1),
        lambda: store.delete(KEY),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="out of time"):
            call()


def test_a_dead_server_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    _say_s3(monkeypatch, f"http://127.0.0.1:{port}")
    store = store_for("s3://bucket")
    with pytest.raises(StoreError, match=r"s3://bucket: list: .*error sending request") as caught:
        store.find("cpr1-")
    assert "\n" not in str(caught.value)


def test_what_the_library_says_is_shown_without_addresses() -> None:
    said = Exception("Generic S3 error: PUT https://host/path?sig=geheim in 2ms\n - 503\n\nDebug source:\nGeneric { }")
    assert reason(said) == "Generic S3 error: PUT … in 2ms - 503"
    assert reason(Exception()) == "Exception"
    assert len(reason(Exception("x" * 1000))) == 301
    assert reason(Exception("403: <?xml version='1.0'?>\n<Error><Code>No</Code></Error>")) == "403: No"


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_line_that_breaks_once_costs_no_entry(
    store: ObjectStore, source: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    assert store.entries() == []  # so that there is a server
    with _breaking_once(os.environ["AWS_ENDPOINT_URL"], lost) as (origin, broken):
        monkeypatch.setenv("AWS_ENDPOINT_URL", origin)
        shaky = ObjectStore(open_bucket("s3", "bucket", "shaky-" + lost), "s3://bucket")
        if lost == "request":
            shaky.save(KEY, source)
        else:  # it has arrived, which cannot be told from somebody else's
            with pytest.raises(StoreTakenError):
                shaky.save(KEY, source)
        assert broken.is_set()
        assert [row.key for row in shaky.entries()] == [KEY]


@contextmanager
def _breaking_once(origin: str, lost: str) -> Iterator[tuple[str, threading.Event]]:
    """A way to a server on which the first body that is put is lost, or what the server says to it."""
    host, port = origin.removeprefix("http://").split(":")
    broken = threading.Event()

    def serve(client: socket.socket) -> None:
        cut = threading.Event()
        with client, socket.create_connection((host, int(port))) as server:
            answers = threading.Thread(target=_quietly, args=(hand_back, server, client, cut), daemon=True)
            answers.start()
            while data := client.recv(1 << 16):
                if data.startswith(b"PUT") and not broken.is_set():
                    broken.set()
                    cut.set()
                    if lost == "request":
                        break
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)
            answers.join(_PATIENCE)

    def hand_back(server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        while data := server.recv(1 << 16):
            if cut.is_set() and not data.startswith(b"HTTP/1.1 100"):
                break
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _address = listener.accept()
                threading.Thread(target=_quietly, args=(serve, client), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", broken
        listener.shutdown(socket.SHUT_RDWR)


def _quietly(work: Callable[..., None], *given: object) -> None:
    with suppress(OSError):
        work(*given)
