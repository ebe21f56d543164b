"""The connections of one client: a request out, its answer in piece by piece. urllib3 is imported with the first."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.answers import network_error
from checkpoint_action.toolkit.exchange import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import urllib3

    from checkpoint_action.toolkit.exchange import Call

__all__ = ["Connections"]

_KEPT = 8  # connections to a host that stay open between two calls


class Connections:
    """Keeps connections open for the next call. Threads may share one.

    :param env: where ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` are read.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._pools: dict[str | None, urllib3.PoolManager] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the idle ones."""
        with self._lock:
            for pool in self._pools.values():
                pool.clear()
            self._pools.clear()

    def send(self, call: Call, left: Callable[[], float]) -> urllib3.BaseHTTPResponse:
        """Send a request and give the answer, whatever its status, with its body still to come.

        :param left: seconds that the call may still take; asked before each piece of the body. It may raise.
        :raises NetworkError: there is none.
        """
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - heavy, and many runs make no call
        from urllib3.util import Timeout  # noqa: PLC0415

        from checkpoint_action.toolkit import transport  # noqa: PLC0415

        seconds = left()
        proxy = transport.proxy_for(call.url, self._env)
        with self._lock:
            pool = self._pools.get(proxy)
            if pool is None:
                pool = self._pools[proxy] = transport.make_pool(proxy, size=_KEPT)
        target = transport.raw_target(call.url, absolute=proxy is not None and call.url.startswith("http:"))
        try:
            return pool.urlopen(
                call.method,
                call.url,
                body=None if call.body is None else _checked(call.pieces(), left),
                headers={**call.headers, transport.TARGET_HEADER: target},
                timeout=Timeout(connect=min(call.limits.connect, seconds), read=min(call.limits.idle, seconds)),
                redirect=False,
                retries=False,
                preload_content=False,
                decode_content=False,
            )
        except HTTPError as error:
            raise network_error(call, error) from error

    @staticmethod
    def pieces(call: Call, raw: urllib3.BaseHTTPResponse, left: Callable[[], float]) -> Iterator[bytes]:
        """The body of an answer.

        :param left: as of :meth:`send`.
        :raises NetworkError: it broke off.
        """
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        while True:
            left()
            try:
                piece = raw.read1(CHUNK)
            except HTTPError as error:
                raise network_error(call, error) from error
            if not piece:
                return
            yield piece


def _checked(pieces: Iterator[bytes], left: Callable[[], float]) -> Iterator[bytes]:
    for piece in pieces:
        left()
        yield piece
