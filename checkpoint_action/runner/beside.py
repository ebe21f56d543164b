"""Work that goes on at once, each piece in a thread of its own."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Beside"]

_Result = TypeVar("_Result")

_LOOK = 0.5  # seconds; on Windows a signal handler only runs once a wait has ended


class Beside:
    """Runs work in threads. Whatever else it wants to have done is done in the thread that calls :meth:`next`.

    That a piece of work is over is never missed: not even where its thread has no memory to tell it.
    """

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._pieces: list[_Piece[Any]] = []

    @property
    def running(self) -> int:
        """How many pieces of work have not been seen to end."""
        return len(self._pieces)

    def start(self, name: str, work: Callable[[], _Result], ended: Callable[[_Result], None]) -> None:
        """Start a piece of work.

        :param name: of its thread.
        :param ended: gets its result.
        """
        piece = _Piece(work, ended, self._messages, self._see)
        self._pieces.append(piece)
        try:
            threading.Thread(target=piece.run, name=name, daemon=True).start()
        except BaseException:  # there is no thread to be had, and nobody is to wait for it
            if not piece.begun:
                self._pieces.remove(piece)
            raise

    def _see(self, piece: _Piece[Any]) -> None:
        """See that a piece is over, unless that has been seen."""
        if piece in self._pieces:
            self._pieces.remove(piece)
            piece.end()

    def say(self, message: Callable[[], None]) -> None:
        """Have something done, from whatever thread."""
        self._messages.put(message)

    def next(self) -> None:
        """Wait for the next thing to do, and do it; what work has raised is raised here."""
        while True:
            over = [piece for piece in self._pieces if piece.over]
            try:
                message = self._messages.get(timeout=_LOOK)
            except queue.Empty:
                if not over:
                    continue
                message = over[0].seen  # it could not be told, and all that was said before has been done
            message()
            return

    def abandon(self) -> None:
        """Wait until nothing runs any more, whatever comes of it."""
        while self.running:
            try:
                self.next()
            except Exception:  # noqa: S112  # the first failure is the one that is told
                continue


class _Piece(Generic[_Result]):
    """A piece of work. Its thread takes no memory to note what has come of it.

    :ivar seen: to be called where its end may be seen.
    :ivar begun: whether its thread runs, or did.
    :ivar over: whether its work has ended.
    """

    __slots__ = ("_ended", "_failure", "_messages", "_result", "_work", "begun", "over", "seen")

    def __init__(
        self,
        work: Callable[[], _Result],
        ended: Callable[[_Result], None],
        messages: queue.SimpleQueue[Callable[[], None]],
        see: Callable[[_Piece[Any]], None],
    ) -> None:
        self._work = work
        self._ended = ended
        self._messages = messages
        self._result: _Result
        self._failure: BaseException | None = None
        self.seen: Callable[[], None] = lambda: see(self)
        self.begun = self.over = False

    def run(self) -> None:
        """Do the work, in whatever thread."""
        self.begun = True
        try:
            self._result = self._work()
        except BaseException as error:  # raised again where somebody can see it
            self._failure = error
        self.over = True
        with suppress(MemoryError):  # whoever waits looks for it, too
            self._messages.put(self.seen)

    def end(self) -> None:
        """Hand on what has come of it, or raise it."""
        if self._failure is not None:
            raise self._failure
        self._ended(self._result)
