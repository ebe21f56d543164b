"""Work that goes on at once, each piece in a thread of its own."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Beside"]

_Result = TypeVar("_Result")

_LOOK = 0.5  # seconds; on Windows a signal handler only runs once a wait has ended


class Beside:
    """Runs work in threads. Whatever else it wants to have done is done in the thread that calls :meth:`next`.

    :ivar running: how many pieces of work have not been seen to end.
    """

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.running = 0

    def start(self, name: str, work: Callable[[], _Result], ended: Callable[[_Result], None]) -> None:
        """Start a piece of work.

        :param name: of its thread.
        :param ended: gets its result.
        """
        self.running += 1
        threading.Thread(target=self._run, args=(work, ended), name=name, daemon=True).start()

    def _run(self, work: Callable[[], _Result], ended: Callable[[_Result], None]) -> None:
        try:
            result = work()
        except BaseException as error:  # raised again where somebody can see it
            failure = error
            self.say(lambda: self._died(failure))
            return
        self.say(lambda: self._ended(ended, result))

    def _died(self, failure: BaseException) -> None:
        self.running -= 1
        raise failure

    def _ended(self, ended: Callable[[_Result], None], result: _Result) -> None:
        self.running -= 1
        ended(result)

    def say(self, message: Callable[[], None]) -> None:
        """Have something done, from whatever thread."""
        self._messages.put(message)

    def next(self) -> None:
        """Wait for the next thing to do, and do it; what work has raised is raised here."""
        while True:
            try:
                message = self._messages.get(timeout=_LOOK)
            except queue.Empty:
                continue
            message()
            return

    def abandon(self) -> None:
        """Wait until nothing runs any more, whatever comes of it."""
        while self.running:
            try:
                self.next()
            except Exception:  # noqa: S112  # the first failure is the one that is told
                continue
