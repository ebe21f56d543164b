"""A thin HTTP client in which every call has a connect, an idle and a total limit, and faults that pass are retried.

A call is retried on statuses 5xx, 408 and 429, on a 403 that tells of a rate limit, on broken connections and, for
JSON calls, on an answer that is no JSON. The waits double up to a cap; ``Retry-After`` is honoured up to another. No
redirect carries the ``Authorization`` header to another host. urllib3 is imported with the first call.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.toolkit.answers import json_object, lower, status_error
from checkpoint_action.toolkit.connections import Connections
from checkpoint_action.toolkit.errors import (
    DeadlineError,
    HttpStatusError,
    NetworkError,
    ProtocolError,
)
from checkpoint_action.toolkit.exchange import Call, FileSlice, Limits, Response, Retries, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import urllib3

__all__ = ["FileSlice", "HttpClient", "Limits", "Response", "Retries", "Stream"]

_T = TypeVar("_T")

_LONGEST_ERROR = 64 * 1024
_LONGEST_ANSWER = 16 * 1024 * 1024
_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOVED = frozenset({301, 308})


class HttpClient:
    """HTTP calls with limits and retries. Threads may share one.

    :param user_agent: sent with every call.
    :param deadline: moment of ``monotonic`` after which no call goes on, nor sleeps.
    :param env: where ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` are read.
    :param monotonic: seconds, never going back.
    :param wall: seconds since the epoch, for a ``Retry-After`` that is a date.
    :param jitter: gives a number from 0 to 1.
    """

    def __init__(
        self,
        *,
        user_agent: str = "checkpoint-run",
        limits: Limits | None = None,
        retries: Retries | None = None,
        deadline: float | None = None,
        env: Mapping[str, str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        wall: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.limits = limits or Limits()
        self.retries = retries or Retries()
        self.deadline = deadline
        self._user_agent = user_agent
        self._connections = Connections(os.environ if env is None else env)
        self._monotonic = monotonic
        self._sleep = sleep
        self._wall = wall
        self._jitter = jitter
        self._stops: tuple[threading.Event, ...] = (threading.Event(),)

    def within(self, seconds: float) -> HttpClient:
        """This client for work that may take ``seconds`` from now in all: same connections, an earlier deadline.

        The total limit of its calls is those seconds too, so that a long transfer is not cut short by a short one.
        """
        view = copy.copy(self)
        end = self._monotonic() + seconds
        view.deadline = end if self.deadline is None else min(end, self.deadline)
        view.limits = Limits(self.limits.connect, self.limits.idle, seconds)
        return view

    def trying(self, tries: int) -> HttpClient:
        """This client with another number of tries in all: same connections, same deadline."""
        view = copy.copy(self)
        view.retries = replace(self.retries, tries=tries)
        return view

    def stoppable(self) -> HttpClient:
        """This client for calls that :meth:`stop` ends together, and no others: same connections and limits."""
        view = copy.copy(self)
        view._stops = (*self._stops, threading.Event())  # noqa: SLF001 - one of ours
        return view

    def stop(self) -> None:
        """End the calls made through this view, or one made from it, at their next piece, wait or try.

        They and all later ones raise :class:`DeadlineError`.
        """
        self._stops[-1].set()

    def check(self, label: str) -> None:
        """Raise :class:`DeadlineError` when the client's deadline has passed."""
        self.pause(0, label)

    def pause(self, seconds: float, label: str) -> None:
        """Sleep, or raise :class:`DeadlineError` at once when the deadline comes first."""
        if self._is_stopped() or (self.deadline is not None and self._monotonic() + seconds >= self.deadline):
            raise DeadlineError(f"{label}: out of time")
        if seconds:
            self._wait(seconds)

    def backoff(self, tries: int) -> float:
        """Seconds to wait after the ``tries``-th try has failed."""
        return self.retries.backoff(tries, self._jitter())

    def close(self) -> None:
        """Close the idle connections."""
        self._connections.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        label: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | FileSlice | None = None,
        limits: Limits | None = None,
        check: Callable[[Response], None] | None = None,
    ) -> Response:
        """Make a call and read its whole (short) answer.

        :param label: what messages call it; the URL may hold a secret and is never shown.
        :param check: raises :class:`ProtocolError` for a success that is none; the call is then tried again.
        :raises HttpStatusError: the last try's status is not 2xx.
        :raises NetworkError: no try brought a complete answer in time.
        """
        call = self._call(method, url, label, headers=headers, body=body, limits=limits)

        def attempt() -> Response:
            response = self._exchange(call)
            if check is not None:
                check(response)
            return response

        return self._with_tries(call, attempt)

    def redirection(
        self,
        url: str,
        *,
        label: str,
        headers: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> str:
        """Ask where a GET of ``url`` leads, without going there: no header of this call reaches the other place.

        What has moved for good (301, 308: a repository that was renamed) is asked for where it is now.

        :return: the whole address that the ``Location`` header names.
        :raises ProtocolError: the answer is a success, but no redirect. Else as :meth:`request`.
        """
        call = replace(self._call("GET", url, label, headers=headers, limits=limits), follow=False)
        location = self._with_tries(call, lambda: self._exchange(call)).headers.get("location", "")
        if not location:
            raise ProtocolError(f"{call.place} answered without an address to go to")
        return call.redirected(location).url

    def request_json(
        self,
        method: str,
        url: str,
        *,
        label: str,
        headers: Mapping[str, str] | None = None,
        payload: Mapping[str, object] | None = None,
        limits: Limits | None = None,
    ) -> dict[str, object]:
        """Make a call with a JSON object as body (``None``: no body) and read the JSON object it answers with.

        Status 204 gives an empty object. Else as :meth:`request`.

        :raises ProtocolError: a success whose body is no JSON object, each time.
        """
        sent = dict(headers or {})
        body = None
        if payload is not None:
            body = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
            sent["content-type"] = "application/json"
        call = self._call(method, url, label, headers=sent, body=body, limits=limits)

        def attempt() -> dict[str, object]:
            response = self._exchange(call)
            if response.status == 204:
                return {}
            data = json_object(response.body)
            if data is None:
                raise ProtocolError(f"{call.place} answered {response.status} with a body that is no JSON object")
            return data

        return self._with_tries(call, attempt)

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        *,
        label: str,
        headers: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Iterator[Stream]:
        """Make a call and hand over its answer piece by piece.

        Tries are made until the answer begins; what breaks after that is the caller's to continue
        (:func:`checkpoint_action.toolkit.blob.download` does).

        :raises NetworkError: from here, or while the pieces are read.
        """
        call = self._call(method, url, label, headers=headers, limits=limits)
        raw = self._with_tries(call, lambda: self._open(call))
        try:
            yield Stream(raw.status, lower(raw.headers), Connections.pieces(call, raw, partial(self._left, call)))
        finally:
            raw.close()

    def _call(
        self,
        method: str,
        url: str,
        label: str,
        *,
        headers: Mapping[str, str] | None,
        limits: Limits | None,
        body: bytes | FileSlice | None = None,
    ) -> Call:
        limits = limits or self.limits
        until = self._monotonic() + limits.total
        if self.deadline is not None:
            until = min(until, self.deadline)
        sent = {"user-agent": self._user_agent} | {name.lower(): value for name, value in (headers or {}).items()}
        if body is not None:
            sent["content-length"] = str(body.length if isinstance(body, FileSlice) else len(body))
        return Call(method, url, label, sent, body, limits, until)

    def _with_tries(self, call: Call, attempt: Callable[[], _T]) -> _T:
        tries = 1
        unsure = False
        while True:
            try:
                return attempt()
            except (HttpStatusError, NetworkError, ProtocolError) as error:
                wait = self.retries.wait_after(error, tries, self._jitter())
                if isinstance(error, HttpStatusError):
                    error.repeated = unsure
                if wait is None or wait >= self._time_for(call):
                    raise
                unsure = unsure or not isinstance(error, HttpStatusError) or error.status >= 500
            self._wait(wait)
            tries += 1

    def _exchange(self, call: Call) -> Response:
        raw = self._open(call)
        try:
            body = self._read(call, raw, _LONGEST_ANSWER)
        finally:
            raw.close()
        return Response(raw.status, lower(raw.headers), body)

    def _open(self, call: Call) -> urllib3.BaseHTTPResponse:
        """One try: send, follow redirects, and give the answer if it is a success."""
        for _ in range(_MOST_REDIRECTS + 1):
            raw = self._connections.send(call, partial(self._left, call))
            location = raw.headers.get("location")
            redirects = raw.status in _REDIRECTS and bool(location) and call.method in {"GET", "HEAD"}
            if 200 <= raw.status < 300 or (redirects and not call.follow and raw.status not in _MOVED):
                return raw
            try:
                if not redirects or not location:
                    body = self._read(call, raw, _LONGEST_ERROR)
                    raise status_error(call, raw.status, lower(raw.headers), body, now=self._wall())
            finally:
                raw.close()
            call = call.redirected(location)
        raise ProtocolError(f"{call.place}: more than {_MOST_REDIRECTS} redirects")

    def _read(self, call: Call, raw: urllib3.BaseHTTPResponse, longest: int) -> bytes:
        body = bytearray()
        for piece in Connections.pieces(call, raw, partial(self._left, call)):
            body += piece
            if len(body) > longest:
                raise ProtocolError(f"{call.place} answered with more than {longest} bytes")
        return bytes(body)

    def _left(self, call: Call) -> float:
        left = self._time_for(call)
        if left <= 0:
            raise DeadlineError(f"{call.place}: out of time")
        return left

    def _time_for(self, call: Call) -> float:
        return -math.inf if self._is_stopped() else call.until - self._monotonic()

    def _is_stopped(self) -> bool:
        return any(stop.is_set() for stop in self._stops)

    def _wait(self, seconds: float) -> None:
        if self._sleep is time.sleep:
            self._stops[-1].wait(seconds)
        else:
            self._sleep(seconds)
