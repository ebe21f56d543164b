from __future__ import annotations

import socket
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.errors import (
    DeadlineError,
    HttpStatusError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    ToolkitError,
)
from checkpoint_action.toolkit.http import FileSlice, HttpClient, Limits, Response, Retries
from tests.actions_service import ActionsService, Fault
from tests.actions_service.messages import Reply, Request, Route, json_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.toolkit.clock import Clock


class Endpoint:
    """A part of the service that answers below ``/echo`` as a test wants."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer

    def route(self, request: Request) -> Route | None:
        return Route("echo", lambda: self.answer(request)) if request.path.startswith("/echo") else None


@pytest.fixture
def url(service: ActionsService) -> str:
    service.parts.append(Endpoint(lambda request: json_reply({"method": request.method, "target": request.target})))
    return f"{service.origin}/echo"


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 429])
def test_passing_faults_are_tried_again_with_growing_waits(
    service: ActionsService, http: HttpClient, url: str, clock: Clock, status: int
) -> None:
    service.faults.next("echo", Fault.status(status), times=3)
    assert http.request_json("GET", url, label="echo")["method"] == "GET"
    assert clock.sleeps == [1, 2, 4]


def test_tries_end_and_the_last_answer_is_the_error(
    service: ActionsService, http: HttpClient, url: str, clock: Clock
) -> None:
    service.faults.next("echo", Fault.status(503, '{"code":"unavailable","msg":"come\\nback"}'), times=9)
    with pytest.raises(HttpStatusError) as caught:
        http.request("GET", url, label="echo")
    assert (caught.value.status, caught.value.code, service.calls["echo"]) == (503, "unavailable", 5)
    assert str(caught.value).endswith("answered 503, unavailable, come back")
    assert clock.sleeps == [1, 2, 4, 8]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413])
def test_lasting_refusals_are_not_tried_again(service: ActionsService, http: HttpClient, url: str, status: int) -> None:
    service.faults.next("echo", Fault.status(status))
    with pytest.raises(HttpStatusError) as caught:
        http.request("GET", url, label="echo")
    assert caught.value.status == status
    assert service.calls["echo"] == 1


def test_retry_after_is_waited_for_as_seconds_or_as_a_date(
    service: ActionsService, http: HttpClient, url: str, clock: Clock
) -> None:
    service.faults.next("echo", Fault.status(429, retry_after="18"))
    service.faults.next("echo", Fault.status(503, retry_after=formatdate(clock.wall() + 18 + 7, usegmt=True)))
    http.request("GET", url, label="echo")
    assert clock.sleeps == [18, 7]


def test_retry_after_is_capped(service: ActionsService, url: str, clock: Clock) -> None:
    client = HttpClient(env={}, sleep=clock.sleep, jitter=lambda: 0, retries=Retries(retry_after_cap=20))
    service.faults.next("echo", Fault.status(429, retry_after="900"))
    client.request("GET", url, label="echo")
    assert clock.sleeps == [20]


def test_nobody_sleeps_past_the_deadline(service: ActionsService, http: HttpClient, url: str, clock: Clock) -> None:
    service.faults.next("echo", Fault.status(429, retry_after="18"))
    with pytest.raises(RateLimitedError) as caught:
        http.within(10).request("GET", url, label="echo")
    assert caught.value.retry_after == 18
    assert clock.sleeps == []


def test_the_total_limit_counts_tries_and_waits(
    service: ActionsService, http: HttpClient, url: str, clock: Clock
) -> None:
    service.faults.next("echo", Fault.status(500), times=9)
    with pytest.raises(HttpStatusError):
        http.request("GET", url, label="echo", limits=Limits(total=4))
    assert clock.sleeps == [1, 2]


def test_past_the_deadline_nothing_is_sent(service: ActionsService, http: HttpClient, url: str, clock: Clock) -> None:
    client = http.within(5)
    clock.now += 5
    with pytest.raises(DeadlineError):
        client.request("GET", url, label="echo")
    with pytest.raises(DeadlineError):
        client.pause(1, "waiting")
    assert service.requests == []


def test_an_earlier_deadline_stays_when_more_time_is_asked_for(http: HttpClient, clock: Clock) -> None:
    assert http.within(5).within(50).deadline == clock.now + 5


def test_a_view_that_is_stopped_sends_nothing_more_and_others_go_on(
    service: ActionsService, http: HttpClient, url: str, clock: Clock
) -> None:
    view = http.stoppable()
    assert view.request_json("GET", url, label="echo")["method"] == "GET"
    view.stop()
    with pytest.raises(DeadlineError):
        view.request("GET", url, label="echo")
    with pytest.raises(DeadlineError):
        view.pause(1, "waiting")
    assert service.calls["echo"] == 1
    assert clock.sleeps == []
    http.request("GET", url, label="echo")


def test_a_stop_ends_what_is_under_way(service: ActionsService, http: HttpClient) -> None:
    service.parts.append(Endpoint(lambda _request: Reply(200, b"x" * 4_000_000)))
    view = http.stoppable()
    with view.stream("GET", f"{service.origin}/echo", label="echo") as answer:
        assert next(answer.chunks)
        view.stop()
        with pytest.raises(DeadlineError):
            next(answer.chunks)


def test_a_stop_ends_a_wait(service: ActionsService, url: str) -> None:
    service.faults.next("echo", Fault.status(429, retry_after="60"))
    client = HttpClient(env={}).stoppable()
    timer = threading.Timer(0.2, client.stop)
    timer.start()
    with pytest.raises(DeadlineError):
        client.within(300).request("GET", url, label="echo")
    timer.join()
    client.close()
    assert service.calls["echo"] == 1


def test_a_refusal_tells_whether_an_earlier_try_may_have_been_carried_out(
    service: ActionsService, http: HttpClient, url: str
) -> None:
    for before, repeated in [
        ([], False),
        ([Fault.status(429)], False),
        ([Fault.status(502)], True),
        ([Fault.reset()], True),
        ([Fault.not_json(), Fault.status(429)], True),
    ]:
        for fault in (*before, Fault.status(409)):
            service.faults.next("echo", fault)
        with pytest.raises(HttpStatusError) as caught:
            http.request_json("POST", url, label="echo", payload={})
        assert (caught.value.status, caught.value.repeated) == (409, repeated)


def test_a_success_that_the_caller_does_not_take_is_tried_again(
    service: ActionsService, http: HttpClient, url: str, clock: Clock
) -> None:
    service.faults.next("echo", Fault.status(200, "no"), times=2)

    def check(response: Response) -> None:
        if response.body == b"no":
            raise ProtocolError("not taken")

    assert b"GET" in http.request("GET", url, label="echo", check=check).body
    assert clock.sleeps == [1, 2]
    service.faults.next("echo", Fault.status(200, "no"), times=9)
    with pytest.raises(ProtocolError, match="not taken"):
        http.request("GET", url, label="echo", check=check)


def test_a_body_that_trickles_ends_at_the_total_limit(service: ActionsService, http: HttpClient, clock: Clock) -> None:
    service.parts.append(Endpoint(lambda _request: Reply(200, b"x" * 4_000_000)))
    with http.stream("GET", f"{service.origin}/echo", label="echo", limits=Limits(total=50)) as answer:
        assert next(answer.chunks)
        clock.now += 50
        with pytest.raises(DeadlineError):
            next(answer.chunks)


@pytest.mark.parametrize("fault", [Fault.reset(), Fault.truncated(3)])
def test_broken_connections_are_tried_again(
    service: ActionsService, http: HttpClient, url: str, clock: Clock, fault: Fault
) -> None:
    service.faults.next("echo", fault, times=2)
    assert http.request_json("GET", url, label="echo")["method"] == "GET"
    assert clock.sleeps == [1, 2]


def test_silence_is_a_network_error(service: ActionsService, http: HttpClient, url: str) -> None:
    service.faults.next("echo", Fault.slow(0.3), times=9)
    with pytest.raises(NetworkError, match=r"^echo at 127\.0\.0\.1:\d+: no answer for 0\.05 s$"):
        http.request("GET", url, label="echo", limits=Limits(idle=0.05))


def test_a_port_nobody_listens_on_is_a_network_error_without_the_url(service: ActionsService) -> None:
    with ActionsService.running() as other:
        closed = other.origin
    client = HttpClient(env={}, sleep=lambda _: None)
    with pytest.raises(NetworkError, match="no connection") as caught:
        client.request("GET", f"{closed}/secret-path?sig=secret", label="download")
    assert "secret" not in str(caught.value)


def test_json_calls_try_again_when_the_answer_is_no_json(
    service: ActionsService, http: HttpClient, url: str, clock: Clock
) -> None:
    service.faults.next("echo", Fault.not_json(), times=2)
    service.faults.next("echo", Fault.status(200, "[1]"))
    assert http.request_json("POST", url, label="echo", payload={})["method"] == "POST"
    assert clock.sleeps == [1, 2, 4]


def test_an_answer_that_never_is_json_is_a_protocol_error(service: ActionsService, http: HttpClient, url: str) -> None:
    service.faults.next("echo", Fault.not_json(), times=9)
    with pytest.raises(ProtocolError, match="no JSON object"):
        http.request_json("GET", url, label="echo")


def test_json_is_sent_compact_and_as_utf8(service: ActionsService, http: HttpClient, url: str) -> None:
    http.request_json("POST", url, label="echo", payload={"key": "grün", "n": 1})
    sent = service.requests[-1]
    assert sent.body == '{"key":"grün","n":1}'.encode()
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["user-agent"] == "checkpoint-run"


@pytest.mark.parametrize("query", ["?se=2099%3a00&sig=a%2bb%2F=", "?a=b+c&&d", "?sig=%7e~'(*)", ""])
def test_a_url_is_sent_byte_for_byte(http: HttpClient, url: str, query: str) -> None:
    assert http.request_json("GET", f"{url}/a%2fb{query}", label="echo")["target"] == f"/echo/a%2fb{query}"


def test_a_file_is_sent_in_pieces_and_anew_for_each_try(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 4000
    (tmp_path / "file").write_bytes(content)
    service.faults.next("echo", Fault.status(500), times=2)
    http.request("PUT", url, label="echo", body=FileSlice(tmp_path / "file", 1000, 900_000))
    assert [request.body for request in service.requests] == [content[1000:901_000]] * 3
    assert service.requests[-1].headers["content-length"] == "900000"


def test_a_server_that_takes_no_more_bytes_is_a_network_error(http: HttpClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(16_000_000))
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        body = FileSlice(tmp_path / "file", 0, 16_000_000)
        with pytest.raises(NetworkError, match="timed out"):
            http.request("PUT", address, label="echo", body=body, limits=Limits(connect=0.1))


def test_the_deadline_ends_an_upload_between_two_pieces(
    service: ActionsService, http: HttpClient, url: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pieces(_: FileSlice) -> Iterator[bytes]:
        yield b"some"
        clock.now += 60
        yield b"more"

    monkeypatch.setattr(FileSlice, "__iter__", pieces)
    with pytest.raises(DeadlineError):
        http.request("PUT", url, label="echo", body=FileSlice(tmp_path, 0, 8))
    assert service.calls["echo"] == 0


def test_a_file_that_shrinks_while_it_is_sent_is_an_error_at_once(
    http: HttpClient, url: str, tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "file").write_bytes(b"short")
    with pytest.raises(ToolkitError, match="became shorter"):
        http.request("PUT", url, label="echo", body=FileSlice(tmp_path / "file", 0, 10))
    with pytest.raises(ToolkitError, match="cannot read"):
        http.request("PUT", url, label="echo", body=FileSlice(tmp_path / "missing", 0, 10))
    assert clock.sleeps == []


def test_a_redirect_on_the_same_host_keeps_the_token(service: ActionsService, http: HttpClient, url: str) -> None:
    service.faults.next("echo", Fault.status(302, location="/echo/there"))
    http.request("GET", url, label="echo", headers={"Authorization": "Bearer secret"})
    assert service.requests[-1].path == "/echo/there"
    assert service.requests[-1].bearer == "secret"


def test_a_redirect_to_another_host_drops_the_token(service: ActionsService, http: HttpClient, url: str) -> None:
    with ActionsService.running() as other:
        other.parts.append(Endpoint(lambda _request: json_reply({})))
        service.faults.next("echo", Fault.status(302, location=f"{other.origin}/echo"))
        http.request("GET", url, label="echo", headers={"Authorization": "Bearer secret", "Accept": "x"})
        assert "authorization" not in other.requests[-1].headers
        assert other.requests[-1].headers["accept"] == "x"


def test_redirects_in_a_circle_end(service: ActionsService, http: HttpClient, url: str) -> None:
    service.faults.next("echo", Fault.status(302, location="/echo"), times=99)
    with pytest.raises(ProtocolError, match="redirects"):
        http.request("GET", url, label="echo")


def test_a_redirected_upload_is_an_error(service: ActionsService, http: HttpClient, url: str) -> None:
    service.faults.next("echo", Fault.status(307, location="/echo"))
    with pytest.raises(HttpStatusError, match="answered 307"):
        http.request("PUT", url, label="echo", body=b"x")


@pytest.mark.parametrize(
    "address",
    [
        *("", "nonsense", "ftp://host/x", "http://", "http://[bad/", "http://host:99999/"),
        *("http://host/\u00e9", "http://host/\ud800"),
    ],
)
def test_an_unusable_address_is_one_clear_error(http: HttpClient, address: str) -> None:
    with pytest.raises(NetworkError, match=r"^echo: not a usable address$"):
        http.request("GET", address, label="echo")


def test_a_redirect_to_an_unusable_address_is_one_clear_error(
    service: ActionsService, http: HttpClient, url: str
) -> None:
    service.faults.next("echo", Fault.status(302, location="http://[bad/"))
    with pytest.raises(NetworkError, match="not a usable address"):
        http.request("GET", url, label="echo")


class _Proxy(BaseHTTPRequestHandler):
    seen: list[tuple[str, str, str]]

    def do_GET(self) -> None:
        self.seen.append((self.command, self.path, self.headers.get("proxy-authorization", "")))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_CONNECT(self) -> None:
        self.seen.append((self.command, self.path, self.headers.get("proxy-authorization", "")))
        self.send_error(502)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_a_proxy_of_the_environment_is_used() -> None:
    seen: list[tuple[str, str, str]] = []
    handler = type("Handler", (_Proxy,), {"seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://me:pa%20ss@127.0.0.1:{server.server_address[1]}"
        env = {"http_proxy": address, "HTTPS_PROXY": address, "NO_PROXY": "other.example"}
        client = HttpClient(env=env, sleep=lambda _: None, retries=Retries(tries=1))
        client.request("GET", "http://service.example/a%2fb?sig=%2b", label="echo")
        with pytest.raises(NetworkError, match="no connection"):
            client.request("GET", "https://service.example/", label="echo")
        client.close()
        server.shutdown()
        thread.join()
    login = "Basic bWU6cGEgc3M="
    assert seen == [
        ("GET", "http://service.example/a%2fb?sig=%2b", login),
        ("CONNECT", "service.example:443", login),
    ]
