"""Waiting for the network to come back."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

from checkpoint_action.jobfile.values import parse_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.runner.stop import StopRequest

__all__ = ["LONGEST_WAIT", "wait_online"]

LONGEST_WAIT = 3600.0
"""Seconds after which the next try is made all the same."""

_PAUSE = 1.0  # seconds between probes
_CONNECT = 5.0  # seconds a probe may take
_LOOK = 0.1  # seconds between looks at a probe that runs
_PATIENCE = 2.0  # seconds that a first probe may take without anybody being told


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT).close()
    except (OSError, UnicodeError):
        return False
    return True


def wait_online(
    endpoint: str,
    stop: StopRequest,
    *,
    limit: float = LONGEST_WAIT,
    waiting: Callable[[], object] = lambda: None,
    answers: Callable[[str, int], bool] = _answers,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until a TCP connection succeeds, a stop is requested, or the limit has passed.

    :param endpoint: ``HOST:PORT``.
    :param limit: seconds.
    :param waiting: called once where the address does not answer at once.
    :param answers: makes one probe. It runs in a thread of its own, as looking up a name may hang without a network.
    :returns: whether a connection succeeded.
    """
    host, port = parse_endpoint(endpoint)
    begun = clock()
    end, told = begun + limit, False

    def tell() -> None:
        nonlocal told
        if not told:
            told = True
            waiting()

    while True:
        result: list[bool] = []
        probe = threading.Thread(target=lambda found=result: found.append(answers(host, port)), daemon=True)
        probe.start()
        while probe.is_alive():
            if clock() >= end or stop.wait(_LOOK):
                return False
            if clock() - begun >= _PATIENCE:
                tell()
        if result and result[0]:
            return True
        tell()
        if clock() >= end or stop.wait(_PAUSE):
            return False
