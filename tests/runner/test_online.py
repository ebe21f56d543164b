"""Waiting for the network to come back."""

from __future__ import annotations

import socket
import threading

from checkpoint_action.runner.online import wait_online
from checkpoint_action.runner.stop import StopRequest


def test_a_listening_port_is_online_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert wait_online(f"127.0.0.1:{server.getsockname()[1]}", StopRequest())


def test_it_goes_on_until_a_connection_succeeds() -> None:
    answers = iter([False, False, True])
    asked = []

    def probe(host: str, port: int) -> bool:
        asked.append((host, port))
        return next(answers)

    assert wait_online("[::1]:443", StopRequest(), answers=probe)
    assert asked == [("::1", 443)] * 3


def test_who_waits_is_told_once_and_only_where_the_first_probe_finds_nothing() -> None:
    told: list[str] = []

    def waits(*found: bool) -> int:
        told.clear()
        answers = iter(found)
        assert wait_online("h:1", StopRequest(), waiting=lambda: told.append(""), answers=lambda _h, _p: next(answers))
        return len(told)

    assert waits(True) == 0
    assert waits(False, False, True) == 1


def test_a_stop_ends_the_wait_even_while_a_probe_hangs() -> None:
    stop = StopRequest()
    hanging = threading.Event()
    started = threading.Event()

    def probe(_host: str, _port: int) -> bool:
        started.set()
        return not hanging.wait(60)

    def stop_soon() -> None:
        started.wait(30)
        stop.request(15)

    threading.Thread(target=stop_soon, daemon=True).start()
    try:
        assert not wait_online("example.com:443", stop, answers=probe)
    finally:
        hanging.set()


def test_the_wait_is_bounded() -> None:
    times = iter([0.0, *([10.0] * 1000)])
    assert not wait_online("h:1", StopRequest(), limit=5, answers=lambda _h, _p: False, clock=lambda: next(times))
