"""The numbers of a run's archives, by which a store's newest is told: each is greater than those before it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreTakenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.runner.keys import KeyScheme

__all__ = ["Numbering"]


class Numbering:
    """The keys under which a run's archives go up. Threads may share one."""

    def __init__(self, keys: KeyScheme) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        # Not from 1 on: a second use of the action in one attempt, or act's next run, must give greater numbers.
        self._last = time.time_ns() // 1_000_000

    def go_past(self, sequence: int) -> None:
        """Have this run's archives count as newer than one that it knows of, however late this machine's clock is."""
        with self._lock:
            self._last = max(self._last, sequence)

    def send_under_new_key(self, step: str, send: Callable[[str], None]) -> None:
        """Make a key and send under it; once more where that one is taken, as it may be by a try whose answer was lost.

        :param step: id of the newest step.
        """
        for is_last in (False, True):
            with self._lock:
                self._last += 1
                key = self._keys.new(step, self._last)
            try:
                return send(key)
            except StoreTakenError:
                if is_last:
                    raise
