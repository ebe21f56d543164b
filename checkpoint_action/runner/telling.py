"""What a run tells, in order, and nothing of it before it is true on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkpoint_action.runner.events import Event, Listener
    from checkpoint_action.runner.journal import Journal

__all__ = ["Telling"]


class Telling:
    """Tells a listener of events. Those of what has been recorded may wait, so that one sync serves several."""

    def __init__(self, journal: Journal, listener: Listener) -> None:
        self._journal = journal
        self._listener = listener
        self._waiting: list[Event] = []

    def tell(self, event: Event) -> None:
        """Tell it now, and all that waits before it.

        :raises StateWriteError: see :meth:`catch_up`.
        """
        self.catch_up()
        self._listener(event)

    def later(self, event: Event) -> None:
        """Tell it with whatever is told next."""
        self._waiting.append(event)

    def catch_up(self) -> None:
        """Tell what waits, once all that is recorded is on the disk.

        :raises StateWriteError: it did not get there.
        """
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._journal.sync()
        for event in waiting:
            self._listener(event)
