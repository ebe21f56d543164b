"""A request and its reply, apart from any socket."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Reply", "Request", "Route", "Service", "json_reply", "twirp_error"]


@dataclass(frozen=True)
class Request:
    """What came in. ``target`` is the path with its query as sent; names of headers are in lower case."""

    method: str
    target: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def bearer(self) -> str:
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    def json(self) -> dict[str, object]:
        data = json.loads(self.body or b"{}")
        assert isinstance(data, dict)
        return data


@dataclass
class Reply:
    """What goes out. Without a body there is a ``Content-Length: 0``."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Bytes of the body after which the connection breaks."""
    reset: bool = False
    """Whether the connection is reset instead, as by a server that panics."""


@dataclass(frozen=True)
class Route:
    """An operation that a part of the service knows how to answer, by the name that faults and counts use."""

    operation: str
    answer: Callable[[], Reply]


class Service(Protocol):
    """A part of the service: says which requests are its own."""

    def route(self, request: Request) -> Route | None: ...


def json_reply(data: Mapping[str, object], status: int = 200) -> Reply:
    return Reply(status, json.dumps(data).encode(), {"content-type": "application/json"})


def twirp_error(status: int, code: str, message: str) -> Reply:
    return json_reply({"code": code, "msg": message}, status)
