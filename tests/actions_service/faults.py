"""Faults to come: what goes wrong with the next calls of an operation."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field

from tests.actions_service.messages import Reply

__all__ = ["Fault", "FaultPlan"]


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, made by the functions below.

    :param handled: the operation takes place all the same, only its answer is lost.
    """

    kind: str
    handled: bool = False
    reply: Reply = field(default_factory=Reply)
    amount: float = 0

    @classmethod
    def status(cls, status: int, body: str = "", **headers: str) -> Fault:
        """Answer with ``status`` and nothing done; ``retry_after="3"`` becomes the header ``retry-after: 3``."""
        sent = {"content-type": "text/plain"} | {name.replace("_", "-"): value for name, value in headers.items()}
        return cls("reply", reply=Reply(status, body.encode(), sent))

    @classmethod
    def not_json(cls, *, handled: bool = False) -> Fault:
        """Answer 200 with a page for people."""
        return cls("reply", handled, Reply(200, b"<html>one moment</html>", {"content-type": "text/html"}))

    @classmethod
    def reset(cls, *, handled: bool = False) -> Fault:
        """Reset the connection in place of an answer."""
        return cls("reset", handled)

    @classmethod
    def truncated(cls, after: int) -> Fault:
        """Announce the whole body and close the connection after so many bytes."""
        return cls("truncated", handled=True, amount=after)

    @classmethod
    def hang_up(cls, after: int) -> Fault:
        """Reset the connection when so many bytes of the request's body have been read."""
        return cls("hang-up", amount=after)

    @classmethod
    def corrupted(cls) -> Fault:
        """Flip a bit of the body on its way: of the request's where it has one, else of the answer's."""
        return cls("corrupted", handled=True)

    @classmethod
    def slow(cls, seconds: float) -> Fault:
        """Answer rightly, but only after some time."""
        return cls("slow", handled=True, amount=seconds)


class FaultPlan:
    """Faults waiting for their operation, oldest first."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._lock = threading.Lock()

    def next(self, operation: str, fault: Fault, times: int = 1) -> None:
        """Let ``fault`` happen to the next ``times`` calls of ``operation``."""
        with self._lock:
            self._waiting[operation].extend([fault] * times)

    def take(self, operation: str) -> Fault | None:
        with self._lock:
            waiting = self._waiting[operation]
            return waiting.popleft() if waiting else None

    def take_early(self, operation: str) -> Fault | None:
        """The next fault, where it happens before the request has been read."""
        with self._lock:
            waiting = self._waiting[operation]
            return waiting.popleft() if waiting and waiting[0].kind == "hang-up" else None

    def clear(self) -> None:
        """Let nothing go wrong any more."""
        with self._lock:
            self._waiting.clear()
